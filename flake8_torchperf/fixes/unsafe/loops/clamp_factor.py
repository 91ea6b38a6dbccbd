"""``if c < 1: t.mul_(c)`` -> ``t.mul_(torch.clamp(c, max=1.0))``: multiplied in any case.

Multiplying by 1 changes nothing, so the test is not needed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.shared.code import fresh_name, names_in
from flake8_torchperf.values.provenance import Strength

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place


def plan(place: Place) -> Edit | None:
    """Apply to an ``if`` about a factor whose body does nothing but multiply by it."""
    test = place.site.node
    branch = place.around.parent(test)
    if not isinstance(branch, ast.If) or branch.test is not test or branch.orelse:
        return None
    if _is_elif(place, branch) or not _is_tensor(place):
        return None
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=1)]) if (
            isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
        ):
            bound = "max" if isinstance(op, (ast.Lt, ast.LtE)) else "min"
        case _:
            return None
    clamped = fresh_name(place, branch, (f"{name}_clamped", f"clamped_{name}"))
    torch = place.around.name_of("torch")
    if not clamped or not _multiplies(place, branch.body, name):
        return None
    text = f"{clamped} = {torch or 'torch'}.clamp({name}, {bound}=1.0)"
    facts = {"text": text, "factor": name, "clamped": clamped}
    return Edit((branch,), facts, () if torch else ("torch",))


def _is_tensor(place: Place) -> bool:
    """True if the factor is stated to be a tensor, and so is one on every path."""
    tensor = place.site.operand
    strength = getattr(getattr(tensor, "reason", None), "strength", None)
    return bool(strength == Strength.STATED)


def _is_elif(place: Place, branch: ast.If) -> bool:
    line = place.around.module.lines[branch.lineno - 1]
    return line.lstrip().startswith("elif")


def _multiplies(place: Place, body: Sequence[ast.stmt], name: str) -> bool:
    """True if a block does nothing but multiply tensors in place by the factor."""
    return all(_multiplies_one(place, statement, name) for statement in body)


def _multiplies_one(place: Place, statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.For(target=target, iter=iterated, body=body, orelse=[]):
            free = name not in names_in([target, iterated])
            return free and _multiplies(place, body, name)
        case ast.If(test=test, body=body, orelse=[]):
            return name not in names_in([test]) and _multiplies(place, body, name)
        case ast.Assign(targets=[ast.Name(id=bound)], value=ast.ListComp() as listed):
            return bound != name and name not in names_in([listed])
        case ast.AugAssign(target=target, op=ast.Mult(), value=factor):
            return name not in names_in([target]) and _is_factor(factor, name)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr="mul_"), args=[factor])):
            return name not in names_in([owner]) and _is_factor(factor, name)
        case ast.Expr(value=ast.Call(func=func, args=[listed, factor], keywords=[])):
            known = place.around.qualified(func) == "torch._foreach_mul_"
            return known and name not in names_in([listed]) and _is_factor(factor, name)
    return False


def _is_factor(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Name(id=given):
            return given == name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=given), attr="to")):
            return given == name
    return False


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Clamp the factor, and multiply without a test."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import statements

    (branch,) = nodes
    assert isinstance(branch, cst.If)
    body = [
        statements.renamed(one, edit.facts["factor"], edit.facts["clamped"])
        for one in statements.statements_of(branch.body)
    ]
    new = [*statements.parsed(edit.facts["text"]), *body]
    return [statements.with_comments_of(branch, new)]
