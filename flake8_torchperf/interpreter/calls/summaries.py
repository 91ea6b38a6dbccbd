"""Calls of functions: binds the parameters and interprets the body once per kind of arguments.

The sites of a callee are reported in the callee, not at the call.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.interpreter.calls.attribute_writes import (
    NO_WRITES,
    asked_in,
    asked_of,
    touched,
)
from flake8_torchperf.interpreter.calls.call_log import note
from flake8_torchperf.interpreter.calls.filled_parameters import fill_as_called
from flake8_torchperf.interpreter.calls.given_writes import attributes_written, set_given
from flake8_torchperf.interpreter.calls.return_values import (
    documented,
    reconcile,
    result_of,
    returns_annotation,
    returns_self,
    worth_interpreting,
)
from flake8_torchperf.interpreter.engine.analysis import EVERY_FUNCTION, MAX_CALL_DEPTH
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.engine.dispatch import run_block
from flake8_torchperf.interpreter.engine.followed import CallWatch, may_follow, standing_answer
from flake8_torchperf.interpreter.engine.place import Context, Site
from flake8_torchperf.interpreter.events.guards import TRACED
from flake8_torchperf.interpreter.inference.call_literals import settled_by
from flake8_torchperf.interpreter.inference.parameters import (
    ANY_KEYWORDS,
    declared_parameters,
    default_value,
)
from flake8_torchperf.interpreter.stated_types.annotations import record
from flake8_torchperf.interpreter.stated_types.class_hierarchy import is_abstract
from flake8_torchperf.project.function_facts import IS_LONG, SETS_ATTRIBUTES
from flake8_torchperf.syntax.bindings import binding_statements
from flake8_torchperf.values.combining import held_tensor
from flake8_torchperf.values.environments import bind, forget_inside
from flake8_torchperf.values.values import (
    NONE,
    STR,
    UNKNOWN,
    ClassValue,
    Function,
    Instance,
    Mapping_,
    NDArray,
    NoneValue,
    Reason,
    Sequence,
    Tensor,
    Value,
    join,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.values.arguments import Argument, Arguments
    from flake8_torchperf.values.environments import Env


@dataclass(frozen=True, slots=True)
class Summary:
    """The outcome of a call: its result, and the attributes of ``self`` that it writes.

    ``given`` holds those of its other parameters.

    ``plain`` says that the body makes no opaque call, reads no value and asks for no size that
    depends on data. ``waits`` and ``decided`` are what the call adds to these counts of a budget.
    """

    value: Value
    writes: dict[str, Value] = field(default_factory=dict)
    plain: bool = False
    given: dict[tuple[str, str], Value] = field(default_factory=dict)
    waits: int = 0
    decided: int = 0


def call_function(function: Function, arguments: Arguments, env: Env, ctx: Context) -> Value:
    """Return the result of calling a function of the project; note its writes in ``env``."""
    if ctx.analysis.log is not None:
        given: Env = {}
        skip = takes_bound(function.info, function.bound)
        _bind(function.info, given, arguments, skip=skip)
        note(function, arguments.node, given, ctx)
    if ctx.sink is not None:
        called = ctx.analysis.callees.setdefault(id(arguments.node), {})
        called[function.info.key] = function.info
    written = touched(function, arguments.node, ctx)
    asked = asked_of(written, ctx.asked)
    others = attributes_written(function.info, self_name(function.info), ctx.analysis)
    if arguments.node is ctx.unused and asked is None and not others:
        # The result is not used, and no attribute that it writes is asked for.
        observe(function.info, function.bound, arguments, ctx)
        summary = Summary(NONE)
    else:
        opaque, plain, _, _ = ctx.budget.counts()
        summary = summarise(function, arguments, asked, ctx)
        ctx.budget.opaque_calls = opaque if summary.plain else opaque + 1
        ctx.budget.plain_calls = plain
    for name in written:
        _rewrite(f"{ctx.self_name}.{name}", summary.writes.get(name), env)
    if summary.given:
        skip = takes_bound(function.info, function.bound)
        set_given(function.info, arguments, summary.given, env, ctx, skip=skip)
    collected = {} if ctx.writes is None else ctx.writes
    for name, value in summary.writes.items():
        collected[name] = join(collected[name], value) if name in collected else value
    return summary.value


def _rewrite(path: str, value: Value | None, env: Env) -> None:
    """Join what a call writes to an attribute; drop the attribute if the value is unknown."""
    if path not in env:
        return
    if value is None:
        del env[path]
        forget_inside(env, path)
    else:
        bind(env, path, join(env[path], value))


def call_bound(function: Function, ctx: Context) -> Value:
    """Return the value of a property, or of a method called without arguments."""
    note(function, function.info.tree, {}, ctx)
    opaque, plain, _, _ = ctx.budget.counts()
    summary = summarise(function, None, None, ctx)
    ctx.budget.opaque_calls, ctx.budget.plain_calls = opaque, plain
    return summary.value


def writes_of(info: FunctionInfo, owner: Instance, name: str, ctx: Context) -> dict[str, Value]:
    """Return the values that a method writes to attributes of ``self``, ``name`` among them.

    The method is called with its declared arguments. Only the part of a long method that makes this
    attribute is interpreted.
    """
    if IS_LONG.of(info):
        part = binding_statements(info.node, self_name(info), name)
        if not part or out_of_reach(info, ctx):
            return {}
        place = ctx.but(settled=frozenset())
        return interpret(info, part, _agreed(info, owner, ctx), NO_WRITES, place).writes
    klass = owner.info or info.owner
    asked = NO_WRITES if klass is None else asked_in(info, klass, name, ctx.analysis)
    return summarise(Function(info, info.key, owner), None, asked, ctx).writes


# By function, the attributes that are asked for, the values of its names when it starts, and the
# names whose literals the call gives.
SUMMARIES: Cache[tuple[object, ...], Summary] = Cache("summaries")


def summarise(
    function: Function, arguments: Arguments | None, asked: frozenset[str] | None, ctx: Context
) -> Summary:
    """Return the summary of a call.

    The annotation is used if the call is recursive, too deep or too long to interpret. ``asked``
    names the attributes for which the calls in the function are followed too; None if no attribute
    is asked for.
    """
    info = function.info
    if arguments is not None:
        observe(info, function.bound, arguments, ctx)
    if function.bound is not None and returns_self(info):
        return Summary(function.bound)
    stated = returns_annotation(info, ctx.analysis)
    if stated is not None and not worth_interpreting(stated, info) and asked is None:
        return Summary(stated)
    stack = ctx.analysis.stack
    far = out_of_reach(info, ctx) and not over_elements(info, arguments, ctx)
    stack.cut += far and info.key not in ctx.calls
    if far or IS_LONG.of(info):
        return Summary(UNKNOWN if stated is None else stated)
    if is_abstract(info):
        return Summary(stated or documented(info, ctx.analysis) or UNKNOWN)
    bound = function.bound
    env = _agreed(info, bound, ctx) if arguments is None else entry(info, bound, arguments, ctx)
    known = SUMMARIES.table(ctx.analysis)
    skip = takes_bound(info, bound)
    settled = settled_by(info, arguments, env, skip=skip)
    key = (info.key, asked, tuple(sorted(env.items(), key=lambda item: item[0])), settled)
    # Nearer to where the interpretation starts, more of the calls inside are followed.
    shortened = (*key, ctx.depth)
    cached = known.get(key)
    if cached is None:
        cached = known.get(shortened)
        stack.cut += cached is not None
    if cached is not None:
        ctx.budget.waits += cached.waits
        ctx.budget.decided += cached.decided
        return cached
    cut = stack.cut
    summary = _followed(info, (env, asked, settled), ctx)
    known[key if stack.cut == cut else shortened] = summary
    return summary


# The names of a function as a call gives them, the attributes asked for, the settled parameters.
Given: TypeAlias = "tuple[Env, frozenset[str] | None, frozenset[str]]"
# The kind of question that asks for a summary.
SUMMARY = "summary"


def _followed(info: FunctionInfo, given: Given, ctx: Context) -> Summary:
    """Return the summary of a call, which is recorded with what it gives."""
    if not may_follow(info, ctx.analysis):
        info.ask()
        return summary_of(info, given, ctx)
    answer = standing_answer(info, SUMMARY, given, ctx.analysis, ctx.calls, ctx.depth)
    if answer is not None:
        (value, writes, plain, others), (waits, decided), steps = answer
        budget = ctx.budget
        budget.steps -= steps
        budget.waits, budget.decided = budget.waits + waits, budget.decided + decided
        return Summary(value, writes, plain, dict(others), int(waits), int(decided))
    watch = CallWatch(ctx.analysis, ctx.budget, ctx.calls, ctx.depth)
    summary = summary_of(info, given, ctx)
    watch.note(info, SUMMARY, given, as_outcome(summary))
    return summary


def as_outcome(summary: Summary) -> tuple[object, ...]:
    """Return a summary as a tuple of values."""
    given = tuple(summary.given.items())
    return summary.value, summary.writes, summary.plain, given


def summary_of(info: FunctionInfo, given: Given, ctx: Context) -> Summary:
    """Return the summary of a call by the body; this is no query for the body."""
    env, asked, settled = given
    _, _, waits, decided = ctx.budget.counts()
    body = info.tree.body
    stated = returns_annotation(info, ctx.analysis)
    summary = interpret(info, body, env, asked, ctx.but(settled=settled))
    if settled and summary.value is UNKNOWN and stated is not None:
        # The declared value is that of all calls; this one, in its branch, may return another.
        summary = interpret(info, body, env, asked, ctx.but(settled=frozenset()))
    value = reconcile(summary.value, stated)
    if stated is None and value in (UNKNOWN, NONE):
        value = documented(info, ctx.analysis) or value
    waits, decided = ctx.budget.waits - waits, ctx.budget.decided - decided
    return replace(summary, value=value, waits=waits, decided=decided)


def out_of_reach(info: FunctionInfo, ctx: Context) -> bool:
    """True if the function is already running, or the calls are too deep to follow another."""
    return ctx.depth >= MAX_CALL_DEPTH or info.key in ctx.calls


# How deep a function that calls itself on the elements of a container is followed.
MAX_RECURSION = 3


def over_elements(info: FunctionInfo, arguments: Arguments | None, ctx: Context) -> bool:
    """True if a function calls itself on an element of tensors in a container that it is given."""
    if arguments is None or not ctx.loops or ctx.calls[-1] != info.key:
        return False
    shallow = ctx.depth < MAX_CALL_DEPTH and ctx.calls.count(info.key) < MAX_RECURSION
    return shallow and held_tensor(arguments.value(0)) is not None


def interpret(
    info: FunctionInfo,
    body: list[ast.stmt],
    env: Env,
    asked: frozenset[str] | None,
    ctx: Context,
    sink: list[Site] | None = None,
    me: str = "",
) -> Summary:
    """Return the outcome of running statements of a function; ``me`` names an object to watch."""
    returns: list[Value] = []
    writes: dict[str, Value] = {}
    me = me or self_name(info)
    place = ctx.but(
        module=info.module,
        sink=sink,
        function=info.qualname,
        node=info.tree,
        owner=info.owner,
        self_name=me,
        loops=(),
        demoted=None,
        depth=ctx.depth + 1,
        calls=(*ctx.calls, info.key),
        returns=returns,
        writes=None if asked is None else writes,
        asked=asked,
        pending=None,
    )
    opaque, decided = ctx.budget.opaque_calls, ctx.budget.decided
    flow = run_block(body, dict(env), place)
    plain = ctx.budget.opaque_calls == opaque and ctx.budget.decided == decided
    if flow.env is not None and me:
        # The value of an attribute at the end of the method counts, not an earlier one.
        for name, value in writes.items():
            writes[name] = flow.env.get(f"{me}.{name}", value)
    if flow.env is not None and not any(isinstance(v, Sequence) for v in returns):
        returns.append(NONE)
    if plain:
        plain = not SETS_ATTRIBUTES.of(info)
    written = attributes_written(info, self_name(info), ctx.analysis)
    end = flow.env or {}
    given = {one: end.get(".".join(one), UNKNOWN) for one in written}
    return Summary(result_of(info, returns, env), writes, plain, given)


def takes_bound(info: FunctionInfo, bound: Value | None) -> bool:
    """True if the first parameter of a function is the object that it is bound to."""
    return bound is not None and bool(self_name(info))


def self_name(info: FunctionInfo) -> str:
    """Return the name of a method's first parameter; "" for functions and static methods."""
    if info.owner is None or "staticmethod" in info.decorators:
        return ""
    arguments = [*info.tree.args.posonlyargs, *info.tree.args.args]
    return arguments[0].arg if arguments else ""


def entry(
    info: FunctionInfo, bound: Value | None, arguments: Arguments | None, ctx: Context
) -> Env:
    """Return the environment at the start of a function."""
    env = dict(declared_parameters(info, ctx.analysis))
    me = self_name(info)
    if me and info.owner is not None:
        if "classmethod" in info.decorators or info.name in ("__new__", "__init_subclass__"):
            env[me] = ClassValue(info.owner, info.owner.key)
        elif isinstance(bound, (Instance, Sequence, Mapping_)):
            env[me] = bound
        else:
            reason = Reason(f"`{me}` of `{info.owner.name}`")
            fields = record(info.owner, ctx.analysis, reason)
            env[me] = fields or Instance(info.owner.key, info.owner)
    if arguments is not None:
        _bind(info, env, arguments, skip=bool(me) and bound is not None)
    return env


def _agreed(info: FunctionInfo, bound: Value | None, ctx: Context) -> Env:
    """Return the environment at the start of a function, with what all its calls give it.

    A constructor is given other arguments for the objects of each class below its own.
    """
    env = entry(info, bound, None, ctx)
    shared = ctx.analysis.shared_by_all
    made = shared((bound.name, info.key)) if isinstance(bound, Instance) else None
    fill_as_called(env, (shared(info.key) or {}) if made is None else made, private=False)
    return env


def _bind(info: FunctionInfo, env: Env, arguments: Arguments, *, skip: bool) -> None:
    """Bind call arguments: the caller's knowledge adds to the parameter's declaration."""
    spec = info.tree.args
    names = [a.arg for a in (*spec.posonlyargs, *spec.args)][1 if skip else 0 :]
    for name, argument in zip(names, arguments.placed(), strict=False):
        env[name] = _combine(env.get(name, UNKNOWN), argument)
    known = {*names, *(a.arg for a in spec.kwonlyargs)}
    for name, argument in arguments.keywords.items():
        if name in known:
            env[name] = _combine(env.get(name, UNKNOWN), argument)
    for name, rest in _keywords(info, arguments).items():
        if rest != ANY_KEYWORDS and env.get(name, ANY_KEYWORDS) == ANY_KEYWORDS:
            env[name] = rest
    if arguments.open:
        return
    defaults = dict(zip(reversed(names), reversed(spec.defaults), strict=False))
    by_name = zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    defaults.update({a.arg: default for a, default in by_name if default is not None})
    given = {*names[: len(arguments.positional)], *arguments.keywords}
    for name, default in defaults.items():
        value = None if name in given else default_value(default, info.module)
        if value is not None:
            env[name] = value


def observe(info: FunctionInfo, bound: Value | None, arguments: Arguments, ctx: Context) -> None:
    """Record a call's arguments, as evidence for parameters whose declaration shows nothing.

    Only functions of the linted module, and the watched ones, are recorded. A branch that only a
    traced run takes, ``torch_int(t) if torch.jit.is_tracing() else torch_int(3)``, shows nothing.
    """
    if TRACED in ctx.traits and not ctx.compiled:
        return
    analysis = ctx.analysis
    watched = analysis.watched in (info.key, EVERY_FUNCTION)
    if info.module is not analysis.project.linted and not watched:
        return
    given: Env = {}
    _bind(info, given, arguments, skip=takes_bound(info, bound))
    analysis.stack.shared += 1
    note_call(analysis, info.key, given)
    if watched:
        given.update(_keywords(info, arguments))
        note_call(analysis, called_at(info, ctx.module, arguments.node.lineno), given)


def arguments_of(info: FunctionInfo, arguments: Arguments) -> Env:
    """Return what the parameters of a function are given if a call of an unknown value runs it.

    A function may have become a method there, so only a method's arguments count by position.
    """
    given: Env = {}
    if info.owner is None:
        arguments = replace(arguments, positional=(), open=True)
    _bind(info, given, arguments, skip=bool(self_name(info)))
    given.update(_keywords(info, arguments))
    return given


def _keywords(info: FunctionInfo, arguments: Arguments) -> Env:
    """Return the dict that a call passes as ``**keywords``, if the function takes any."""
    spec = info.tree.args
    if spec.kwarg is None:
        return {}
    named = {one.arg for one in (*spec.args, *spec.kwonlyargs)}
    rest = [(name, one.value) for name, one in arguments.keywords.items() if name not in named]
    return {spec.kwarg.arg: Mapping_(STR, UNKNOWN, tuple(rest))}


def called_at(info: FunctionInfo, module: ModuleMap, line: int) -> object:
    """Return the key under which the arguments of a function's calls in one line are recorded."""
    return info.key, module.name, line


def note_call(analysis: Analysis, key: object, given: Env) -> None:
    """Join the arguments of one more call into those recorded for a function."""
    seen = analysis.observed.setdefault(key, {})
    for name, value in given.items():
        seen[name] = join(seen[name], value) if name in seen else value


def _combine(declared: Value, argument: Argument) -> Value:
    given = argument.value
    if given is UNKNOWN:
        return declared
    if isinstance(given, Tensor) and given.rank:
        # Otherwise the function is interpreted again for each number of dimensions.
        given = replace(given, rank=None)
    if isinstance(declared, Tensor):
        if isinstance(given, Tensor) and given.reason.strength < declared.reason.strength:
            return replace(given, reason=declared.reason)
        # An array in a recorded call outweighs the annotation.
        return given if isinstance(given, (Tensor, NoneValue, NDArray)) else declared
    return given
