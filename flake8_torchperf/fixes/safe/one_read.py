"""``low < x.item() and x.item() < high`` -> ``low < x.item() < high``: one read, not two."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings

_WORDS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_READING = frozenset(("builtins.float", "builtins.int"))


def plan(place: Place) -> Edit | None:
    """Apply to two bounds of one number that is read for each of them."""
    around = place.around
    here: ast.AST | None = place.site.node
    while isinstance(here, ast.expr) and not isinstance(here, ast.BoolOp):
        here = around.parent(here)
    if not isinstance(here, ast.BoolOp) or not isinstance(here.op, ast.And):
        return None
    if len(here.values) != 2:
        return None
    left, right = (_bound(one, around) for one in here.values)
    if left is None or right is None or ast.dump(left[0]) != ast.dump(right[0]):
        return None
    low, first = left[2], _TURNED[left[1]]
    return Edit((here,), {"parts": (low, first, ast.unparse(left[0]), right[1], right[2])})


def _bound(node: ast.expr, around: Surroundings) -> tuple[ast.expr, str, str] | None:
    """Return the number read, the comparison and the bound, with the number moved to the left."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _WORDS:
            word = _WORDS[type(op)]
            if _reads(left, around) and repeatable(right):
                return left, word, ast.unparse(right)
            if _reads(right, around) and repeatable(left):
                return right, _TURNED[word], ast.unparse(left)
    return None


def _reads(node: ast.expr, around: Surroundings) -> bool:
    """True for ``x.item()``, ``float(x)`` and ``int(x)``, which give the same number each time."""
    match node:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[], keywords=[]):
            return repeatable(tensor)
        case ast.Call(func=ast.Name() as func, args=[tensor], keywords=[]):
            return around.qualified(func) in _READING and repeatable(tensor)
    return False


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Write one comparison with both bounds."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (old,) = nodes
    assert isinstance(old, cst.BooleanOperation)
    return [build.in_place_of(old, build.expression(" ".join(edit.facts["parts"])))]
