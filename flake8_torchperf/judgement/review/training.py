"""The training steps that lead to a place: rounds that compute gradients, and all they call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import goes_backward, takes_training_step
from flake8_torchperf.judgement.worth.features import EVALUATES, TRAINS

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.project.module_index import FunctionInfo


class Training:
    """Tells which places of the linted module are part of training steps."""

    def __init__(self, callers: PackageCallers) -> None:
        self._callers = callers
        self._program = callers.program
        self._known: dict[str, bool] = {}

    def evidence_at(self, node: ast.AST, info: FunctionInfo) -> Iterator[str]:
        """Yield whether training steps lead to a node of a function, or only other steps do."""
        place = self._callers.place_of(node, info)
        if place is None:
            return
        if _is_in_training(place) or self._leads_to(info):
            yield TRAINS
        elif self._program.only_evaluates(info):
            yield EVALUATES

    def _leads_to(self, info: FunctionInfo) -> bool:
        """True if some place on the way to a function is part of a training step."""
        if info.key not in self._known:
            self._known[info.key] = any(
                _is_in_training(self._callers.site_at(run))
                for _, run in self._program.leading(info)
                if not self._callers.is_dead(run)
            )
        return self._known[info.key]


def _is_in_training(site: CallSite) -> bool:
    """True if the round of a loop around a place computes gradients, or its function does."""
    if site.seldom:
        return False
    if any(map(goes_backward, site.loops)):
        return True
    return site.caller is not None and not site.loops and takes_training_step(site.caller)
