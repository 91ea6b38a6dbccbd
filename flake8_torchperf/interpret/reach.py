"""Which suspects can give a finding at the scope asked for; the others need no look of their own.

Enters the suspects of one module, the rules and the scope; leaves the suspects to interpret. What
runs seldom and holds no loop has only cold sites, and most rules are silent about those. Its calls
may still tell what a function beside it is given: where that is asked, it stays. Must not know what
the code evaluates to.
"""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from flake8_torchperf.interpret.compiled import OWN_TRAITS
from flake8_torchperf.interpret.parameters import declared_parameters
from flake8_torchperf.interpret.values import UNKNOWN, Tensor
from flake8_torchperf.sites.hotness import named_heat, place_heat
from flake8_torchperf.sites.model import Level, SiteKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flake8_torchperf.findings.catalogue import Catalogue
    from flake8_torchperf.interpret.heats import Heats
    from flake8_torchperf.interpret.machine import Machine
    from flake8_torchperf.interpret.unit import Names
    from flake8_torchperf.suspects.modulemap import FunctionInfo

LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.GeneratorExp,
         ast.DictComp)  # fmt: skip
# Calls that run what they are given once per element.
REPEATING = {"map", "filter"}
# Words without one of which a function has no site of that kind; of other kinds nothing is known.
WORDS: dict[SiteKind, frozenset[str]] = {
    SiteKind.DATA_LOADER: frozenset(("DataLoader", "num_workers", "persistent_workers")),
    SiteKind.OPTIMIZER_OPTION: frozenset(
        ("foreach", "fused", "zero_grad", "set_to_none", "lr", "optim")
    ),
    SiteKind.RACE: frozenset(("non_blocking",)),
    # Only at the places that `CompiledCode.concerns` tells: those are kept in any case.
    SiteKind.TRANSFORM: frozenset(),
    SiteKind.RECOMPILE: frozenset(),
}
# The words of a loader: iterated in a loop, it need not be made where it is iterated.
LOADING = WORDS[SiteKind.DATA_LOADER]
# Methods that are called without being named.
UNNAMED = {"forward", "__call__", "__getitem__"}


def reachable(
    suspects: Sequence[FunctionInfo],
    machine: Machine,
    names: Names,
    heats: Heats,
    catalogue: Catalogue,
    scope: Level,
) -> list[FunctionInfo]:
    """The suspects that can have a site some rule objects to, and those that tell of them."""
    spoken = _spoken_of_when_cold(catalogue)
    if scope is Level.COLD or not spoken <= WORDS.keys():
        return list(suspects)
    words = frozenset(word for kind in spoken for word in WORDS[kind])
    kept: list[FunctionInfo] = []
    others: list[FunctionInfo] = []
    for info in suspects:
        wanted = _may_report(info, machine, names, heats, scope) or _holds(info, words)
        (kept if wanted else others).append(info)
    return _with_tellers(kept, others, suspects, machine)


def _spoken_of_when_cold(catalogue: Catalogue) -> frozenset[SiteKind]:
    """The kinds of sites that some rule objects to wherever they stand."""
    return frozenset(
        kind
        for kind, pairs in catalogue.by_kind.items()
        for _, match in pairs
        # What is compiled or transformed is looked at in any case.
        if match.heat is Level.COLD and match.traits.isdisjoint(OWN_TRAITS)
    )


def _may_report(
    info: FunctionInfo, machine: Machine, names: Names, heats: Heats, scope: Level
) -> bool:
    """May a site in this function be warm enough?"""
    if machine.compiled and any(
        machine.compiled.concerns(node) for nodes in info.nodes.by_type().values() for node in nodes
    ):
        return True
    nested = len(info.nodes.of_any(ast.FunctionDef, ast.AsyncFunctionDef)) > 1
    named_hot = any(fnmatchcase(info.name, glob) for glob in names.hot)
    if place_heat(info.module) is not None and not named_hot:
        return nested and bool(names.hot)
    if nested:
        return True
    named = named_heat(info.name, names.hot, names.cold)
    if named is not None and named.level is Level.COLD:
        return False
    if _repeats(info):
        return True
    if scope is Level.LOOP:
        return False
    return max(heats.own(info).level, heats.called(info).level) >= Level.HOT


def _repeats(info: FunctionInfo) -> bool:
    nodes = info.nodes
    return (
        bool(nodes.of_any(*LOOPS))
        or any(name.id in REPEATING for name in nodes.of(ast.Name))
        or any(part.attr in REPEATING for part in nodes.of(ast.Attribute))
    )


def _holds(info: FunctionInfo, words: frozenset[str]) -> bool:
    """Does a function name one of the words, or loop over what may be a loader inside a loop?"""
    nodes = info.nodes
    loaded = len(nodes.of_any(ast.For, ast.While)) > 1 and not words.isdisjoint(LOADING)
    if loaded and any("num_workers" in line for line in info.module.lines):
        return True
    return (
        any(keyword.arg in words for keyword in nodes.of(ast.keyword))
        or any(name.id in words for name in nodes.of(ast.Name))
        or any(part.attr in words for part in nodes.of(ast.Attribute))
        or any(isinstance(c.value, str) and c.value in words for c in nodes.of(ast.Constant))
    )


def _with_tellers(
    kept: list[FunctionInfo],
    others: list[FunctionInfo],
    suspects: Sequence[FunctionInfo],
    machine: Machine,
) -> list[FunctionInfo]:
    """Add the functions that may call one of those kept whose parameters say too little."""
    told = {info.name for info in kept if _asks(info, machine)}
    chosen = {id(info) for info in kept}
    while told:
        callers = [info for info in others if id(info) not in chosen and _calls(info, told)]
        chosen.update(map(id, callers))
        told = {info.name for info in callers if _asks(info, machine)}
    return [info for info in suspects if id(info) in chosen]


def _asks(info: FunctionInfo, machine: Machine) -> bool:
    """Do the calls in its module tell of this function's parameters? See `fill_from_calls`."""
    values = declared_parameters(info, machine).values()
    unknown = UNKNOWN in values
    return unknown or (
        info.name.startswith("_") and any(isinstance(value, Tensor) for value in values)
    )


def _calls(info: FunctionInfo, names: Iterable[str]) -> bool:
    """May this function call one of that name, or hand it on?"""
    nodes = info.nodes
    if any(name.id in names for name in nodes.of(ast.Name)):
        return True
    if any(part.attr in names for part in nodes.of(ast.Attribute)):
        return True
    return not UNNAMED.isdisjoint(names) and _calls_objects(info)


def _calls_objects(info: FunctionInfo) -> bool:
    """``self.layer(x)``, ``layers[0](x)``: a call of something that is no function by its name."""
    methods = {} if info.owner is None else info.owner.methods
    module = info.module
    for call in info.nodes.of(ast.Call):
        func = call.func
        if isinstance(func, ast.Name):
            if not (func.id in module.functions or func.id in module.imports):
                return True
        elif isinstance(func, ast.Attribute):
            if func.attr not in methods and isinstance(func.value, ast.Name):
                return True
        else:
            return True
    return False
