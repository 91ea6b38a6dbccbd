"""Tests that show how often a branch runs: compiling guards, every n steps, errors, options."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.idioms.evaluations import GRADIENTS_OFF, opens
from flake8_torchperf.idioms.first_call import asks_for_steps, returns_kept
from flake8_torchperf.idioms.loop_kinds import STEPPING
from flake8_torchperf.interpreter.events.option_tests import (
    Asker,
    is_never_taken,
    outcome_by_settings,
)
from flake8_torchperf.syntax.compile_guards import asks_for_mode, guarded, leaves
from flake8_torchperf.syntax.names import called_name, dotted_name
from flake8_torchperf.syntax.shape_tests import compared_with_zero, counted_in, is_none, sizes_in
from flake8_torchperf.syntax.traversal import method_calls
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.environments import outcome
from flake8_torchperf.values.values import UNKNOWN, ClassValue, NoneValue, Told, Union

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import ModuleMap
    from flake8_torchperf.values.environments import Env
    from flake8_torchperf.values.values import Value


class Guard(NamedTuple):
    """The reason that a branch seldom runs, and the outcome of the test that leads to it.

    ``row`` names the convention if the cause is one.
    """

    cause: Cause
    holds: bool
    row: str = ""

    def opposite(self) -> Guard:
        """Return the guard of the negated test."""
        return Guard(self.cause, not self.holds, self.row)


# The guard of a test that holds in one of several steps.
EVERY_NTH = Guard(Cause.SOME_STEPS, True)


# The trait of sites where autograd records nothing.
NO_GRADIENTS = "no-gradients"
_GRADIENTS_OFF = {*GRADIENTS_OFF, "torch.set_grad_enabled"}
# The trait of an assertion whose text has to be computed, or that joins several tests:
# torch.compile accepts only a single test with a literal text.
MADE_TEXT = "made-text"
# The trait of a value passed to a function of another library, which works on the host.
GIVEN_AWAY = "given-away"
# The trait of an operation that fails with a tensor on a device, so that it only gets host tensors:
# torch/csrc/utils/tensor_numpy.cpp, "Use Tensor.cpu() to copy the tensor to host memory first".
HOST_ONLY = "host-only"
# The trait of sites in a branch that only a traced or compiled run takes.
TRACED = "traced"


def offers_foreach(ctx: Context) -> bool:
    """True if the function mentions foreach: a loop in it is then a deliberate alternative."""
    if ctx.node is None:
        return False
    return any("foreach" in word for word in ctx.module.nodes(ctx.node).words())


def gradients_off(context: ast.expr, module: ModuleMap) -> bool:
    """True if a ``with`` item or decorator switches autograd off, or may do so."""
    return opens(context, module, _GRADIENTS_OFF)


def guard_of(test: ast.expr, env: Env, ctx: Context) -> Guard | None:
    """Return the guard that a test makes; None if nothing shows how often the test holds.

    Where no sites are recorded, only a test of the run mode counts, and others are not looked at.
    """
    if ctx.sink is None and not _may_ask_for_mode(test, env):
        return None
    return _guard_of(test, env, ctx)


def _may_ask_for_mode(test: ast.expr, env: Env) -> bool:
    """True unless no part of a test is one of the run mode."""
    if isinstance(test, ast.UnaryOp):
        return _may_ask_for_mode(test.operand, env)
    if isinstance(test, ast.BoolOp):
        return any(_may_ask_for_mode(value, env) for value in test.values)
    if isinstance(test, ast.Name) and isinstance(env.get(outcome(test.id)), Told):
        return True
    return asks_for_mode(called_name(test.func if isinstance(test, ast.Call) else test))


def _guard_of(test: ast.expr, env: Env, ctx: Context) -> Guard | None:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp(op=ast.Mod()) as every):
            return EVERY_NTH if _counts_steps(every) else None
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = _guard_of(inner, env, ctx)
            return None if found is None else found.opposite()
        case ast.BoolOp(op=operator, values=values):
            guards = [_guard_of(value, env, ctx) for value in values]
            if isinstance(operator, ast.Or) and EVERY_NTH in guards:
                # Beside every n-th step, an equality asks for a step, such as the last one.
                guards = [
                    EVERY_NTH if guard is None and _is_equality(value) else guard
                    for guard, value in zip(guards, values, strict=True)
                ]
            return _joint_guard(operator, guards)
        case ast.Call(func=func):
            asked = dotted_name(func).rpartition(".")[2].lstrip("_")
            if asks_for_mode(asked):
                return Guard(Cause.TRACING, True)
            found = _by_convention(asked, ctx)
            if found is not None:
                return found
            return (
                Guard(Cause.NEVER_MADE, True) if _asks_for_dead_class(test, ctx) else _on_host(test)
            )
        case ast.Name(id=name) if (found := _told(name, env, ctx)) is not None:
            return found
        case ast.Name() if _is_count(test, ctx):
            return Guard(Cause.NOTHING_TO_DO, False)
        case _ if (found := _by_settings(test, ctx)) is not None:
            return found
        case ast.Name() | ast.Attribute() if (found := _named(test, ctx)) is not None:
            return found
        case ast.Compare():
            found = _guard_of_comparison(test, ctx)
            if found is not None:
                return found
        case ast.BinOp(op=ast.Mod()) as every if _counts_steps(every):
            return Guard(Cause.SOME_STEPS, False)
    return _on_host(test)


def _is_equality(test: ast.expr) -> bool:
    """True for ``step == total``."""
    return isinstance(test, ast.Compare) and [type(one) for one in test.ops] == [ast.Eq]


def _asks_for_dead_class(test: ast.Call, ctx: Context) -> bool:
    """True for ``isinstance(x, C)``, or a tuple of classes, if nothing makes objects of these."""
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, ast.Tuple(elts=kinds)]):
            return bool(kinds) and all(_is_dead_class(kind, ctx) for kind in kinds)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]):
            return _is_dead_class(kind, ctx)
    return False


def _is_dead_class(kind: ast.expr, ctx: Context) -> bool:
    """True if an expression names a class of the project that no live code makes."""
    found: Value = UNKNOWN
    if isinstance(kind, ast.Name) and kind.id in ctx.module.classes:
        found = ClassValue(owner := ctx.module.classes[kind.id], owner.key)
    elif isinstance(kind, (ast.Name, ast.Attribute)):
        found = ctx.analysis.external(ctx.module.qualify(kind))
    return isinstance(found, ClassValue) and not ctx.analysis.is_made(found.info)


def _guard_of_comparison(test: ast.Compare, ctx: Context) -> Guard | None:
    """Return the guard that a comparison makes; comparisons of devices are left to `_on_host`."""
    if len(test.ops) > 1:
        return None
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    match left:
        case ast.Name(id=name) if isinstance(operator, ast.Is) and is_none(right):
            if always_given(name, ctx):
                return Guard(Cause.NEVER_LEFT_OUT, True)
    compared = compared_with_zero(test)
    if compared is not None and _is_count(compared[0], ctx):
        return Guard(Cause.NOTHING_TO_DO, compared[1])
    match left:
        case ast.BinOp(op=ast.Mod()) as every if _counts_steps(every):
            if isinstance(operator, ast.Eq):
                return EVERY_NTH
            if isinstance(operator, (ast.NotEq, ast.Gt)):
                return Guard(Cause.SOME_STEPS, False)
    if asks_for_steps(test):
        return EVERY_NTH
    if not isinstance(operator, ast.Eq):
        return None
    match right:
        case ast.Constant(value=str(form)) if form != "cpu":
            return _by_convention(form, ctx)
    return None


def _is_count(size: ast.expr, ctx: Context) -> bool:
    """True for the count of something, or a name that the function binds to one."""
    if isinstance(size, ast.Name):
        return ctx.node is not None and size.id in sizes_in(ctx.node)
    return counted_in(size) is not None


def _named(flag: ast.Name | ast.Attribute, ctx: Context) -> Guard | None:
    """Return the guard that the name of a flag or an option implies."""
    last = dotted_name(flag).rpartition(".")[2].lstrip("_")
    if asks_for_mode(last):
        return Guard(Cause.TRACING, True)
    return _by_convention(last, ctx)


def _by_convention(flag: str, ctx: Context) -> Guard | None:
    """Return the guard that the table of conventions gives for a flag."""
    row = ctx.analysis.conventions.row("flag", flag)
    if row is None:
        return None
    if row.effect == "branch-cold":
        return Guard(Cause.CONVENTION, True, row.id)
    return None


def _told(name: str, env: Env, ctx: Context) -> Guard | None:
    """Return the guard of a name that stores a test: ``on_host = x.device.type == "cpu"``."""
    told = env.get(outcome(name))
    return _guard_of(told.test, env, ctx) if isinstance(told, Told) else None


def always_given(name: str, ctx: Context) -> bool:
    """True if every recorded call passes this optional parameter a value other than None.

    False for a public function whose callers are not all known, because callers elsewhere may leave
    the parameter out.
    """
    if ctx.node is None or ctx.depth or not ctx.calls:
        return False
    agreed = ctx.analysis.shared_by_all(ctx.calls[-1])
    if agreed is None and ctx.owner is None and not ctx.node.name.startswith("_"):
        return False  # callers elsewhere may use the default
    known = ctx.analysis.given(ctx.calls[-1]) if agreed is None else agreed
    given = known.get(name, UNKNOWN)
    options = given.options if isinstance(given, Union) else (given,)
    return not any(option is UNKNOWN or isinstance(option, NoneValue) for option in options)


def _by_settings(test: ast.expr, ctx: Context) -> Guard | None:
    """Return the guard of a test of an option that has the same outcome for all settings."""
    found = outcome_by_settings(test, Asker(ctx.module, ctx.node, ctx.owner), ctx.analysis)
    return None if found is None else Guard(Cause.SWITCHED_OFF, not found)


def off_after(tests: Sequence[ast.expr], ctx: Context) -> Guard | None:
    """Return the guard of the last ``else`` of a chain, if the chain names all that settings give.

    ``tests`` are those of the whole chain.
    """
    if ctx.sink is None or len(tests) == 1:
        return None
    failed = [(test, False) for test in tests]
    never = is_never_taken(failed, Asker(ctx.module, ctx.node, ctx.owner), ctx.analysis)
    return Guard(Cause.SWITCHED_OFF, False) if never else None


def leads_to_host(test: ast.expr, holds: bool) -> bool:
    """True if a test has this outcome only where tensors lie on the host."""
    guard = _of_devices(test)
    return guard is not None and guard.holds == holds


def _of_devices(test: ast.expr) -> Guard | None:
    """Return the guard of a test that asks for nothing but devices."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            found = _of_devices(inner)
            return None if found is None else found.opposite()
        case ast.BoolOp(op=operator, values=values):
            return _joint_guard(operator, list(map(_of_devices, values)))
    return _on_host(test)


def _on_host(test: ast.expr) -> Guard | None:
    """Return the guard of a test of devices: ``device.type == "cuda"``, ``x.is_cuda``."""
    match test:
        case ast.Compare(
            left=ast.Attribute(attr="type"),
            ops=[ast.In()],
            comparators=[ast.Set(elts=kinds) | ast.Tuple(elts=kinds) | ast.List(elts=kinds)],
        ):
            if any(isinstance(kind, ast.Constant) and kind.value == "cuda" for kind in kinds):
                return Guard(Cause.NO_DEVICE, False)
        case ast.Compare(ops=[op], comparators=[ast.Constant(value=str(text))]):
            kind = text.partition(":")[0]
            if kind in ("cpu", "cuda") and isinstance(op, (ast.Eq, ast.NotEq)):
                return Guard(Cause.NO_DEVICE, (kind == "cpu") == isinstance(op, ast.Eq))
        case ast.Attribute(attr="is_cuda" | "is_cpu" as name):
            return Guard(Cause.NO_DEVICE, name == "is_cpu")
        case ast.Call(func=func) if dotted_name(func) == "torch.cuda.is_available":
            return Guard(Cause.NO_DEVICE, False)
    return None


def _joint_guard(operator: ast.boolop, guards: Sequence[Guard | None]) -> Guard | None:
    """Return the guard that several tests joined by ``and`` or ``or`` make.

    With `a and guard`, the branch runs only if the guard holds. With `a or guard`, it may run
    without the guard, unless ``a`` is a guard as well.
    """
    if len(set(guards)) == 1:
        return guards[0]
    decisive = isinstance(operator, ast.And)
    if all(found is not None and found.holds != decisive for found in guards):
        return next(
            (one for one in guards if one is not None and one.cause is not Cause.TRACING), None
        )
    return next((one for one in guards if one is not None and one.holds == decisive), None)


def _counts_steps(every: ast.BinOp) -> bool:
    """True for ``step % n``, but not for ``x.shape[0] % 2``: a size does not count steps."""
    node = every.left
    while isinstance(node, (ast.BinOp, ast.Subscript)):
        node = node.left if isinstance(node, ast.BinOp) else node.value
    return not (
        isinstance(node, ast.Call) or (isinstance(node, ast.Attribute) and node.attr == "shape")
    )


def sides(test: ast.expr, env: Env, ctx: Context) -> tuple[Context, Context]:
    """Return the contexts of the two branches of a test, where it holds and where it fails.

    A branch that compiled code never takes is marked as uncompiled.
    """
    if not ctx.compiled:
        return ctx, ctx
    taken = guarded(test, _answers(env))
    if taken is None:
        return ctx, ctx
    never = uncompiled(ctx)
    return (ctx, never) if taken else (never, ctx)


def outcome_here(test: ast.expr, guard: Guard | None, env: Env, ctx: Context) -> bool | None:
    """Return the outcome that a test of the run mode has where this code runs; None if unknown.

    ``guard`` is the test's guard. The branch of the other outcome gives this code no value.
    """
    if ctx.compiled:
        return guarded(test, _answers(env))
    traces = guard is not None and guard.cause is Cause.TRACING
    return not guard.holds if guard is not None and traces else None


def uncompiled(ctx: Context) -> Context:
    """Return the context of a place in a compiled function that only eager Python reaches."""
    traits = ctx.traits - {"compiled", "fullgraph"}
    return ctx.but(compiled="", traits=traits).demote(Cause.TRACING)


def _answers(env: Env) -> Callable[[str], bool | None]:
    """Return a lookup from a name that holds a test's outcome to that outcome in compiled code."""

    def answer(name: str) -> bool | None:
        told = env.get(outcome(name))
        return guarded(told.test) if isinstance(told, Told) else None

    return answer


def branch_context(
    ctx: Context, guard: Guard | None, body: Sequence[ast.stmt] | None, *, holds: bool
) -> Context:
    """Return the context of the branch taken if the test's outcome is ``holds``.

    If no sites are recorded, only a tracing guard changes the context.
    """
    if ctx.sink is None and (guard is None or guard.cause is not Cause.TRACING):
        return ctx
    if guard is not None:
        if guard.cause is Cause.TRACING:
            # Neither branch is the ordinary eager path: the test tells traced runs from others.
            place = ctx.demote(guard.cause).mark("compiling-guard")
            return place.mark(TRACED) if guard.holds == holds else place
        if guard.holds == holds:
            if guard.cause is Cause.SOME_STEPS and body and _takes_step(body):
                return ctx  # the other steps accumulate gradients
            return ctx.demote(guard.cause, guard.row)
    if body is not None and ends_in_raise(body):
        return ctx.demote(Cause.ERROR).mark("error-message")
    if body and ctx.loops:
        return _leaving(ctx, body[-1])
    return ctx


def _takes_step(body: Sequence[ast.stmt]) -> bool:
    """True if the block calls ``step()`` or ``zero_grad()`` of anything."""
    return any(method_calls(body, STEPPING))


def _leaving(ctx: Context, last: ast.stmt) -> Context:
    """Return the context of a branch, without the loops that its last statement leaves."""
    if isinstance(last, ast.Break):
        return ctx.but(loops=ctx.loops[:-1])
    return ctx.but(loops=()) if isinstance(last, ast.Return) else ctx


def after_leaving(node: ast.If, env: Env, ctx: Context) -> Context:
    """Return the context after ``if not should_log: return``, as for its ``else``."""
    if ctx.compiled and leaves(node, _answers(env)):
        return uncompiled(ctx)
    if ctx.sink is None or node.orelse or not isinstance(node.body[-1], (ast.Return, ast.Continue)):
        return ctx
    if ctx.node is not None and returns_kept(node, ctx.node):
        return ctx.demote(Cause.MADE_ONCE)
    guard = guard_of(node.test, env, ctx)
    if guard is None or guard.cause is Cause.TRACING:
        return ctx
    return branch_context(ctx, guard, None, holds=False)


# Calls that end the program: sys.exit raises SystemExit, os._exit does not even return.
ENDS_PROGRAM = frozenset(("sys.exit", "os._exit", "os.abort", "exit", "quit"))


def ends_in_raise(body: Sequence[ast.stmt]) -> bool:
    """True if the block ends by raising: ``raise``, ``assert False``, ``torch._assert(False, x)``.

    So does a call of any function with False and a text: ``check(False, f"{n} is too many")``, and
    one that ends the program: ``sys.exit(1)``.
    """
    match body[-1] if body else None:
        case ast.Raise():
            return True
        case ast.Assert(test=ast.Constant(value=False)):
            return True
        case ast.Expr(value=ast.Call(func=func)) if dotted_name(func) in ENDS_PROGRAM:
            return True
        case ast.Expr(value=ast.Call(args=[ast.Constant(value=False), text, *_])):
            literal = isinstance(text, ast.Constant) and isinstance(text.value, str)
            return literal or isinstance(text, (ast.JoinedStr, ast.Lambda))
    return False
