"""Tests that say how seldom their branch runs: compiling guards, every-n-steps, errors, debugging.

Enters the test of an ``if`` and its body; leaves the context of the branch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpret.annotations import dotted_name
from flake8_torchperf.suspects.walk import round_counters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.interpret.environment import Env
    from flake8_torchperf.interpret.machine import Context
    from flake8_torchperf.suspects.modulemap import ModuleMap

# torch.compiler, torch.jit and torch.onnx ask whether Python runs at all
TRACING = {
    "is_compiling", "is_dynamo_compiling", "is_exporting", "is_scripting", "is_tracing",
    "is_in_onnx_export", "is_torchdynamo_compiling",
}  # fmt: skip
# Why a branch never runs where Python executes the code.
TRACING_ONLY = "under a compiling guard"
# The trait of sites in an except block: text made there is about an error.
EXCEPT = "except-block"
# The trait of sites in a lambda: a message given as one is built only when it is asked for.
LATER = "lambda"
# The trait of sites where autograd records nothing.
NO_GRADIENTS = "no-gradients"
_GRADIENTS_OFF = {
    "torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad",
    "torch.autograd.inference_mode", "torch.set_grad_enabled",
}  # fmt: skip
# The trait of an assertion whose text has to be made: torch.compile takes only a literal.
MADE_TEXT = "made-text"
# Words in the name of a flag by which a caller asks for tensors on the host.
MOVING = frozenset(("cpu", "offload"))
# The trait of what is given to a function of another library, which works on the host.
GIVEN_AWAY = "given-away"
# The trait of the branch that only a traced or compiled run takes.
TRACED = "traced"
DEBUGGING = {"debug", "verbose", "debug_mode", "is_debug", "__debug__", "isEnabledFor", "DEBUG"}


def offers_foreach(ctx: Context) -> bool:
    """Does the function around speak of foreach? Then its loop is the other way, for a reason."""
    if ctx.node is None:
        return False
    return any("foreach" in word for word in ctx.module.nodes(ctx.node).words())


def gradients_off(context: ast.expr, module: ModuleMap) -> bool:
    """Does a ``with`` or a decorator switch autograd off, or may it?"""
    called = context.func if isinstance(context, ast.Call) else context
    return module.qualify(called) in _GRADIENTS_OFF


def guard_of(test: ast.expr, env: Env, ctx: Context) -> tuple[str, bool] | None:
    """Why a branch runs seldom, and for which outcome of the test; None for any other test."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp(op=ast.Mod()) as every):
            return ("once in several steps", True) if _counts_steps(every) else None
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = guard_of(inner, env, ctx)
            if found is None:
                return None
            why, holds = found
            return why, not holds
        case ast.BoolOp(op=operator, values=values):
            return _joint_guard(operator, [guard_of(value, env, ctx) for value in values])
        case ast.Call(func=func):
            last = dotted_name(func).rpartition(".")[2].lstrip("_")
            if last in TRACING:
                return TRACING_ONLY, True
            if last in DEBUGGING:
                return "under a debugging switch", True
        case ast.Name() | ast.Attribute():
            last = dotted_name(test).rpartition(".")[2].lstrip("_")
            if last in DEBUGGING:
                return "under a debugging switch", True
            if not MOVING.isdisjoint(last.split("_")):
                return "where a copy to the host is asked for", True
        case ast.Compare(left=ast.BinOp(op=ast.Mod()) as every, ops=[ast.Eq()]):
            if _counts_steps(every):
                return "once in several steps", True
        case ast.Compare(left=left, ops=[ast.Eq()]) if _counted(left, ctx):
            return "in one round of its loop", True
    return _on_host(test)


# Why a branch for a machine without a device costs nothing.
NO_DEVICE = "where there is no device"


def _on_host(test: ast.expr) -> tuple[str, bool] | None:
    """``device.type == "cuda"``, ``x.is_cuda``: one of the branches runs on the host alone."""
    match test:
        case ast.Compare(ops=[op], comparators=[ast.Constant(value=str(text))]):
            kind = text.partition(":")[0]
            if kind in ("cpu", "cuda") and isinstance(op, (ast.Eq, ast.NotEq)):
                return NO_DEVICE, (kind == "cpu") == isinstance(op, ast.Eq)
        case ast.Attribute(attr="is_cuda" | "is_cpu" as name):
            return NO_DEVICE, name == "is_cpu"
        case ast.Call(func=func) if dotted_name(func) == "torch.cuda.is_available":
            return NO_DEVICE, False
    return None


def _joint_guard(
    operator: ast.boolop, guards: Sequence[tuple[str, bool] | None]
) -> tuple[str, bool] | None:
    """The guard that several tests joined by ``and`` or ``or`` make.

    `a and guard`: the branch runs only with the guard. `a or guard`: it may without.
    """
    if len(set(guards)) == 1:
        return guards[0]
    decisive = isinstance(operator, ast.And)
    return next((found for found in guards if found is not None and found[1] == decisive), None)


def _counted(node: ast.expr, ctx: Context) -> bool:
    """``i`` or ``i + 1``, with ``i`` counting the rounds of an enclosing loop."""
    match node:
        case ast.BinOp(left=ast.Name(id=name), right=ast.Constant(value=int())) | ast.Name(id=name):
            return any(name in round_counters(place.node) for place in ctx.loops)
    return False


def _counts_steps(every: ast.BinOp) -> bool:
    """``step % n``, not ``x.shape[0] % 2``: a size says nothing of how often a branch runs."""
    node = every.left
    while isinstance(node, (ast.BinOp, ast.Subscript)):
        node = node.left if isinstance(node, ast.BinOp) else node.value
    return not (
        isinstance(node, ast.Call) or (isinstance(node, ast.Attribute) and node.attr == "shape")
    )


def first_call(node: ast.If) -> tuple[str, bool] | None:
    """``if self.x is None:`` above ``self.x = ...``: what is made there is made once."""
    match node.test:
        case ast.Compare(
            left=ast.Attribute() as made, ops=[ast.Is()], comparators=[ast.Constant(value=None)]
        ):
            path = dotted_name(made)
        case _:
            return None
    for statement in node.body:
        if isinstance(statement, ast.Assign) and any(
            dotted_name(target) == path for target in statement.targets
        ):
            return "on the first call", True
    return None


def branch_context(
    ctx: Context, guard: tuple[str, bool] | None, body: Sequence[ast.stmt] | None, *, holds: bool
) -> Context:
    """The context of the branch taken where the test ``holds``."""
    if guard is not None:
        why, seldom_when = guard
        if why == TRACING_ONLY:
            # Neither side is the ordinary eager path: one is traced, the other says so.
            place = ctx.demote(why).mark("compiling-guard")
            return place.mark(TRACED) if seldom_when == holds else place
        if seldom_when == holds:
            return ctx.demote(why)
    if body is not None and ends_in_raise(body):
        return ctx.demote("on the way to an error").mark("error-message")
    return ctx


def ends_in_raise(body: Sequence[ast.stmt]) -> bool:
    """Does the block always raise?"""
    return bool(body) and isinstance(body[-1], ast.Raise)
