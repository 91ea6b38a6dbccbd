"""``x == x.max().item()`` -> ``x == x.max()``: the comparison takes a 0-d tensor as well.

Only for an extreme of the tensor that it is compared with: dtype and device are the same, and a
comparison has no gradient.
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

_EXTREMES = methods_of("finds-extremes") | {"median"}
_COMPARED = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def plan(place: Place) -> Edit | None:
    """Apply to ``.item()`` of a maximum or minimum that is compared with its own tensor."""
    match place.site.node:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]) as read:
            pass
        case _:
            return None
    compared = place.around.parent(read)
    if not isinstance(compared, ast.Compare) or len(compared.ops) != 1:
        return None
    other = compared.left if compared.comparators[0] is read else compared.comparators[0]
    if not isinstance(compared.ops[0], _COMPARED) or not repeatable(other):
        return None
    whole = isinstance(place.site.operand, Tensor)
    same = _of(inner, place)
    if not whole or same is None or ast.dump(same) != ast.dump(other):
        return None
    return Edit((read,))


def _of(node: ast.expr, place: Place) -> ast.expr | None:
    """Return the tensor whose extreme an expression is."""
    match node:
        case ast.Call(func=ast.Attribute(value=tensor, attr=name), args=[], keywords=[]):
            return tensor if name in _EXTREMES else None
        case ast.Call(func=func, args=[tensor], keywords=[]):
            name = place.around.qualified(func).removeprefix("torch.")
            return tensor if name in _EXTREMES else None
    return None


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Remove the read."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (old,) = nodes
    assert isinstance(old, cst.Call)
    assert isinstance(old.func, cst.Attribute)
    return [build.in_place_of(old, old.func.value)]
