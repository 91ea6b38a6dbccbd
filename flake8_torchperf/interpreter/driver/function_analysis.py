"""Interprets a suspect function, or the statements at module level, and collects the sites."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_roles import is_kernel
from flake8_torchperf.interpreter.calls import filled_parameters, summaries
from flake8_torchperf.interpreter.calls.other_kinds import is_declared_int
from flake8_torchperf.interpreter.driver.handlers import fill_tables
from flake8_torchperf.interpreter.engine.analysis import Analysis, Budget
from flake8_torchperf.interpreter.engine.dispatch import evaluate, run_block
from flake8_torchperf.interpreter.engine.place import Context, Frame, Interpreted, Pending, Site
from flake8_torchperf.interpreter.events import graph_breaks
from flake8_torchperf.interpreter.inference.from_callers import take_results
from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.interpreter.transfer import assignment
from flake8_torchperf.project.module_index import nested_info
from flake8_torchperf.syntax.positions import Snippet
from flake8_torchperf.syntax.traversal import FUNCTIONS
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.values import (
    NONE,
    UNKNOWN,
    Device,
    Mapping_,
    Scalar,
    Tensor,
    Value,
    join,
)

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.values.environments import Env

fill_tables()

# The most nested functions that are interpreted for one outer function.
MAX_NESTED = 60


def interpret_function(info: FunctionInfo, analysis: Analysis) -> Interpreted:
    """Interpret one function."""
    return interpret_called(info, None, {}, analysis)


def interpret_called(
    info: FunctionInfo, bound: Value | None, given: Env, analysis: Analysis
) -> Interpreted:
    """Interpret a function as it is called: as the method of ``bound``, its parameters ``given``.

    The given values count for parameters that declare nothing.
    """
    snippet = Snippet(info.module.held, [info.node])
    if is_kernel(info):
        return Interpreted(snippet, ())
    sites: list[Site] = []
    pending: list[Pending] = []
    place = Context(
        analysis,
        info.module,
        analysis.begin(),
        sites,
        Frame(info),
        function=info.qualname,
        node=info.node,
        owner=info.owner,
        self_name=summaries.self_name(info),
        calls=(info.key,),
        returns=[],
        pending=pending,
    )
    take_results(info, analysis)
    env = _entry(info, bound, given, place)
    try:
        run_block(info.node.body, dict(env), graph_breaks.entered(place, info.node))
        _run_pending(pending, sites, info.module)
    except RecursionError:
        # Blocks are nested too deep for Python's stack, so the function is not analysed.
        sites.clear()
    return Interpreted(snippet, tuple(sites), analysis.queued)


def _entry(info: FunctionInfo, bound: Value | None, given: Env | None, place: Context) -> Env:
    """Return the parameters by their declarations, by the calls, and by ``given``."""
    analysis = place.analysis
    env = summaries.entry(info, bound, None, place)
    for name, value in analysis.told.get(info.key, {}).items():
        own = env.get(name, NONE)
        if own is UNKNOWN or isinstance(own, Mapping_) or is_declared_int(own):
            env[name] = value
        elif isinstance(own, Tensor) and isinstance(value, Tensor) and own.dtype == "unknown":
            env[name] = replace(own, dtype=value.dtype)
    private = info.name.startswith("_")
    if private or UNKNOWN in env.values():
        filled_parameters.fill_from_calls(env, analysis.given(info.key))
    else:
        filled_parameters.fill_with_numbers(env, analysis.given(info.key))
    if info.key in analysis.agreed:
        filled_parameters.fill_as_called(env, analysis.agreed[info.key], private=private)
    if given:
        filled_parameters.fill_from_calls(env, given)
        env.update((name, given[name]) for name in given if env.get(name) is UNKNOWN)
    return env


def interpret_module(module: ModuleMap, analysis: Analysis) -> Interpreted:
    """Interpret the statements outside functions and classes."""
    body = [s for s in module.tree.body if not isinstance(s, FUNCTIONS)]
    sites: list[Site] = []
    place = Context(analysis, module, analysis.begin(), sites)
    try:
        run_block(body, {}, place)
    except RecursionError:
        sites.clear()
    return Interpreted(Snippet(module.lines, body), tuple(sites), analysis.queued)


def _run_pending(pending: list[Pending], sites: list[Site], module: ModuleMap) -> None:
    """Interpret nested functions in the environment that the outer function left them."""
    seen: set[int] = set()
    while pending and len(seen) < MAX_NESTED:
        item = pending.pop(0)
        if id(item.node) in seen:
            continue
        seen.add(id(item.node))
        # A loop's last pass has its own list of sites, which was copied already: use the unit's.
        place = item.context.but(sink=sites, pending=pending)
        _run_nested(Pending(item.node, item.env, place, item.info), module)


def _run_nested(item: Pending, module: ModuleMap) -> None:
    outer, node = item.context, item.node
    analysis = outer.analysis
    made = nested_info(node, outer.function, module)
    inner = item.info or made
    declared = declared_parameters(inner, analysis)
    demoted = None if outer.demoted is Cause.MADE_ONCE else outer.demoted
    place = outer.but(
        function=made.qualname,
        node=node,
        returns=[],
        demoted=demoted,
        frame=Frame(inner, outer.frame),
    )
    if item.info is not None:
        me = summaries.self_name(inner)
        place = place.but(owner=inner.owner, self_name=me)
        declared = summaries.entry(inner, None, None, place)
    env: Env = {**item.env, **declared}
    filled_parameters.fill_from_calls(env, analysis.given(id(node)))
    run_block(node.body, env, graph_breaks.entered(place, node))


def module_constant(analysis: Analysis, module: ModuleMap, name: str) -> Value:
    """Return the value of a module-level name, by its annotation or else by its assignments."""
    from flake8_torchperf.interpreter.stated_types.annotations import annotated
    from flake8_torchperf.values.values import Reason

    if name in module.annotations:
        reason = Reason(f"annotation of `{name}`")
        stated = annotated(module.annotations[name], module, analysis, reason)
        if stated is not UNKNOWN:
            return stated
    place = Context(analysis, module, Budget(analysis.stack, MODULE_STEPS), None)
    assigned = module.constants.get(name, ())[:MAX_ASSIGNMENTS]
    value: Value | None = None
    for node in assigned:  # `model = DDP(model)` reads the earlier value of the name
        made = evaluate(node, {} if value is None else {name: value}, place)
        if made is UNKNOWN and value is not None and isinstance(node, ast.Call):
            made = assignment.renamed(ast.Name(name), node, {name: value}, place)
        value = made if value is None else join(value, made)
    value = UNKNOWN if value is None else value
    if isinstance(value, Scalar) and value.kind == "str" and "device" in name.lower():
        # DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
        return Device("device") if not value.known else value
    return value


# The budget of steps for one constant, and the most assignments of one name that are evaluated.
MODULE_STEPS = 2_000
MAX_ASSIGNMENTS = 4
