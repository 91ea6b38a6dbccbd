"""``torch.rand(n).to(d)`` -> ``torch.rand(n, device=d)``: other numbers, made where they are used.

A device has a generator of its own and rounds in its own way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.fixes.safe.device_argument import planned, rewrite

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.findings.model import Edit
    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings

__all__ = ["plan", "rewrite"]

RANDOM = frozenset(("rand", "randn", "randint", "randperm", "rand_like", "randn_like",
                    "randint_like"))  # fmt: skip
ROUNDED = frozenset(("arange", "linspace", "logspace", "full", "hann_window", "hamming_window",
                     "blackman_window", "bartlett_window", "kaiser_window"))  # fmt: skip


def plan(place: Place) -> Edit | None:
    """Apply to random numbers, and to what each device rounds in its own way."""
    return planned(place, _differs)


def _differs(made: ast.Call, name: str, casts: bool, around: Surroundings) -> bool:
    return name in RANDOM or name in ROUNDED
