"""``x[:, ids] = 0`` -> ``x.index_fill_(1, ids, 0)``: the number goes with the kernel.

`index_fill_` takes one vector of int64, where an index may also be of another dtype or shape.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.safe.fill_element import assignment, is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place


def plan(place: Place) -> Edit | None:
    """Apply to a number that is assigned to positions along one dimension."""
    statement = assignment(place)
    if statement is None or place.site.operation != "positions":
        return None
    target = statement.targets[0]
    assert isinstance(target, ast.Subscript)
    dimension = _dimension(target.slice)
    if dimension is None or not is_number(statement.value, place.around):
        return None
    return Edit((statement,), {"dimension": dimension})


def _dimension(index: ast.expr) -> int | None:
    """Which dimension the positions are along; None where other parts of the index say more."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    given = [n for n, part in enumerate(parts) if not _is_all(part)]
    if len(given) != 1 or not isinstance(parts[given[0]], (ast.Name, ast.Attribute, ast.Call)):
        return None
    return given[0]


def _is_all(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step)


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Write a call in the place of the assignment."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (line,) = nodes
    assert isinstance(line, cst.SimpleStatementLine)
    old = line.body[0]
    assert isinstance(old, cst.Assign)
    target = cst.ensure_type(old.targets[0].target, cst.Subscript)
    dimension = edit.facts["dimension"]
    positions = cst.ensure_type(target.slice[dimension].slice, cst.Index).value
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    arguments = [
        cst.Arg(cst.Integer(str(dimension)), comma=comma),
        cst.Arg(build.bare(positions), comma=comma),
        cst.Arg(build.bare(old.value)),
    ]
    call = cst.Call(cst.Attribute(target.value, cst.Name("index_fill_")), arguments)
    return [line.with_changes(body=[cst.Expr(call, semicolon=old.semicolon)])]
