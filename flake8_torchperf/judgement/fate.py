"""Fate: the sites that a device causes, and the copies that code asks for beside its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import around_steps
from flake8_torchperf.values.site import SIZED_KINDS, SiteKind

if TYPE_CHECKING:
    from flake8_torchperf.judgement.evidence import Evidence

# Sites that read a value or a size by a call.
READING_KINDS = (
    SiteKind.HOST_READ, SiteKind.TRANSFER, SiteKind.HOST_COMPARISON, SiteKind.SYNCHRONIZE,
    SiteKind.TORCH_CALL, *SIZED_KINDS,
)  # fmt: skip
# Sites that cost nothing if the tensor lies on the host.
FROM_DEVICE = (
    *READING_KINDS, SiteKind.NUMBER_USE, SiteKind.TENSOR_ITERATION, SiteKind.ELEMENT_ACCESS,
    SiteKind.HOST_REDUCTION, SiteKind.HOST_ACCUMULATION, SiteKind.BRANCH, SiteKind.FORMAT,
    SiteKind.LIST_INDEX, SiteKind.NUMBER_ASSIGNED,
)  # fmt: skip
# The trait of a site that ends the graph of compiled code, but is free or intended anywhere else:
# compiled code holds tensors on the host and arrays in its graph like any other value.
COMPILER_ONLY = "compiler-only"


def is_outside_steps(e: Evidence) -> bool:
    """True for a copy to the host in a loop around the loop over steps."""
    loops = e.place.loops
    return "to-host" in e.traits and bool(loops) and around_steps(loops[-1].node)
