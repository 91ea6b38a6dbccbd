"""Reductions and assignments through a mask that is not known to have the shape of the tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.fixes.unsafe.masks import masked_assignment, masked_reduction

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst

    from flake8_torchperf.findings.finding import Edit
    from flake8_torchperf.fixes.engine.surroundings import FixPlace


def plan(place: FixPlace) -> Edit | None:
    """Apply where the mask may have fewer dimensions than the tensor that it selects from."""
    reduced = masked_reduction.planned(place, certain=False)
    return reduced or masked_assignment.planned(place, certain=False)


def rewrite(nodes: Sequence[libcst.CSTNode], edit: Edit) -> Sequence[libcst.CSTNode]:
    """Rewrite the statement of an assignment, or the call that reduces a selection."""
    import libcst as cst

    if isinstance(nodes[0], cst.SimpleStatementLine):
        return masked_assignment.rewrite(nodes, edit)
    return masked_reduction.rewrite(nodes, edit)
