"""One suspect function, or the statements at module level: interpreted once, sites collected.

Enters a function and the machine; leaves its sites and the snippet that can locate them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpret import compiled, expressions, functions, statements
from flake8_torchperf.interpret.contexts import MADE_ONCE
from flake8_torchperf.interpret.heats import nested_heat, nested_info
from flake8_torchperf.interpret.machine import Budget, Context, Machine, Pending
from flake8_torchperf.interpret.parameters import declared_parameters
from flake8_torchperf.interpret.values import (
    UNKNOWN,
    Device,
    Scalar,
    Value,
    join_all,
)
from flake8_torchperf.parse.snippet import Snippet
from flake8_torchperf.sites.called import ONCE
from flake8_torchperf.sites.hotness import (
    MODULE_HEAT,
    RESULT_KEPT,
    is_kernel,
    makes,
    named_heat,
    named_in,
    stays_cold,
)
from flake8_torchperf.sites.model import Level, Site
from flake8_torchperf.sites.places import place_heat
from flake8_torchperf.sites.reads import asked_for
from flake8_torchperf.sites.rounds import in_steps
from flake8_torchperf.sites.steps import PREAMBLES, goes_through_data, makes_steps
from flake8_torchperf.suspects.modulemap import FunctionInfo, FunctionNode
from flake8_torchperf.suspects.walk import FUNCTIONS

if TYPE_CHECKING:
    from flake8_torchperf.interpret.environment import Env
    from flake8_torchperf.interpret.heats import Heats
    from flake8_torchperf.sites.model import Heat
    from flake8_torchperf.suspects.modulemap import ModuleMap

# Nested functions interpreted for one outer function.
MAX_NESTED = 60


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """The sites of one piece of a file, and the snippet they stand in."""

    snippet: Snippet
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """Globs of function names that the user calls hot or cold."""

    hot: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()


def interpret_function(info: FunctionInfo, machine: Machine, names: Names, heats: Heats) -> Unit:
    """Interpret one function."""
    snippet = Snippet(info.module.lines, [info.node])
    if is_kernel(info):
        return Unit(snippet, ())
    sites: list[Site] = []
    pending: list[Pending] = []
    budget = machine.begin()
    place = Context(
        machine,
        info.module,
        budget,
        sites,
        MODULE_HEAT,
        function=info.qualname,
        node=info.node,
        owner=info.owner,
        self_name=functions.self_name(info),
        calls=(info.key,),
        returns=[],
        pending=pending,
    )
    env = functions.entry(info, None, None, place)
    private = info.name.startswith("_")
    if private or UNKNOWN in env.values():
        functions.fill_from_calls(env, machine.given(info.key))
    else:
        functions.fill_with_numbers(env, machine.given(info.key))
    if info.key in machine.agreed:
        functions.fill_as_called(env, machine.agreed[info.key], private=private)
    heat = heats.own(info)
    place = _at(place, info, heat, names)
    place = _compiled(place, info, names)
    try:
        statements.block(info.node.body, dict(env), place)
        _run_pending(pending, sites, info.module, machine, names)
    except RecursionError:
        # Blocks nested deeper than Python's own stack: nothing is known of such a function.
        sites.clear()
    if sites and place.base is heat and (not place.base_stays_cold or makes(info, names.cold)):
        sites = _by_calls(sites, info, heats)
    return Unit(snippet, tuple(map(in_steps, map(asked_for, sites))))


def interpret_module(module: ModuleMap, machine: Machine) -> Unit:
    """Interpret the statements outside functions and classes."""
    body = [s for s in module.tree.body if not isinstance(s, FUNCTIONS)]
    sites: list[Site] = []
    place = Context(machine, module, machine.begin(), sites, MODULE_HEAT)
    try:
        statements.block(body, {}, place)
    except RecursionError:
        sites.clear()
    return Unit(Snippet(module.lines, body), tuple(map(in_steps, map(asked_for, sites))))


def _by_calls(sites: list[Site], info: FunctionInfo, heats: Heats) -> list[Site]:
    """The sites of a function as hot as the calls in its module make it.

    Asked only where there are sites: most functions have none, and the calls need not be known.
    """
    if heats.settled(info):
        return sites
    heat, called = heats.own(info), heats.called(info)
    if called.level is Level.COLD and (info.name in PREAMBLES or called.because.endswith(ONCE)):
        sites = [_of_program(site, called) for site in sites]
    if called is heat and heat.loops:
        return sites
    if not called.loops:
        return [replace(site, heat=called) for site in sites]
    return [_warmed(site, heat, called) for site in sites]


def _of_program(site: Site, once: Heat) -> Site:
    """A site of a function that a program runs once: what is made there entry by entry is cold.

    A loop over steps or data around it repeats it.
    """
    if site.heat.level is not Level.LOOP or site.loops[-1].kind != "comprehension":
        return site
    nodes = [loop.node for loop in site.loops if loop.node is not None]
    if any(makes_steps(loop) or goes_through_data(loop) for loop in nodes):
        return site
    return replace(site, heat=once)


def _warmed(site: Site, heat: Heat, called: Heat) -> Site:
    """A site of a function of which its calls say something else than the function itself."""
    if site.heat is heat:
        return replace(site, heat=called)
    if site.heat.level is Level.LOOP and site.heat.around is max(heat.level, heat.around):
        # Of what only some loop calls it is not known that it is part of a step.
        around = called.around if called.level is Level.STEP else called.level
        around = max(around, heat.level)
        return replace(site, heat=replace(site.heat, around=around))
    return site


def _at(place: Context, info: FunctionInfo, heat: Heat, names: Names) -> Context:
    """The place at the start of a function; where name or file say cold, its loops are cold too."""
    elsewhere = place_heat(info.module)
    if elsewhere is not None and not named_in(info, names.hot):
        return place.but(base=elsewhere, base_stays_cold=True)
    named = named_heat(info, names.hot, names.cold)
    if named is None or (named.level is not Level.COLD and heat.level is Level.COLD):
        return place.but(base=heat, base_stays_cold=heat.level is Level.COLD and stays_cold(info))
    return place.but(base=heat, base_stays_cold=named.level is Level.COLD)


def _compiled(place: Context, info: FunctionInfo, names: Names) -> Context:
    """The place at the start of a function that may be compiled; what is named cold stays cold."""
    named = named_in(info, names.cold)
    code = place.machine.compiled
    traced = code is not None and id(info.node) in code.functions
    elsewhere = place_heat(info.module, compiled=traced)
    aside = elsewhere is not None and "handles graphs" not in elsewhere.because
    inside = info.module.name.partition(".")[0] == "torch" and elsewhere is not None
    return compiled.entered(place, info.node, keep_cold=named or aside or inside)


def _run_pending(
    pending: list[Pending],
    sites: list[Site],
    module: ModuleMap,
    machine: Machine,
    names: Names,
) -> None:
    """Interpret nested functions in the environment that the outer function left them."""
    seen: set[int] = set()
    while pending and len(seen) < MAX_NESTED:
        item = pending.pop(0)
        if id(item.node) in seen:
            continue
        seen.add(id(item.node))
        # A loop's last pass has its own list of sites, already handed on: these go to the unit's.
        place = item.context.but(sink=sites, pending=pending)
        _run_nested(Pending(item.node, item.env, place, item.info), module, machine, names)


def _run_nested(item: Pending, module: ModuleMap, machine: Machine, names: Names) -> None:
    outer, node = item.context, item.node
    made = nested_info(node, outer.function, module)
    inner = item.info or made
    declared = declared_parameters(inner, machine)
    heat = nested_heat(inner, machine, names)
    demoted = "" if outer.demoted == MADE_ONCE else outer.demoted
    place = outer.but(function=made.qualname, node=node, returns=[], demoted=demoted)
    if item.info is not None:
        me = functions.self_name(inner)
        place = place.but(owner=inner.owner, self_name=me)
        declared = functions.entry(inner, None, None, place)
    named = named_heat(inner, names.hot, names.cold)
    own = named is not None or stays_cold(inner)
    if not own and (heat.level is Level.COLD or _never_hot(outer, node)):
        place = place.but(base=outer.base, base_stays_cold=outer.base_stays_cold)
    else:
        place = _at(place, inner, heat, names)
    place = _compiled(place, inner, names)
    env: Env = {**item.env, **declared}
    functions.fill_from_calls(env, machine.given(id(node)))
    statements.block(node.body, env, place)


def _never_hot(outer: Context, node: FunctionNode) -> bool:
    """Does a function stay cold for another reason than that it makes what is called later?

    What it makes and calls itself, it hands on to nobody.
    """
    plain = outer.function.rpartition(".")[2].lstrip("_")
    if not outer.base_stays_cold:
        return False
    made = plain.startswith(MAKERS) or outer.base.because.endswith(RESULT_KEPT)
    if not made or any(word in plain for word in STATE_WORDS):
        return True
    return not node.decorator_list and _only_called(node.name, outer)


def _only_called(name: str, outer: Context) -> bool:
    """Does a function do nothing with the name of one nested in it but call it?"""
    if outer.node is None:
        return False
    called = {id(n.func) for n in ast.walk(outer.node) if isinstance(n, ast.Call)}
    named = [n for n in ast.walk(outer.node) if isinstance(n, ast.Name) and n.id == name]
    return bool(named) and all(id(n) in called for n in named)


# Words in the name of what saves, whatever else it is called.
STATE_WORDS = ("state_dict", "checkpoint", "offload")
# Functions that may return or hand on those nested in them, to be called in each step.
MAKERS = (
    "init__", "new__", "post_init__", "make_", "create_", "build", "configure_", "from_",
    "register", "init_", "setup",
)  # fmt: skip


def module_constant(machine: Machine, module: ModuleMap, name: str) -> Value:
    """What a name assigned at module level is worth: its annotation, else what is assigned."""
    from flake8_torchperf.interpret.annotations import annotated
    from flake8_torchperf.interpret.values import Reason

    if name in module.annotations:
        reason = Reason(f"annotation of `{name}`")
        stated = annotated(module.annotations[name], module, machine, reason)
        if stated is not UNKNOWN:
            return stated
    place = Context(machine, module, Budget(machine.stack, MODULE_STEPS), None, MODULE_HEAT)
    assigned = module.constants.get(name, ())[:MAX_ASSIGNMENTS]
    value = join_all([expressions.evaluate(node, {}, place) for node in assigned])
    if isinstance(value, Scalar) and value.kind == "str" and "device" in name.lower():
        # DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
        return Device("device") if not value.known else value
    return value


# Steps for one constant, and assignments of one name that are looked at.
MODULE_STEPS = 2_000
MAX_ASSIGNMENTS = 4
