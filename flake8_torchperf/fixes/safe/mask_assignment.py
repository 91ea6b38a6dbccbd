"""``x[torch.where(x < 0)] = 0.0`` -> ``x[x < 0] = 0.0``: a number is filled in without counting.

Only where the mask is computed from the tensor that is written, so that both have one shape, and
where it is known to have dimensions: positions in a tensor without any are an error.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place

_TESTS = methods_of("tests-finite-reals")
_COMPARED = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def plan(place: Place) -> Edit | None:
    """Apply to positions that are the index of an assignment of a number."""
    found = place.site.node
    mask = _mask(found, place)
    operand = place.site.operand
    if not isinstance(operand, Tensor) or not operand.rank:
        return None
    index = place.around.parent(found)
    if mask is None or not isinstance(index, ast.Subscript) or index.slice is not found:
        return None
    match place.around.parent(index):
        case ast.Assign(targets=[target], value=value) if target is index and _is_number(value):
            pass
        case _:
            return None
    tested = _tested(mask, place)
    if tested is None or ast.dump(tested) != ast.dump(index.value) or not repeatable(tested):
        return None
    return Edit((found,), {"mask": ast.unparse(mask)})


def _mask(node: ast.AST, place: Place) -> ast.expr | None:
    """Return the mask in ``torch.where(mask)`` or ``mask.nonzero(as_tuple=True)``, else None."""
    match node:
        case ast.Call(func=func, args=[mask], keywords=[]) if (
            isinstance(func, (ast.Attribute, ast.Name))
            and place.around.qualified(func) == "torch.where"
        ):
            return mask
        case ast.Call(
            func=ast.Attribute(value=mask, attr="nonzero"),
            args=[],
            keywords=[ast.keyword(arg="as_tuple", value=ast.Constant(value=True))],
        ):
            return mask
        case ast.Call(
            func=func,
            args=[mask],
            keywords=[ast.keyword(arg="as_tuple", value=ast.Constant(value=True))],
        ) if (
            isinstance(func, (ast.Attribute, ast.Name))
            and place.around.qualified(func) == "torch.nonzero"
        ):
            return mask
    return None


def _tested(mask: ast.expr, place: Place) -> ast.expr | None:
    """Return the tensor whose elements a mask tests one by one."""
    match mask:
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return _tested(operand, place)
        case ast.Compare(left=tensor, ops=[op], comparators=[ast.Constant() | ast.UnaryOp()]):
            return tensor if isinstance(op, _COMPARED) else None
        case ast.Call(func=ast.Attribute(value=tensor, attr=name), args=[], keywords=[]):
            return tensor if name in _TESTS else None
        case ast.Call(func=func, args=[tensor], keywords=[]):
            known = place.around.qualified(func).removeprefix("torch.") in _TESTS
            return tensor if known else None
    return None


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(operand)
    return False


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Index with the mask itself."""
    from flake8_torchperf.fixes.engine import build

    return [build.expression(edit.facts["mask"])]
