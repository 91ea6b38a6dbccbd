"""``for i in t`` -> ``for i in t.tolist()`` where each ``i`` is used as a number."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import names_in, used_outside
from flake8_torchperf.fixes.shared.evaluation import is_condition
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_TO_NUMBER = frozenset(("int", "float", "bool"))


def plan(place: FixPlace) -> Edit | None:
    """Apply where every item of a loop or comprehension is used as a number."""
    tensor = place.site.node
    operand = place.site.operand
    if not isinstance(tensor, ast.expr) or not isinstance(operand, Tensor):
        return None
    if operand.rank not in (None, 1) or operand.scalar or operand.dtype == "complex":
        return None
    around = place.around.parent(tensor)
    match around:
        case ast.For(target=ast.Name(id=name), iter=iterated, body=body) if iterated is tensor:
            if used_outside(place, name, around):
                return None
            scope: list[ast.AST] = [*body]
        case ast.comprehension(target=ast.Name(id=name), iter=iterated) if iterated is tensor:
            whole = place.around.parent(around)
            if whole is None or around.is_async:
                return None
            scope = [one for one in ast.iter_child_nodes(whole) if one is not around]
            scope += around.ifs
        case _:
            return None
    uses = [n for one in scope for n in ast.walk(one) if isinstance(n, ast.Name) and n.id == name]
    if not uses or not all(_is_number(place, use) for use in uses):
        return None
    if name in names_in([tensor]) or not _is_plain(tensor):
        return None
    items = [place.around.parent(use) for use in uses]
    reads = [item for item in items if item is not None and _is_item(place, item)]
    calls = tuple(call for item in reads if (call := place.around.parent(item)) is not None)
    return Edit((tensor, *calls), {"name": name})


def _is_plain(tensor: ast.expr) -> bool:
    return isinstance(tensor, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))


def _is_item(place: FixPlace, node: ast.AST | None) -> bool:
    """True for the function of ``i.item()`` or ``i.tolist()``."""
    match node:
        case ast.Attribute(attr=name) if name in methods_of("reads"):
            call = place.around.parent(node)
            return isinstance(call, ast.Call) and call.func is node and not call.args
    return False


def _is_number(place: FixPlace, use: ast.Name) -> bool:
    """True if a use of an item gives the same for a number as for a tensor of one element."""
    if not isinstance(use.ctx, ast.Load):
        return False
    parent = place.around.parent(use)
    if _is_item(place, parent):
        return True
    match parent:
        case ast.Subscript(value=value, slice=index):
            return index is use and value is not use and isinstance(parent.ctx, ast.Load)
        case ast.Call(args=[given], keywords=[], func=func):
            known = place.around.qualified(func)
            return given is use and known.removeprefix("builtins.") in _TO_NUMBER
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.If(test=test) | ast.IfExp(test=test):
            return test is use
        case ast.Compare(left=left, comparators=[ast.Constant(value=int())]):
            return left is use and is_condition(place, parent)
    return False


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Read the whole tensor where it is iterated, and no longer its elements."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    tensor, *calls = nodes
    assert isinstance(tensor, cst.BaseExpression)
    read = cst.Call(cst.Attribute(tensor, cst.Name("tolist")))
    new: list[cst.CSTNode] = [read]
    for call in calls:
        assert isinstance(call, cst.Call)
        new.append(build.in_place_of(call, cst.Name(edit.facts["name"])))
    return new
