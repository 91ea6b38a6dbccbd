"""``print(...)`` -> the same under ``if not torch.compiler.is_compiling():``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace


def plan(place: FixPlace) -> Edit | None:
    """Apply to a call that is a whole statement."""
    statement = place.around.parent(place.site.node)
    if not isinstance(statement, ast.Expr) or statement.value is not place.site.node:
        return None
    name = place.around.reach("torch.compiler.is_compiling", statement)
    if name is None:
        return None
    return Edit((statement,), {"name": name[0]}, name[1])


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Put the statement under the guard, with the comments above it before the guard."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (line,) = nodes
    assert isinstance(line, cst.SimpleStatementLine)
    test = cst.UnaryOperation(cst.Not(), build.expression(f"{edit.facts['name']}()"))
    body = cst.IndentedBlock([line.with_changes(leading_lines=[])])
    return [cst.If(test, body, leading_lines=line.leading_lines)]
