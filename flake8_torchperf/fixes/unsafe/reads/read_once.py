"""``i = t.argmax()``, ``x[i]``, ``y[i]`` -> ``i = t.argmax().item()``: one read for all uses.

Only for one whole number that every use reads. Where some use is an index, the control flow or
output of the function must depend on a read value anyway: `torch.jit.trace` follows a tensor into
an index, but freezes a number.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.evaluation import is_condition, is_lazy
from flake8_torchperf.fixes.shared.numbers import is_whole
from flake8_torchperf.fixes.shared.siblings import block_of
from flake8_torchperf.fixes.shared.tensors import is_int64
from flake8_torchperf.syntax.traversal import below
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings
    from flake8_torchperf.project.module_index import FunctionNode

_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Try, ast.With)
# The uses of a number that count something, and the operators between whole numbers.
_BOUNDS = frozenset(("slice", "size", "range", "arange"))
_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
# Sites that no tracer records: it freezes the values that it saw there.
_DECIDED = (SiteKind.BRANCH, SiteKind.FORMAT, SiteKind.HOST_READ)


def plan(place: FixPlace) -> Edit | None:
    """Apply where a name is bound once to one number, and used as one at least twice."""
    use, operand = place.site.node, place.site.operand
    if isinstance(use, ast.BinOp):
        use = next((one for one in (use.left, use.right) if isinstance(one, ast.Name)), use)
    if not isinstance(use, ast.Name) or not isinstance(operand, Tensor):
        return None
    function = place.around.function(use)
    if operand.scalar is not True or function is None:
        return None
    line = _bound_once(use.id, function, place)
    if line is None or not _is_plain(line.value):
        return None
    uses = [one for one in _reads(function, use.id) if not _is_in(one, line)]
    if len(uses) < 2 or not _is_read_in_any_case(line, use.id, place):
        return None
    if all(_is_bound(one, place) for one in uses):
        return Edit((line.value,))  # whatever its dtype, it is a whole number there
    if operand.dtype != "int" or not is_int64(line.value, place.around):
        return None
    numbers = all(_is_number(one, place) for one in uses)
    return Edit((line.value,)) if numbers and _decides(function, place) else None


def _bound_once(name: str, function: FunctionNode, place: FixPlace) -> ast.Assign | None:
    """Return the only assignment that the uses of a name can see."""
    if any(isinstance(one, (ast.Global, ast.Nonlocal)) for one in below(function)):
        return None
    stores = [one for one in below(function)
              if isinstance(one, ast.Name) and one.id == name
              and not isinstance(one.ctx, ast.Load)]  # fmt: skip
    lines = [place.around.parent(one) for one in stores]
    bound = [one for one in lines if isinstance(one, ast.Assign) and len(one.targets) == 1]
    if len(bound) != 1 or any(one.arg == name for one in ast.walk(function.args)
                              if isinstance(one, ast.arg)):  # fmt: skip
        return None
    (line,) = bound
    block = block_of(place, line)
    behind = block[block.index(line) + 1 :] if line in block else []
    within = {id(one) for part in behind for one in ast.walk(part)}
    if any(id(one) not in within and not _is_in(one, line) for one in _reads(function, name)):
        return None
    loop = place.around.parent(line)
    # `for i in rows: i = i[0]`: only this statement sees the value that the loop binds.
    others = [one for one in lines if one is not line]
    return line if all(one is loop and isinstance(one, ast.For) for one in others) else None


def _reads(function: FunctionNode, name: str) -> Iterator[ast.Name]:
    for node in below(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def _is_in(node: ast.AST, line: ast.stmt) -> bool:
    return any(one is node for one in ast.walk(line))


def _is_plain(value: ast.expr) -> bool:
    """True if a method can be called on an expression without brackets around it."""
    return isinstance(value, (ast.Call, ast.Subscript, ast.Attribute))


def _is_number(use: ast.expr, place: FixPlace) -> bool:
    """True if a use reads a number, and gives the same for a Python number."""
    above = place.around.parent(use)
    match above:
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult(), left=left, right=right):
            other = right if left is use else left
            return is_whole(other, place.around) and _is_number(above, place)
        case ast.FormattedValue(value=value, conversion=-1):
            return value is use
        case ast.Compare(left=left, ops=[_], comparators=[right]) if left is use or right is use:
            other = right if left is use else left
            return (is_whole(other, place.around) or repeatable(other)) and is_condition(
                place, above
            )
    return id(use) in place.around.known(_number_uses)


def _number_uses(around: Surroundings) -> dict[int, str]:
    """Return the operation of each reported use as a number, by the identity of its node."""
    return {id(site.node): site.operation for site in around.reported(SiteKind.NUMBER_USE)}


def _is_bound(use: ast.expr, place: FixPlace) -> bool:
    """True if a use is the bound of a slice, a size, or arithmetic of these with whole numbers."""
    here: ast.AST = use
    above = place.around.parent(here)
    while isinstance(above, ast.BinOp) and isinstance(above.op, _WHOLE):
        other = above.right if above.left is here else above.left
        if not is_whole(other, place.around):
            return False
        here, above = above, place.around.parent(above)
    return place.around.known(_number_uses).get(id(here)) in _BOUNDS


def _is_read_in_any_case(line: ast.stmt, name: str, place: FixPlace) -> bool:
    """True if the code after an assignment reads the number on every path."""
    block = block_of(place, line)
    for statement in block[block.index(line) + 1 :]:
        always = _evaluated(statement)
        for node in (inner for part in always for inner in ast.walk(part)):
            if isinstance(node, ast.Name) and node.id == name:
                return not is_lazy(place, node, statement)
        if any(isinstance(one, _LEAVES) for one in ast.walk(statement)):
            return False
    return False


def _evaluated(statement: ast.stmt) -> list[ast.AST]:
    """Return the parts of a statement that are always evaluated when it is reached."""
    match statement:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For(iter=iterated):
            return [iterated]
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Return():
            return [statement]
    return []


def _decides(function: FunctionNode, place: FixPlace) -> bool:
    """True if a value that is read decides on something in the function itself."""
    within = {id(one) for one in below(function)}
    return any(id(site.node) in within for site in place.around.reported(*_DECIDED))


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Read the number where the name is bound."""
    import libcst as cst

    (value,) = nodes
    assert isinstance(value, cst.BaseExpression)
    return [cst.Call(cst.Attribute(value, cst.Name("item")))]
