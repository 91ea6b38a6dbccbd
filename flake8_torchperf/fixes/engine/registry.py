"""Finds the module of a fix by its safety and name, as rule pages write them.

``device-argument`` among the safe fixes is ``fixes/safe/device_argument.py``. Unsafe fixes of whole
loops, of masks, of numbers and of reads have folders of their own, such as ``fixes/unsafe/loops``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, cast

from flake8_torchperf.findings.rule import UNSAFE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst

    from flake8_torchperf.findings.finding import Edit
    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_INNER = ("loops", "masks", "numbers", "reads")
_ROOM = __name__.rpartition(".engine.")[0]


class Fix(Protocol):
    """The functions that the module of a fix defines."""

    def plan(self, place: FixPlace) -> Edit | None:
        """Return the edit for a finding; None where the fix does not apply.

        Runs while linting: it may read the ast and the interpreter's results, and must import
        neither libcst nor torch.
        """

    def rewrite(
        self, nodes: Sequence[libcst.CSTNode], edit: Edit
    ) -> Sequence[libcst.CSTNode | libcst.FlattenSentinel[libcst.CSTNode] | libcst.RemovalSentinel]:
        """Return the replacements for the nodes of an edit, one for each node."""


@cache
def load(safety: str, name: str) -> Fix:
    """Return the module of a fix. Raises ModuleNotFoundError where a page names a missing one."""
    short = name.replace("-", "_")
    module = f"{_ROOM}.{safety}.{short}"
    inner = (f"{_ROOM}.{safety}.{room}.{short}" for room in _INNER if safety == UNSAFE)
    found = next((one for one in (module, *inner) if find_spec(one) is not None), module)
    return cast("Fix", import_module(found))
