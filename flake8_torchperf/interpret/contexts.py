"""Tests that say how seldom their branch runs: compiling guards, every-n-steps, errors, debugging.

Enters the test of an ``if`` and its body; leaves the context of the branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from flake8_torchperf.interpret.annotations import dotted_name

if TYPE_CHECKING:
    from flake8_torchperf.interpret.environment import Env
    from flake8_torchperf.interpret.machine import Context

# torch.compiler, torch.jit and torch.onnx ask whether Python runs at all
TRACING = {
    "is_compiling", "is_dynamo_compiling", "is_exporting", "is_scripting", "is_tracing",
    "is_in_onnx_export", "is_torchdynamo_compiling",
}  # fmt: skip
# The trait of sites in an except block: text made there is about an error.
EXCEPT = "except-block"
# The trait of sites in a lambda: a message given as one is built only when it is asked for.
LATER = "lambda"
DEBUGGING = {"debug", "verbose", "debug_mode", "is_debug", "__debug__", "isEnabledFor", "DEBUG"}


def guard_of(test: cst.BaseExpression, env: Env, ctx: Context) -> tuple[str, bool] | None:
    """Why a branch runs seldom, and for which outcome of the test; None for any other test."""
    match test:
        case cst.UnaryOperation(
            operator=cst.Not(), expression=cst.BinaryOperation(operator=cst.Modulo()) as every
        ):
            return ("once in several steps", True) if _counts_steps(every) else None
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            found = guard_of(inner, env, ctx)
            if found is None:
                return None
            why, holds = found
            return why, not holds
        case cst.BooleanOperation(left=left, right=right, operator=operator):
            guards = (guard_of(left, env, ctx), guard_of(right, env, ctx))
            found = guards[0] or guards[1]
            if found is None or guards[0] == guards[1]:
                return found
            # `a and guard`: the branch runs only with the guard. `a or guard`: it may without.
            return found if isinstance(operator, cst.And) == found[1] else None
        case cst.Call(func=func):
            last = dotted_name(func).rpartition(".")[2]
            if last in TRACING:
                return "under a compiling guard", True
            if last in DEBUGGING:
                return "under a debugging switch", True
        case cst.Name() | cst.Attribute():
            if dotted_name(test).rpartition(".")[2].lstrip("_") in DEBUGGING:
                return "under a debugging switch", True
        case cst.Comparison(
            left=cst.BinaryOperation(operator=cst.Modulo()) as every, comparisons=[target]
        ):
            if isinstance(target.operator, cst.Equal) and _counts_steps(every):
                return "once in several steps", True
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.Equal())]):
            if _counted(left, ctx):
                return "in one round of its loop", True
    return None


def _counted(node: cst.BaseExpression, ctx: Context) -> bool:
    """``i`` or ``i + 1``, with ``i`` counting the rounds of an enclosing loop."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.right, cst.Integer):
        node = node.left
    if not isinstance(node, cst.Name):
        return False
    return any(node.value in _counters(place.node) for place in ctx.loops)


def _counters(loop: cst.CSTNode) -> set[str]:
    """The names that count rounds: those of ``range`` and the first of ``enumerate``."""
    match loop:
        case cst.For(target=cst.Name(value=name), iter=cst.Call(func=cst.Name(value="range"))):
            return {name}
        case cst.For(
            target=cst.Tuple(elements=[cst.Element(value=cst.Name(value=name)), *_]),
            iter=cst.Call(func=cst.Name(value="enumerate")),
        ):
            return {name}
    return set()


def _counts_steps(every: cst.BinaryOperation) -> bool:
    """``step % n``, not ``x.shape[0] % 2``: a size says nothing of how often a branch runs."""
    node: cst.BaseExpression = every.left
    while isinstance(node, (cst.BinaryOperation, cst.Subscript)):
        node = node.left if isinstance(node, cst.BinaryOperation) else node.value
    match node:
        case cst.Attribute(attr=cst.Name(value="shape")):
            return False
        case cst.Call():
            return False
    return True


def first_call(node: cst.If) -> tuple[str, bool] | None:
    """``if self.x is None:`` above ``self.x = ...``: what is made there is made once."""
    match node.test:
        case cst.Comparison(
            left=cst.Attribute() as made,
            comparisons=[
                cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name(value="None"))
            ],
        ):
            path = dotted_name(made)
        case _:
            return None
    for line in node.body.body:
        for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(statement, cst.Assign) and any(
                dotted_name(target.target) == path for target in statement.targets
            ):
                return "on the first call", True
    return None


def branch_context(
    ctx: Context, guard: tuple[str, bool] | None, body: cst.BaseSuite | None, *, holds: bool
) -> Context:
    """The context of the branch taken where the test ``holds``."""
    if guard is not None:
        why, seldom_when = guard
        if why == "under a compiling guard":
            # Neither side is the ordinary eager path: one is traced, the other says so.
            return ctx.demote(why).mark("compiling-guard")
        if seldom_when == holds:
            return ctx.demote(why)
    if body is not None and ends_in_raise(body):
        return ctx.demote("on the way to an error").mark("error-message")
    return ctx


def ends_in_raise(body: cst.BaseSuite) -> bool:
    """Does the block always raise?"""
    if not body.body:
        return False
    last: cst.CSTNode = body.body[-1]
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Raise)
