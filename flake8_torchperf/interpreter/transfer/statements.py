"""Statements: environments flow through them, split at branches and merge after them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from flake8_torchperf.idioms.first_call import first_only
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.dispatch import evaluate, run_block
from flake8_torchperf.interpreter.engine.place import Pending
from flake8_torchperf.interpreter.events import graph_breaks, host_consumers, transfers
from flake8_torchperf.interpreter.events.guards import (
    GIVEN_AWAY,
    MADE_TEXT,
    NO_GRADIENTS,
    TRACED,
    Guard,
    branch_context,
    ends_in_raise,
    gradients_off,
    guard_of,
    off_after,
    outcome_here,
    sides,
)
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.events.training import accumulation, kept_graphs
from flake8_torchperf.interpreter.inference.from_callers import note_result
from flake8_torchperf.interpreter.stated_types.annotations import annotated
from flake8_torchperf.interpreter.transfer import (
    assignment,
    expressions,
    index_loops,
    loops,
    operators,
    patterns,
)
from flake8_torchperf.interpreter.transfer.kept_growth import kept_growth
from flake8_torchperf.interpreter.transfer.narrowing import narrow, note_outcome
from flake8_torchperf.interpreter.transfer.operators import binary
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.project.import_roots import record_import
from flake8_torchperf.project.module_index import ClassInfo, local_class
from flake8_torchperf.syntax.traversal import DEFINITIONS
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.combining import for_better_reason
from flake8_torchperf.values.environments import (
    Env,
    Exits,
    bind,
    declaration,
    forget,
    merge,
    path_of,
    rejoin,
)
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    NONE,
    UNKNOWN,
    ClassValue,
    Closure,
    Device,
    Imported,
    Opaque,
    Reason,
    Returning,
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionNode


def _return(node: ast.Return, env: Env, ctx: Context) -> Exits:
    result = NONE if node.value is None else evaluate(node.value, env, ctx)
    if ctx.returns is not None and TRACED not in ctx.traits:
        ctx.returns.append(result)
    return Exits(None)


def _break(node: ast.Break, env: Env, ctx: Context) -> Exits:
    return Exits(None, breaks=(env,))


def _continue(node: ast.Continue, env: Env, ctx: Context) -> Exits:
    return Exits(None, continues=(env,))


def _raise(node: ast.Raise, env: Env, ctx: Context) -> Exits:
    """Evaluate an error's text as cold: it is made only once, on the way out."""
    if ctx.sink is None:
        return Exits(None)  # nothing comes after it
    if node.exc is not None:
        evaluate(node.exc, env, ctx.demote(Cause.ERROR).mark("error-message"))
    return Exits(None)


def _expression(node: ast.Expr, env: Env, ctx: Context) -> None:
    if not isinstance(node.value, ast.Constant):  # a docstring
        given = evaluate(node.value, env, ctx.but(unused=node.value))
        assignment.moved_itself(node.value, given, env)


def _assign(node: ast.Assign, env: Env, ctx: Context) -> None:
    value = evaluate(node.value, env, _place_of_value(node, env, ctx))
    for target in node.targets:
        if ctx.loops and len(node.targets) == 1:  # with two names, a round may use the other
            loops.growth(target, node.value, env, ctx)
        if not ctx.loops:
            kept_growth(target, node.value, env, ctx)
        if isinstance(value, Scalar) and value.read is not None:
            _running_total(target, node, value, ctx)
        if ctx.loops and isinstance(node.value, ast.BinOp):
            accumulation.added(node, target, value, ctx)
            kept_graphs.added_part(node, target, ctx)
            loops.averaged(node, value, env, ctx)
        kept_graphs.stored(node, target, ctx)
    if ctx.sink is not None and ctx.analysis.compiled is not None:
        _in_compiled(node, env, ctx)
    little = value is UNKNOWN or (type(value) is Sequence and UNKNOWN in (value.items or ()))
    if value is UNKNOWN and isinstance(node.value, ast.Call):
        value = assignment.renamed(node.targets[0], node.value, env, ctx)
    sized = index_loops.sizes(node.value, value, env, ctx)
    for target in node.targets:
        assignment.assign(target, sized, env, ctx)
    if little:
        _told_later(node, env, ctx)
    if isinstance(node.value, TESTS):
        note_outcome(node.targets[0], node.value, env)


def _told_later(node: ast.Assign, env: Env, ctx: Context) -> None:
    """Note the type of an unknown source by the later use of the name that it is assigned to.

    Examples are ``loss = step(batch)`` and ``loss = out.loss`` above ``loss.backward()``.
    """
    target, source = node.targets[0], node.value
    if isinstance(source, ast.Call):
        if ctx.sink is not None:
            callee = evaluate(source.func, env, ctx.silent())
            note_result(target, callee, env, ctx.analysis)
    elif isinstance(source, (ast.Attribute, ast.Subscript)) and isinstance(target, ast.Name):
        told, path = env.get(target.id), path_of(source)
        if isinstance(told, Tensor) and path is not None and env.get(path) in (None, UNKNOWN):
            env[path] = told


# Expressions that may be tests of types.
TESTS = (ast.Call, ast.Compare, ast.BoolOp, ast.UnaryOp)


def _place_of_value(node: ast.Assign, env: Env, ctx: Context) -> Context:
    """Return the place of an assigned value, marked if the target shows its later use."""
    if ctx.sink is None:
        return ctx
    target = node.targets[0]
    if isinstance(target, ast.Name) and target.id == "_":
        return ctx.but(unused=node.value)
    value = node.value
    if isinstance(value, ast.IfExp):
        value = value.orelse if isinstance(value.body, ast.Constant) else value.body
    match target, value:
        case ast.Name(id=name), ast.Call(func=ast.Attribute(attr=method)):
            copies = method in methods_of("copies-to-host")
            if copies and not ctx.loops and host_consumers.handed_on(name, env, ctx):
                return ctx.mark(GIVEN_AWAY)
    return ctx


def _in_compiled(node: ast.Assign, env: Env, ctx: Context) -> None:
    graph_breaks.note_statement(node, ctx)
    for target in node.targets:
        if isinstance(target, ast.Attribute):
            owner = evaluate(target.value, env, ctx.silent())
            graph_breaks.note_attribute(node, target, owner, ctx)


def _running_total(target: ast.expr, node: ast.Assign, value: Scalar, ctx: Context) -> None:
    """Record ``total = total + loss.item()``."""
    total = node.value
    if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Add):
        return
    path = path_of(target)
    if path is not None and path in (path_of(total.left), path_of(total.right)):
        _accumulation(node, target, value, ctx)


def _accumulation(node: ast.stmt, total: ast.expr, value: Scalar, ctx: Context) -> None:
    if value.read is None or not ctx.loops or not accumulation.runs_up(node, total, value, ctx):
        return
    operand = UNKNOWN if value.tensor is None else value.tensor
    emit(
        ctx,
        SiteKind.HOST_ACCUMULATION,
        "read",
        node,
        operand,
        operand_node=value.read,
        covers=(value.read,),
    )


def _ann_assign(node: ast.AnnAssign, env: Env, ctx: Context) -> None:
    path = path_of(node.target)
    reason = Reason(f"annotation of `{path}`", node)
    stated = annotated(node.annotation, ctx.module, ctx.analysis, reason)
    if node.value is None:
        if path is not None and stated is not UNKNOWN:
            assignment.assign(node.target, stated, env, ctx)
            env[declaration(path)] = stated
        return
    value = evaluate(node.value, env, ctx)
    if value is NONE and isinstance(node.target, ast.Name) and ctx.node is not None:
        # It is None here; the declaration tells what an unknown value is that comes later.
        assignment.assign(node.target, NONE, env, ctx)
        env[declaration(node.target.id)] = stated
        return
    chosen = stated if value is UNKNOWN or _says_less(value, stated) else value
    assignment.assign(node.target, for_better_reason(chosen, stated), env, ctx)


def _says_less(value: Value, stated: Value) -> bool:
    """True for an empty list or None, whose later contents the annotation shows."""
    return stated is not UNKNOWN and (value is NONE or getattr(value, "items", None) == ())


def _aug_assign(node: ast.AugAssign, env: Env, ctx: Context) -> None:
    left = evaluate(node.target, env, ctx)
    right = evaluate(node.value, env, ctx)
    value = binary(node.op, left, right, node, ctx)
    if isinstance(left, Tensor) and isinstance(value, Tensor):
        value = operators.in_place(left, value)
    if ctx.sink is not None and ctx.analysis.compiled is not None:
        graph_breaks.note_statement(node, ctx)
    if isinstance(node.op, ast.Add) and isinstance(right, Scalar) and right.read:
        _accumulation(node, node.target, right, ctx)
    if ctx.loops and not isinstance(right, Scalar):
        accumulation.added(node, node.target, right, ctx)
        kept_graphs.added_part(node, node.target, ctx)
    if tensor_of(left) is not None and tensor_of(value) is not None:
        loops.in_place(node, left, ctx)
    path = path_of(node.target)
    if path is not None:
        if isinstance(node.target, ast.Subscript):
            assignment.assign(node.target, value, env, ctx.silent())
        else:
            assignment.assign(node.target, value, env, ctx)


def _assert(node: ast.Assert, env: Env, ctx: Context) -> Exits:
    if isinstance(node.test, ast.Constant) and not node.test.value:
        return Exits(None)  # ``assert False`` leaves as an error does
    made = node.msg is not None and not isinstance(node.msg, ast.Constant)
    made = made or isinstance(node.test, ast.BoolOp)
    expressions.truth(node.test, env, ctx.mark(MADE_TEXT) if made else ctx, "assert")
    if node.msg is not None and ctx.sink is not None:
        after = narrow(node.test, env, ctx, False)
        place = ctx.demote(Cause.ERROR).mark("error-message")
        evaluate(node.msg, dict(env) if after is None else after, place)
    held = narrow(node.test, env, ctx, True)
    if held is not None:
        env.update(held)
    return Exits(env)


def _delete(node: ast.Delete, env: Env, ctx: Context) -> None:
    for target in node.targets:
        for place in target.elts if isinstance(target, ast.Tuple) else (target,):
            path = path_of(place)
            if path is not None:
                forget(env, path)


def _import(node: ast.Import | ast.ImportFrom, env: Env, ctx: Context) -> None:
    if ctx.function == "<module>":
        return  # the module's map holds its imports
    for name, target in record_import(node, ctx.module.package)[0].items():
        bind(env, name, Imported(target))


def _global(node: ast.Global | ast.Nonlocal, env: Env, ctx: Context) -> None:
    """Change nothing: the name belongs to another scope."""


def _if(node: ast.If, env: Env, ctx: Context) -> Exits:
    return _branch(node, env, ctx, "if")


def _branch(node: ast.If, env: Env, ctx: Context, operation: str, *before: ast.expr) -> Exits:
    if ends_in_raise(node.body) and type(node.body[0]) not in COMPOUND_HANDLERS:
        operation = "if-raise"
    elif ctx.loops and isinstance(node.body[-1], ast.Break):
        operation = "if-break"  # there is no other branch
    expressions.truth(node.test, env, ctx, operation)
    guard = guard_of(node.test, env, ctx) or _first(node, ctx)
    yes = narrow(node.test, env, ctx, True)
    no = narrow(node.test, env, ctx, False)
    here, there = sides(node.test, env, ctx)
    taken = Exits(None)
    if yes is not None:
        taken = run_block(node.body, yes, branch_context(here, guard, node.body, holds=True))
    other = Exits(no)
    elif_ = _elif_of(node)
    if no is not None and elif_ is not None:
        there = branch_context(there, guard, None, holds=False)
        other = _branch(elif_, no, there, "elif", *before, node.test)
    elif no is not None and node.orelse:
        rest = off_after((*before, node.test), ctx) or guard
        other = run_block(node.orelse, no, branch_context(there, rest, node.orelse, holds=False))
    return _after(node.test, guard, taken, other, env, ctx)


def _first(node: ast.If, ctx: Context) -> Guard | None:
    """Return the guard of a branch that only the first call, or its loop's first round, takes."""
    if ctx.sink is None:
        return None  # guards matter only if sites are recorded
    loop = ctx.loops[-1].node if ctx.loops else None
    return Guard(Cause.FIRST_CALL, True) if first_only(node, loop, ctx.node) else None


def _after(
    test: ast.expr,
    guard: Guard | None,
    taken: Exits,
    other: Exits,
    env: Env,
    ctx: Context,
) -> Exits:
    """Join both branches, unless a run of this code takes only one of them.

    The assignments in `if torch.jit.is_scripting():` never reach the code after it.
    """
    holds = outcome_here(test, guard, env, ctx)
    if holds is not None:
        run = taken if holds else other
        if run.env is not None:
            return run
    met = _meet(taken, other)
    if met.env is not None and _calls(test):
        rejoin(env, met.env)
    return met


def _calls(test: ast.expr) -> bool:
    """True if a test or a part of it is a call, as a type test is."""
    if isinstance(test, ast.BoolOp):
        return any(map(_calls, test.values))
    return isinstance(test.operand if isinstance(test, ast.UnaryOp) else test, ast.Call)


def _elif_of(node: ast.If) -> ast.If | None:
    """Return the ``elif``, an ``if`` in the ``else`` that is indented like the first ``if``."""
    match node.orelse:
        case [ast.If(col_offset=column) as inner] if column == node.col_offset:
            return inner
    return None


def _meet(*flows: Exits) -> Exits:
    return Exits(
        merge([flow.env for flow in flows]),
        tuple([env for flow in flows for env in flow.breaks]),
        tuple([env for flow in flows for env in flow.continues]),
    )


def _try(node: ast.Try, env: Env, ctx: Context) -> Exits:
    before = dict(env)
    states: list[Env] = [before]
    body = run_block(node.body, env, ctx, states)
    flows = []
    if node.orelse and body.env is not None:
        after = run_block(node.orelse, body.env, ctx)
        flows.append(Exits(after.env, body.breaks + after.breaks, body.continues + after.continues))
    else:
        flows.append(body)
    start = merge(states) or before
    failed = ctx.demote(Cause.ERROR)
    for handler in node.handlers:
        inside = dict(start)
        if handler.name is not None:
            inside[handler.name] = Opaque("exception")
        flows.append(run_block(handler.body, inside, failed))
    met = _meet(*flows)
    if not node.finalbody:
        return met
    last = run_block(node.finalbody, met.env if met.env is not None else dict(before), ctx)
    env_after = last.env if met.env is not None else None
    return Exits(env_after, met.breaks + last.breaks, met.continues + last.continues)


def _with(node: ast.With | ast.AsyncWith, env: Env, ctx: Context) -> Exits:
    for item in node.items:
        value = evaluate(item.context_expr, env, ctx)
        if isinstance(value, Device):
            ctx = ctx.mark(transfers.ELSEWHERE)
            if transfers.names_accelerator(item.context_expr):
                ctx = ctx.mark(transfers.ACCELERATED)
        elif gradients_off(item.context_expr, ctx.module):
            ctx = ctx.mark(NO_GRADIENTS)
        if item.optional_vars is not None:
            assignment.assign(item.optional_vars, value, env, ctx)
    return run_block(node.body, env, ctx)


def _function(node: FunctionNode, env: Env, ctx: Context) -> Exits:
    name = node.name
    for decorator in node.decorator_list:
        evaluate(decorator, env, ctx.silent())
    closure: Value = Closure(node, id(node), env, ctx.module)
    ctx.analysis.enclosing.append(env)
    if node.returns is not None:
        reason = Reason(f"return annotation of `{name}`", node, source=Source.RETURN_ANNOTATION)
        stated = annotated(node.returns, ctx.module, ctx.analysis, reason)
        closure = closure if stated is UNKNOWN or tensor_of(stated) else Returning(stated)
    bind(env, name, closure)
    if ctx.pending is not None:
        ctx.pending.append(Pending(node, env, ctx))
    return Exits(env)


LOCAL_CLASSES: Cache[int, ClassInfo] = Cache("classes in functions")


def _class(node: ast.ClassDef, env: Env, ctx: Context) -> Exits:
    if ctx.function == "<module>":
        # The functions that a class body defines are interpreted separately.
        run_block([s for s in node.body if not isinstance(s, DEFINITIONS)], dict(env), ctx)
        return Exits(env)
    info = LOCAL_CLASSES.kept(
        ctx.analysis, id(node), lambda: local_class(node, ctx.module, ctx.function)
    )
    bind(env, node.name, ClassValue(info, info.key))
    if ctx.pending is not None:
        ctx.pending.extend(Pending(m.node, env, ctx, m) for m in info.functions)
    return Exits(env)


def _match(node: ast.Match, env: Env, ctx: Context) -> Exits:
    subject = evaluate(node.subject, env, ctx)
    flows = []
    asked = False
    for case in node.cases:
        inside = dict(env)
        patterns.bind_pattern(case.pattern, subject, inside, ctx)
        patterns.narrow_subject(case.pattern, node.subject, inside, ctx)
        if not asked and patterns.compares(case.pattern):
            asked = True
            loops.branch(ctx, "match", node.subject, subject)
        if case.guard is not None:
            expressions.truth(case.guard, inside, ctx, "if")
        flows.append(run_block(case.body, inside, ctx))
    exhaustive = any(patterns.matches_all(c.pattern) and c.guard is None for c in node.cases)
    if not exhaustive:
        flows.append(Exits(env))
    return _meet(*flows)


SIMPLE_HANDLERS: dict[type[ast.stmt], Callable[[Any, Env, Context], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _ann_assign,
    ast.AugAssign: _aug_assign,
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Global: _global,
    ast.Nonlocal: _global,
}
COMPOUND_HANDLERS: dict[type[ast.stmt], Callable[[Any, Env, Context], Exits]] = {
    ast.If: _if,
    ast.For: loops.run_for,
    ast.AsyncFor: loops.run_for,
    ast.While: loops.run_while,
    ast.Try: _try,
    getattr(ast, "TryStar", ast.Try): _try,  # from Python 3.11
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Match: _match,
    ast.Assert: _assert,
}
LEAVING_HANDLERS: dict[type[ast.stmt], Callable[[Any, Env, Context], Exits]] = {
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Break: _break,
    ast.Continue: _continue,
}
