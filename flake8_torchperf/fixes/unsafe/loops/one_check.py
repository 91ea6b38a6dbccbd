"""A loop that multiplies tensors unless one is not finite -> one check for all, left on the device.

`GradScaler` works so: a tensor that is multiplied although it is not finite is discarded later.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import exits, fresh_name, invariant, text_of
from flake8_torchperf.fixes.shared.loops.flags import both_checked
from flake8_torchperf.fixes.shared.loops.gather import rounds_of
from flake8_torchperf.syntax.bindings import all_bound_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace


def plan(place: FixPlace) -> Edit | None:
    """Apply to a loop that does nothing but other checks, this test, and a multiplication."""
    if not place.site.loops:
        return None
    loop = place.site.loops[-1].node
    rounds = rounds_of(place, loop)
    if loop is None or rounds is None or rounds.conditions or not rounds.body:
        return None
    *checks, last = rounds.body
    if not isinstance(last, ast.If) or place.around.statement(place.site.node) is not last:
        return None
    if not all(isinstance(one, ast.If) and not one.orelse and exits(one.body) for one in checks):
        return None
    found, scaled = _flag(last.body), _scaled(last.orelse)
    subject = both_checked(place, last.test)
    if found is None or scaled is None or subject is None:
        return None
    tensor, factor = scaled
    bound = rounds.bound | all_bound_by(checks)
    if ast.dump(_memory(subject)) != ast.dump(_memory(tensor)):
        return None
    if not (invariant(found[0], bound) and invariant(factor, bound)):
        return None
    torch = place.around.name_of("torch")
    tensors = fresh_name(place, loop, ("tensors", "unscaled", "values"))
    finite = fresh_name(place, loop, ("finite", "all_finite"))
    if not tensors or not finite:
        return None
    text = _TEXT.format(
        tensors=tensors,
        finite=finite,
        torch=torch or "torch",
        listed=rounds.listed(text_of(place, tensor)),
        set=found[1].format(flag=text_of(place, found[0]), finite=finite, torch=torch or "torch"),
        factor=text_of(place, factor),
    )
    return Edit((loop,), {"checks": len(checks), "text": text}, () if torch else ("torch",))


_TEXT = """\
{tensors} = {listed}
if {tensors}:
    {finite} = {torch}.stack([{torch}.isfinite(t).all() for t in {tensors}]).all()
    {set}
    {torch}._foreach_mul_({tensors}, {factor}.detach().reshape(()))
"""


def _flag(block: Sequence[ast.stmt]) -> tuple[ast.expr, str] | None:
    """Return the tensor that a block sets to 1, and how it sets it.

    The block does nothing else but leave the loop. The text has places for the "flag", for "finite"
    and for "torch".
    """
    match block:
        case [statement] | [statement, ast.Break()]:
            return _set_to_one(statement)
    return None


def _set_to_one(statement: ast.stmt) -> tuple[ast.expr, str] | None:
    """Return the tensor that a statement such as ``f.fill_(1.0)`` sets to 1, and the new text."""
    chosen = "{{flag}}{0} = {{torch}}.where({{finite}}, {{flag}}{0}, 1.0)"
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(value=found, attr="data")],
            value=ast.Call(func=ast.Attribute(attr="tensor"), args=[given], keywords=[]),
        ):
            inner = given.elts[0] if isinstance(given, ast.List) and len(given.elts) == 1 else given
            return (found, chosen.format(".data")) if _is_one(inner) else None
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=found, attr="fill_"), args=[given])):
            text = "{flag}.masked_fill_({finite}.logical_not(), 1.0)"
            return (found, text) if _is_one(given) else None
        case ast.Assign(
            targets=[ast.Subscript(value=found, slice=ast.Constant(value=0))], value=given
        ):
            return (found, chosen.format("[0]")) if _is_one(given) else None
    return None


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (1.0, True)


def _scaled(block: Sequence[ast.stmt]) -> tuple[ast.expr, ast.expr] | None:
    """Return the tensor that a block multiplies in place, and the tensor that holds the factor."""
    match block:
        case [ast.AugAssign(target=tensor, op=ast.Mult(), value=factor)]:
            pass
        case [
            ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=tensor, attr="mul_"), args=[factor], keywords=[]
                )
            )
        ]:
            pass
        case _:
            return None
    match factor:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return tensor, inner
        case ast.Call(func=ast.Name(id="float"), args=[inner], keywords=[]):
            return tensor, inner
    return None


def _memory(tensor: ast.expr) -> ast.expr:
    """Return the tensor whose memory an expression names: ``t`` of ``t.data`` or ``t.detach()``."""
    match tensor:
        case ast.Attribute(value=inner, attr="data"):
            return _memory(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="detach"), args=[]):
            return _memory(inner)
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())  # the same name, whether written or read
    return tensor


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Leave the checks in the loop, and put the call after it."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import new_statements

    (loop,) = nodes
    assert isinstance(loop, cst.For)
    new = new_statements.parsed(edit.facts["text"])
    if edit.facts["checks"]:
        assert isinstance(loop.body, cst.IndentedBlock)
        left = loop.body.with_changes(body=loop.body.body[:-1])
        new.insert(0, loop.with_changes(body=left, leading_lines=[]))
    return [new_statements.with_comments_of(loop, new)]
