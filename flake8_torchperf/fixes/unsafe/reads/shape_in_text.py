"""``raise ValueError(f"... {t}")`` -> ``{t.shape}``: errors and warnings need no value.

Not for a tensor that is known to hold one number, whose value explains the error.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.shared.tensors import is_tensor
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place


def plan(place: Place) -> Edit | None:
    """Apply to a name within the text of an error or a warning."""
    shown, operand = _shown(place), place.site.operand
    if shown is None or not isinstance(operand, Tensor) or operand.scalar is True:
        return None
    if not _warns(shown, place) or _is_number(operand):
        return None
    there = is_tensor(shown, place.around) or _is_asked_for(shown, place)
    return Edit((shown,)) if there else None


def _is_number(operand: Tensor) -> bool:
    """True if a tensor may be one number: a reduction may cover all dimensions or only some."""
    op = load().method(operand.chain[-1]) if operand.chain else None
    return operand.scalar is None and op is not None and op.reduction


def _shown(place: Place) -> ast.expr | None:
    """Return the name or attribute that an f-string shows without a format."""
    node = place.site.node
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    match place.around.parent(node):
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None) if value is node:
            return node
    return None


def _warns(shown: ast.expr, place: Place) -> bool:
    """True if the text is part of ``raise E(...)`` or ``warnings.warn(...)``."""
    match place.around.statement(shown):
        case ast.Raise(exc=ast.Call()):
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return place.around.qualified(func) == "warnings.warn"
    return False


def _is_asked_for(shown: ast.expr, place: Place) -> bool:
    """True if the ``if`` around the error tests that the value is not None."""
    statement = place.around.statement(shown)
    above = None if statement is None else place.around.parent(statement)
    if not isinstance(above, ast.If) or statement not in above.body:
        return False
    both = isinstance(above.test, ast.BoolOp) and isinstance(above.test.op, ast.And)
    tests = above.test.values if both else [above.test]  # type: ignore[attr-defined]
    return any(_says_so(test, ast.dump(shown)) for test in tests)


def _says_so(test: ast.expr, name: str) -> bool:
    match test:
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return ast.dump(left) == name
    return False


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Show the shape."""
    import libcst as cst

    (shown,) = nodes
    assert isinstance(shown, cst.BaseExpression)
    return [cst.Attribute(shown, cst.Name("shape"))]
