"""A norm over many tensors, added up in a loop -> ``torch._foreach_norm``, and the norm of these.

The loop is ``total = 0`` and ``total += p.norm(n).item() ** n`` for each tensor, followed by
``total = total ** (1 / n)``. Each norm has its tensor's dtype, as before. The norm of the norms is
computed in double precision, as Python does. `torch.nn.utils.get_total_norm` computes it in the
tensors' dtype, and float16 ends at 65,504.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.shared.code import (
    argument_text,
    fresh_name,
    invariant,
    names_in,
    text_of,
)
from flake8_torchperf.fixes.shared.kinds import has_float64
from flake8_torchperf.fixes.shared.loops.gather import Rounds, rounds_of
from flake8_torchperf.fixes.shared.siblings import around_in_block
from flake8_torchperf.syntax.traversal import below

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place

_TWO = ast.Constant(2)


def plan(place: Place) -> Edit | None:
    """Apply to the loop, with the statements directly before and after it."""
    if not place.site.loops:
        return None
    loop = place.site.loops[-1].node
    rounds = rounds_of(place, loop)
    if rounds is None or not isinstance(loop, ast.For):
        return None
    before, after = around_in_block(place, loop)
    summed = _summed(place, rounds)
    if summed is None or before is None or after is None:
        return None
    total, tensor, order = summed
    if not _is_zero(before, total) or not _is_root(place, after, total, order):
        return None
    if not invariant(order, rounds.bound) or total in names_in([order, loop.iter, tensor]):
        return None
    root = _root(place, after, total)
    read = any(_is_read(node) for one in rounds.body for node in ast.walk(one))
    tensors = fresh_name(place, loop, ("tensors", "each", "gathered"))
    norms = fresh_name(place, loop, ("norms", "each_norm", "all_norms"))
    if (root == "torch.sqrt" and read) or not tensors or not norms:
        return None  # an error, or no name is free
    torch = place.around.name_of("torch")
    whole = _WHOLE.format(
        tensors=tensors,
        norms=norms,
        total=total,
        torch=torch or "torch",
        listed=rounds.listed(text_of(place, tensor)),
        order="" if _number(order) == 2 else f", {argument_text(place, order)}",
        cast=_cast(place) if read or root == "math.sqrt" else "",
        read=".item()" if read or root == "math.sqrt" else "",
    )
    return Edit((before, loop, after), {"text": whole}, () if torch else ("torch",))


# A norm is moved only where the tensors are on several devices.
_WHOLE = """\
{total} = 0.0
{tensors} = {listed}
if {tensors}:
    {norms} = {torch}._foreach_norm({tensors}{order})
    {norms} = {torch}.stack([norm.to({norms}[0].device) for norm in {norms}])
    {total} = {torch}.linalg.vector_norm({norms}{cast}{order}){read}
"""


def _cast(place: Place) -> str:
    return ".double()" if has_float64(place.around) else ".float()"


def _is_read(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="item")) | ast.Call(func=ast.Name(id="float")):
            return True
    return False


def _root(place: Place, after: ast.stmt, total: str) -> str:
    """Return the function that takes the root; "" for a power."""
    match after:
        case ast.Assign(value=ast.Call() as call):
            return place.around.qualified(call.func)
    return ""


def _summed(place: Place, rounds: Rounds) -> tuple[str, ast.expr, ast.expr] | None:
    """Return the total, the tensor whose norm is added to it, and the order of the norm."""
    norm: ast.expr | None = None
    match rounds.body:
        case [
            ast.Assign(targets=[ast.Name(id=name)], value=norm),
            ast.AugAssign(target=ast.Name(id=total), op=ast.Add(), value=added),
        ]:
            if total == name or _used_behind(place, name, rounds):
                return None
        case [ast.AugAssign(target=ast.Name(id=total), op=ast.Add(), value=added)]:
            name = ""
        case _:
            return None
    if not isinstance(added, ast.BinOp) or not isinstance(added.op, ast.Pow):
        return None
    base = _without_read(added.left)
    if norm is None:
        norm = base
    elif not (isinstance(base, ast.Name) and base.id == name):
        return None
    found = _norm(place, _without_read(norm))
    if found is None or not _alike(found[1], added.right):
        return None
    return total, found[0], found[1]


def _used_behind(place: Place, name: str, rounds: Rounds) -> bool:
    whole = place.around.function(rounds.body[0]) or place.around.tree
    uses = [n for n in below(whole) if isinstance(n, ast.Name) and n.id == name]
    return len(uses) != 2  # bound and read in the loop, and nowhere else


def _without_read(node: ast.expr) -> ast.expr:
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="item" | "detach"), args=[]):
            return _without_read(inner)
        case ast.Call(func=ast.Name(id="float"), args=[inner], keywords=[]):
            return _without_read(inner)
    return node


def _norm(place: Place, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return the tensor and the order of ``t.norm(n)``, ``torch.norm(t, n)`` and similar calls."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    given = {one.arg: one.value for one in node.keywords}
    if not set(given) <= {"p", "ord"} or len(given) > 1:
        return None
    args = [*node.args, *given.values()]
    known = place.around.qualified(node.func)
    if known in ("torch.norm", "torch.linalg.norm", "torch.linalg.vector_norm"):
        tensor, *args = args
        if args and known == "torch.linalg.norm":
            return None  # a matrix norm, if the tensor is a matrix
    elif node.func.attr == "norm" and not known:
        tensor = node.func.value
    else:
        return None
    return (tensor, args[0] if args else _TWO) if len(args) <= 1 else None


def _is_zero(before: ast.stmt, total: str) -> bool:
    match before:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
            return name == total and type(value) in (int, float) and value == 0
    return False


def _is_root(place: Place, after: ast.stmt, total: str, order: ast.expr) -> bool:
    """True for ``total = total ** (1.0 / n)``, or a square root where n is 2."""
    match after:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == total:
            pass
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Pow(), value=power) if name == total:
            value = ast.BinOp(ast.Name(total, ast.Load()), ast.Pow(), power)
        case _:
            return False
    match value:
        case ast.BinOp(left=ast.Name(id=base), op=ast.Pow(), right=power):
            return base == total and _inverts(power, order)
        case ast.Call(args=[ast.Name(id=base)], keywords=[]):
            known = place.around.qualified(value.func) in ("math.sqrt", "torch.sqrt")
            return base == total and known and _number(order) == 2
    return False


def _inverts(power: ast.expr, order: ast.expr) -> bool:
    match power:
        case ast.BinOp(left=ast.Constant(value=1), op=ast.Div(), right=right):
            return _alike(right, order)
        case ast.Constant(value=0.5):
            return _number(order) == 2
    return False


def _alike(a: ast.expr, b: ast.expr) -> bool:
    return ast.dump(a) == ast.dump(b) or (_number(a) is not None and _number(a) == _number(b))


def _number(node: ast.expr) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
    return None


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel]:
    """Replace the first statement by the new text; the loop and the root are removed."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import statements

    before, loop, after = nodes
    new = statements.parsed(edit.facts["text"])
    gone = cst.RemovalSentinel.REMOVE
    return [statements.with_comments_of(before, new, loop, after), gone, gone]
