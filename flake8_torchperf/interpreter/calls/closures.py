"""Calls of nested functions and lambdas, in the environment they were defined in.

A body is not interpreted again if its arguments and all the values that it can see are the same.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.calls import summaries
from flake8_torchperf.interpreter.calls.call_log import note
from flake8_torchperf.interpreter.engine.analysis import MAX_CALL_DEPTH
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.dispatch import evaluate, run_block
from flake8_torchperf.interpreter.inference.parameters import parameters_of
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.syntax.traversal import FUNCTIONS, walk
from flake8_torchperf.values.environments import root_of
from flake8_torchperf.values.provenance import MAX_FACTS_TOLD, Reason
from flake8_torchperf.values.values import (
    NONE,
    UNKNOWN,
    Closure,
    Mapping_,
    Sequence,
    Tensor,
    Union,
    Value,
    join,
    join_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.interpreter.engine.place import Context, Site
    from flake8_torchperf.project.module_index import ModuleMap
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.environments import Env


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of running a nested function's body, and the values of its names at the end.

    ``falls_through`` says whether the end of the body is reached. ``opaque_calls``, ``waits`` and
    ``decided`` are the amounts that the body added to the budget's counts.
    """

    value: Value
    env: Env
    falls_through: bool
    opaque_calls: int
    waits: int
    decided: int


def call_closure(closure: Closure, arguments: Arguments, outside: Env, ctx: Context) -> Value:
    """Call a nested function or a lambda in the environment it was defined in."""
    note(closure, arguments.node, {}, ctx)
    if ctx.depth >= MAX_CALL_DEPTH:
        ctx.budget.opaque_calls += 1
        return UNKNOWN
    env, given = _entry(closure, arguments, ctx)
    if closure.module is ctx.analysis.project.linted:
        ctx.analysis.stack.shared += 1
    summaries.note_call(ctx.analysis, closure.key, given)
    this = (closure.key, given)
    if this in ctx.calls:
        ctx.analysis.stack.shared += 1
        return UNKNOWN  # a recursive call with the same arguments shows nothing new
    deeper = ctx.but(
        depth=ctx.depth + 1,
        module=closure.module,
        pending=None,
        calls=(*ctx.calls, this),
        settled=frozenset(),
    )
    if isinstance(closure.node, ast.Lambda):
        if not _stands_in(closure, ctx):
            return _from_elsewhere(closure, env, arguments.node, deeper)
        return evaluate(closure.node.body, env, deeper)
    outcome = _outcome(closure, closure.node.body, env, deeper.but(sink=None, loops=()))
    _write_outer(closure.node.body, closure, outcome.env, ctx)
    inside = isinstance(ctx.node, FUNCTIONS) and closure.node in ctx.node.body
    if outcome.falls_through and inside:
        _fill_outer(closure, outcome.env, outside)
    return outcome.value


def _stands_in(closure: Closure, ctx: Context) -> bool:
    """True if the body of a closure stands in the function that calls it, or beside the call."""
    if closure.module is not ctx.module or ctx.node is None:
        return closure.module is ctx.module
    return ctx.node.lineno <= closure.node.lineno <= (ctx.node.end_lineno or ctx.node.lineno)


def _from_elsewhere(closure: Closure, env: Env, call: ast.AST, ctx: Context) -> Value:
    """Evaluate the body of a lambda that stands elsewhere.

    What waits in a lambda with a name does at the call, and the first site alone is recorded: one
    call is one problem. What waits in one without a name is told where it stands.
    """
    inside: list[Site] = []
    body = closure.node.body
    assert isinstance(body, ast.expr)
    value = evaluate(body, env, ctx.but(sink=None if ctx.sink is None else inside))
    if inside and ctx.sink is not None and _has_name(closure):
        ctx.sink.append(replace(inside[0], node=call, operand_node=None, covers=()))
    return value


def _has_name(closure: Closure) -> bool:
    """True if an assignment binds a lambda."""
    return (closure.node.lineno, closure.node.col_offset) in _named_values(closure.module)


@once_per_module
def _named_values(module: ModuleMap) -> frozenset[tuple[int, int]]:
    """Return the places of the values that assignments of a module bind."""
    nodes = walk([module.tree])
    return frozenset(
        (one.value.lineno, one.value.col_offset) for one in nodes if isinstance(one, ast.Assign)
    )


def _entry(closure: Closure, arguments: Arguments, ctx: Context) -> tuple[Env, Env]:
    """Return the environment at the start of the body, and the part that the call gives."""
    env = dict(closure.env)
    given: Env = {}
    spec = closure.node.args
    names = [parameter.arg for parameter in (*spec.posonlyargs, *spec.args)]
    for parameter, default in parameters_of(spec):
        env[parameter.arg] = UNKNOWN
        if default is not None and not arguments.open:
            env[parameter.arg] = evaluate(default, env, ctx.silent())
    for name, argument in zip(names, arguments.placed(), strict=False):
        given[name] = argument.value
    for name in (*names, *(parameter.arg for parameter in spec.kwonlyargs)):
        if name in arguments.keywords:
            given[name] = arguments.keywords[name].value
    env.update(given)
    return env, given


OUTCOMES: Cache[tuple[object, ...], _Outcome] = Cache("what nested functions gave")


def _outcome(closure: Closure, body: list[ast.stmt], env: Env, ctx: Context) -> _Outcome:
    """Run a body, or return its cached outcome for the same values."""
    if ctx.writes is not None:
        return _run(body, env, ctx)  # a cached outcome has no writes to attributes
    key = (
        closure.key, _named(closure, env), ctx.depth,
        ctx.self_name, None if ctx.owner is None else ctx.owner.key, ctx.traits, ctx.compiled,
    )  # fmt: skip
    known = OUTCOMES.table(ctx.analysis)
    found = known.get(key)
    if found is not None:
        ctx.budget.opaque_calls += found.opaque_calls
        ctx.budget.waits += found.waits
        ctx.budget.decided += found.decided
        return found
    known[key] = _run(body, env, ctx)
    return known[key]


def _named(closure: Closure, env: Env) -> frozenset[tuple[str, Value, tuple[object, ...]]]:
    """Return the values that a body can see, which together decide its outcome.

    These are the values of the names in the body and in the nested functions that it may call.
    ``x.shape`` and ``xs[0]`` are included with ``x`` and ``xs``. Facts about tensors that comparing
    values ignores are added, because messages say where an operand comes from.
    """
    words = _words(closure)
    waiting = [closure]
    seen = {closure.key}
    while waiting:
        waiting.pop()
        for name in env.keys() & words:
            value = env[name]
            if isinstance(value, Closure) and value.key not in seen:
                seen.add(value.key)
                waiting.append(value)
                words |= _words(value)
    return frozenset(
        (path, value, tuple(_remembered(value)))
        for path, value in env.items()
        if path in words or (not path.isidentifier() and root_of(path) in words)
    )


def _remembered(value: Value, depth: int = 0) -> Iterator[object]:
    """Yield the facts about the tensors in a value that equality ignores, such as their reasons."""
    if isinstance(value, Tensor):
        reason: Reason | None = value.reason
        yield value.role, value.chain, value.arrives, value.reason.strength
        for _ in range(MAX_FACTS_TOLD):
            if reason is not None:
                yield reason.fact, reason.node
                reason = reason.because
        return
    for part in _parts(value) if depth < MAX_PARTS_DEPTH else ():
        yield from _remembered(part, depth + 1)


def _parts(value: Value) -> Iterable[Value]:
    match value:
        case Union(options=parts):
            return parts
        case Sequence(element=element, items=items):
            return (element,) if items is None else items
        case Mapping_(element=element, items=named):
            return (element, *(part for _, part in named))
    return ()


# Nested data deeper than this is compared by its values alone.
MAX_PARTS_DEPTH = 3


def _words(closure: Closure) -> frozenset[str]:
    return closure.module.nodes(closure.node).words()


def _run(body: list[ast.stmt], env: Env, ctx: Context) -> _Outcome:
    opaque, plain, waits, decided = ctx.budget.counts()
    returns: list[Value] = []
    flow = run_block(body, env, ctx.but(returns=returns))
    if ctx.budget.decided > decided:
        ctx.budget.opaque_calls += 1
    ctx.budget.plain_calls = plain
    return _Outcome(
        join_all(returns) if returns else NONE,
        flow.env or env,
        flow.env is not None,
        ctx.budget.opaque_calls - opaque,
        ctx.budget.waits - waits,
        ctx.budget.decided - decided,
    )


def _write_outer(body: list[ast.stmt], closure: Closure, env: Env, ctx: Context) -> None:
    """Join the values that a nested function gives its ``nonlocal`` names into the outer ones."""
    if not isinstance(closure.env, dict):
        return
    for statement in body:
        for name in statement.names if isinstance(statement, ast.Nonlocal) else ():
            if name in env and name in closure.env:
                closure.env[name] = join(closure.env[name], env[name])
                ctx.analysis.stack.shared += 1


def _fill_outer(closure: Closure, env: Env, outside: Env) -> None:
    """Update the outer function's lists and dicts with what a nested function puts into them."""
    nodes = closure.module.nodes(closure.node)
    own = {name.id for name in nodes.of(ast.Name) if not _is_read(name)}
    own.update(parameter.arg for parameter in nodes.of(ast.arg))
    for name, value in env.items():
        if isinstance(value, (Sequence, Mapping_)) and name not in own:
            before = outside.get(name)
            if type(before) is type(value) and before != value:
                outside[name] = join(before, value)


def _is_read(node: ast.Name) -> bool:
    """True if the name is read, not bound."""
    return isinstance(node.ctx, ast.Load)
