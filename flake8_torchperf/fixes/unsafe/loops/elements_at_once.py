"""``for i in range(len(x)): y[i] = x[i] * 2`` -> ``y[: len(x)] = x * 2``: all elements at once."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.shared.code import used_outside
from flake8_torchperf.knowledge.table import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def plan(place: Place) -> Edit | None:
    """Apply to a loop that sets each element of one tensor from the same element of another."""
    loop = place.around.statement(place.site.node)
    if not isinstance(loop, ast.For) or loop.orelse or loop.type_comment:
        return None
    match loop.target, loop.body:
        case (
            ast.Name(id=index),
            [
                ast.Assign(
                    targets=[ast.Subscript(value=ast.Name(id=out), slice=ast.Name(id=at))],
                    value=value,
                )
            ],
        ) if at == index:
            pass
        case _:
            return None
    measured = _measured(place, loop.iter)
    if measured in ("", out, index) or used_outside(place, index, loop):
        return None
    elements = _Elements(place, measured, index)
    if not elements.makes(value):
        return None
    whole = ast.unparse(_Whole(measured, index).visit(copy.deepcopy(value)))
    return Edit((loop,), {"texts": (f"{out}[: len({measured})] = {whole}\n",)})


def _measured(place: Place, iterated: ast.expr) -> str:
    """Return the ``x`` of ``range(len(x))``, ``range(x.shape[0])`` or ``range(x.size(0))``."""
    if not isinstance(iterated, ast.Call) or len(iterated.args) != 1 or iterated.keywords:
        return ""
    if place.around.qualified(iterated.func) != "builtins.range":
        return ""
    match iterated.args[0]:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
            return name
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=ast.Constant(value=0)
        ):
            return name
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[ast.Constant(value=0)]
        ):
            return name
    return ""


class _Elements:
    """Tests whether an expression is made of one element, by operations that use no others."""

    def __init__(self, place: Place, tensor: str, index: str) -> None:
        self._place = place
        self._tensor = tensor
        self._index = index

    def makes(self, node: ast.expr) -> bool:
        """True if an expression uses the element, and else only numbers and the first element."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=at)):
                return name == self._tensor and at == self._index
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.makes(operand)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
                sides = (left, right)
                fits = all(self.makes(side) or self._fits(side) for side in sides)
                return fits and any(map(self.makes, sides))
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=[]):
                if not args:
                    return self.makes(owner) and _is_pointwise(name)
                known = self._place.around.qualified(node.func) == f"torch.{name}"
                return known and len(args) == 1 and self.makes(args[0]) and _is_pointwise(name)
        return False

    def _fits(self, node: ast.expr) -> bool:
        """True for a number or the first element, which combine with all elements as with one."""
        match node:
            case ast.Constant(value=int() | float()):
                return True
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=0)):
                return name == self._tensor
        return False


def _is_pointwise(name: str) -> bool:
    method = load().method(name)
    return bool(method and method.pointwise and not method.reduction and not method.in_place)


class _Whole(ast.NodeTransformer):
    """Replaces the element by the tensor, and the first element by a slice, which may be empty."""

    def __init__(self, tensor: str, index: str) -> None:
        super().__init__()
        self._tensor = tensor
        self._index = index

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """``x[i]`` -> ``x``, ``x[0]`` -> ``x[:1]``."""
        if isinstance(node.slice, ast.Name) and node.slice.id == self._index:
            return node.value
        return ast.Subscript(node.value, ast.Slice(upper=ast.Constant(1)), node.ctx)


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Replace the loop by one assignment."""
    from flake8_torchperf.fixes.shared.nodes import statements

    return statements.replaced(nodes, edit)
