"""``mask.nonzero()[0].item()`` -> ``mask.int().argmax().item()``: one wait, and no list of indices.

`argmax` returns the first of several largest elements.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

_CLOSED = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def plan(place: FixPlace) -> Edit | None:
    """Apply to the first index alone, where it is read as a number."""
    call, operand, around = place.site.node, place.site.operand, place.around
    mask = _mask(call, around)
    if mask is None or not isinstance(operand, Tensor):
        return None
    first = around.parent(call)
    if not _takes_first(first, call):
        return None
    read = _read(first, around)
    if read is None:
        return None
    text = ast.unparse(mask)
    if operand.dtype != "bool":
        text = f"({text} != 0)"
    elif not isinstance(mask, _CLOSED):
        text = f"({text})"
    return Edit((read,), {"text": f"{text}.int().argmax().item()"})


def _mask(node: ast.AST, around: Surroundings) -> ast.expr | None:
    """Return the mask in ``mask.nonzero()`` or ``torch.nonzero(mask)``."""
    match node:
        case ast.Call(func=func, args=[mask], keywords=[]):
            return mask if around.qualified(func) == "torch.nonzero" else None
        case ast.Call(func=ast.Attribute(value=mask, attr="nonzero"), args=[], keywords=[]):
            return mask
    return None


def _takes_first(node: ast.AST | None, call: ast.AST) -> bool:
    match node:
        case ast.Subscript(value=value, slice=ast.Constant(value=0)):
            return value is call
    return False


def _read(first: ast.AST | None, around: Surroundings) -> ast.Call | None:
    """Return the read of a number, which shows that the mask has one dimension."""
    above = None if first is None else around.parent(first)
    match above:
        case ast.Attribute(attr="item"):
            read = around.parent(above)
            return read if isinstance(read, ast.Call) and not read.args else None
        case ast.Call(func=ast.Name(id="int"), args=[value], keywords=[]):
            return above if value is first else None
    return None


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Write the index of the largest element."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (read,) = nodes
    assert isinstance(read, cst.Call)
    return [build.in_place_of(read, build.expression(edit.facts["text"]))]
