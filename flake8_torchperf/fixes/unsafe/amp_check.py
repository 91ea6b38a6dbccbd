"""A loop that unscales gradients unless one is not finite -> the kernel of ``GradScaler``.

``torch._amp_foreach_non_finite_check_and_unscale_`` multiplies all tensors of a list by one factor
and sets a flag where an element is not finite, in one launch for many tensors.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.engine.code import bound_by, exits, invariant, text_of
from flake8_torchperf.fixes.engine.flags import both_checked
from flake8_torchperf.fixes.engine.gather import rounds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place


def plan(place: Place) -> Edit | None:
    """Apply to a loop that does nothing but checks before, this test, and a multiplication."""
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
    bound = rounds.bound | bound_by(checks)
    if ast.dump(_memory(subject)) != ast.dump(_memory(tensor)):
        return None
    if not (invariant(found, bound) and invariant(factor, bound)):
        return None
    torch = place.around.name_of("torch")
    grads = rounds.listed(text_of(place, tensor))
    call = f"_amp_foreach_non_finite_check_and_unscale_({grads}, "
    call += f"{text_of(place, found)}, {text_of(place, factor)})"
    facts = {"checks": len(checks), "text": f"{torch or 'torch'}.{call}"}
    return Edit((loop,), facts, () if torch else ("torch",))


def _flag(block: Sequence[ast.stmt]) -> ast.expr | None:
    """The tensor that a block sets to 1, and does nothing else but leave the loop."""
    match block:
        case [statement] | [statement, ast.Break()]:
            return _set_to_one(statement)
    return None


def _set_to_one(statement: ast.stmt) -> ast.expr | None:
    """``f.data = torch.tensor([1.0])``, ``f.fill_(1.0)``, ``f[0] = 1.0``: the ``f``."""
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(value=found, attr="data")],
            value=ast.Call(func=ast.Attribute(attr="tensor"), args=[given], keywords=[]),
        ):
            inner = given.elts[0] if isinstance(given, ast.List) and len(given.elts) == 1 else given
            return found if _is_one(inner) else None
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=found, attr="fill_"), args=[given])):
            return found if _is_one(given) else None
        case ast.Assign(
            targets=[ast.Subscript(value=found, slice=ast.Constant(value=0))], value=given
        ):
            return found if _is_one(given) else None
    return None


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (1.0, True)


def _scaled(block: Sequence[ast.stmt]) -> tuple[ast.expr, ast.expr] | None:
    """The tensor that a block multiplies in place, and the tensor that holds the factor."""
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
    """The tensor whose memory an expression names: ``t`` of ``t.data`` and ``t.detach()``."""
    match tensor:
        case ast.Attribute(value=inner, attr="data"):
            return _memory(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="detach"), args=[]):
            return _memory(inner)
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())  # written to or read, it is the same one
    return tensor


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Leave the checks in the loop, and put the call behind it."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import statements

    (loop,) = nodes
    assert isinstance(loop, cst.For)
    new = statements.parsed(edit.facts["text"])
    if edit.facts["checks"]:
        assert isinstance(loop.body, cst.IndentedBlock)
        left = loop.body.with_changes(body=loop.body.body[:-1])
        new.insert(0, loop.with_changes(body=left, leading_lines=[]))
    return [statements.with_comments_of(loop, new)]
