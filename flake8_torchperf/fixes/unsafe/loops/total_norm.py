"""A norm over many tensors, added up in a loop -> ``torch._foreach_norm``, and the norm of these.

The loop is ``total = 0`` and ``total += p.norm(n).item() ** n`` for each tensor, followed by
``total = total ** (1 / n)``. The total is a name, or an entry such as ``totals[key]``. Each norm
has its tensor's dtype, as before. The norm of the norms is computed in double precision, as Python
does. `torch.nn.utils.get_total_norm` computes it in the tensors' dtype, and float16 ends at 65,504.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import (
    argument_text,
    fresh_name,
    invariant,
    names_in,
    text_of,
)
from flake8_torchperf.fixes.shared.kinds import has_float64
from flake8_torchperf.fixes.shared.loops.gather import Rounds, rounds_of
from flake8_torchperf.fixes.shared.siblings import around_in_block, statements_before
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.syntax.traversal import below

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

_TWO = ast.Constant(2)


def plan(place: FixPlace) -> Edit | None:
    """Apply to the loop, with the statements directly before and after it."""
    if not place.site.loops:
        return None
    loop = place.site.loops[-1].node
    rounds = rounds_of(place, loop)
    if rounds is None or not isinstance(loop, ast.For):
        return None
    _, after = around_in_block(place, loop)
    summed = _summed(place, rounds)
    if summed is None or after is None:
        return None
    total, tensor, order = summed
    before = _zero(place, loop, total)
    if before is None or not _is_root(place, after, total, order):
        return None
    if not invariant(order, rounds.bound) or _names(total) & names_in([order, loop.iter, tensor]):
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
    zero = f"{total} = 0.0\n"
    # The list stands where the loop was: statements before it may bind what it iterates.
    apart = around_in_block(place, loop)[0] is not before
    texts = (zero, whole) if apart else (zero + whole,)
    return Edit((before, loop, after), {"texts": texts}, () if torch else ("torch",))


# A norm is moved only where the tensors are on several devices.
_WHOLE = """\
{tensors} = {listed}
if {tensors}:
    {norms} = {torch}._foreach_norm({tensors}{order})
    {norms} = {torch}.stack([norm.to({norms}[0].device) for norm in {norms}])
    {total} = {torch}.linalg.vector_norm({norms}{cast}{order}){read}
"""


def _cast(place: FixPlace) -> str:
    return ".double()" if has_float64(place.around) else ".float()"


def _is_read(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="item")) | ast.Call(func=ast.Name(id="float")):
            return True
    return False


def _root(place: FixPlace, after: ast.stmt, total: str) -> str:
    """Return the function that takes the root; "" for a power."""
    match after:
        case ast.Assign(value=ast.Call() as call):
            return place.around.qualified(call.func)
    return ""


def _summed(place: FixPlace, rounds: Rounds) -> tuple[str, ast.expr, ast.expr] | None:
    """Return the total, the tensor whose norm is added to it, and the order of the norm."""
    norm: ast.expr | None = None
    match rounds.body:
        case [
            ast.Assign(targets=[ast.Name(id=name)], value=norm),
            ast.AugAssign(target=target, op=ast.Add(), value=added),
        ]:
            if name in names_in([target]) or _used_behind(place, name, rounds):
                return None
        case [ast.AugAssign(target=target, op=ast.Add(), value=added)]:
            name = ""
        case _:
            return None
    total = _text(target, rounds)
    if not total or not isinstance(added, ast.BinOp) or not isinstance(added.op, ast.Pow):
        return None
    base = _without_read(added.left)
    if norm is None:
        norm = base
    elif not (isinstance(base, ast.Name) and base.id == name):
        return None
    found = norm_of(place, _without_read(norm))
    if found is None or not _alike(found[1], added.right):
        return None
    return total, found[0], found[1]


def _text(target: ast.expr, rounds: Rounds) -> str:
    """Return the source of a total: a name, or an entry that is the same in each round."""
    match target:
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=ast.Name(), slice=ast.Constant() | ast.Name()):
            return "" if names_in([target]) & rounds.bound else ast.unparse(target)
    return ""


def _names(total: str) -> frozenset[str]:
    return names_in([ast.parse(total)])


def _used_behind(place: FixPlace, name: str, rounds: Rounds) -> bool:
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


def norm_of(place: FixPlace, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
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


def _zero(place: FixPlace, loop: ast.For, total: str) -> ast.stmt | None:
    """Return the statement before a loop that sets its total to 0; none between may use it."""
    for line in reversed(statements_before(loop, place.around)):
        match line:
            case ast.Assign(targets=[target], value=ast.Constant(value=value)):
                if ast.unparse(target) == total and type(value) in (int, float) and value == 0:
                    return line
        if not isinstance(line, ast.Assign) or total.partition("[")[0] in names_in([line]):
            return None
        if _names(total) & all_bound_by([line]):
            return None
    return None


def _is_root(place: FixPlace, after: ast.stmt, total: str, order: ast.expr) -> bool:
    """True for ``total = total ** (1.0 / n)``, or a square root where n is 2."""
    match after:
        case ast.Assign(targets=[target], value=value):
            pass
        case ast.AugAssign(target=target, op=ast.Pow(), value=power):
            value = ast.BinOp(target, ast.Pow(), power)
        case _:
            return False
    if ast.unparse(target) != total:
        return False
    match value:
        case ast.BinOp(left=base, op=ast.Pow(), right=power):
            return ast.unparse(base) == total and _inverts(power, order)
        case ast.Call(args=[base], keywords=[]):
            known = place.around.qualified(value.func) in ("math.sqrt", "torch.sqrt")
            return ast.unparse(base) == total and known and _number(order) == 2
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

    from flake8_torchperf.fixes.shared.nodes import new_statements

    before, loop, after = nodes
    first, *rest = map(new_statements.parsed, edit.facts["texts"])
    gone = cst.RemovalSentinel.REMOVE
    if not rest:
        return [new_statements.with_comments_of(before, first, loop, after), gone, gone]
    of_loop = new_statements.with_comments_of(loop, rest[0], after)
    return [new_statements.with_comments_of(before, first), of_loop, gone]
