"""The suspects that can have a finding in the requested scope; the others are not analysed.

A function that runs seldom and has no loop has only cold sites, and most rules do not report
those. It is analysed anyway if its calls may show the arguments of another chosen function.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import STATEMENTS, loops_may_count
from flake8_torchperf.interpreter.events.debug_switches import DEBUG_SWITCHES
from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.judgement.frequency.own_heat import FINAL
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.review.inner_bodies import waits_in_lambda
from flake8_torchperf.project.module_index import nested_info
from flake8_torchperf.suspects.loop_bodies import repeats, suspect_in_loops
from flake8_torchperf.suspects.nominate import (
    for_training,
    module_level,
    names_that_nominate,
)
from flake8_torchperf.suspects.waiting_signs import converts, decides, indices, masks, places
from flake8_torchperf.suspects.words import JOINING_CALLS, MOVE_CALLS, WAITING_CALLS
from flake8_torchperf.syntax.bindings import bound_in
from flake8_torchperf.syntax.host_expressions import HostNames
from flake8_torchperf.syntax.names import called_name, dotted_name
from flake8_torchperf.syntax.traversal import COMPREHENSIONS, walk
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import UNKNOWN, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.syntax.traversal import Nodes

# A function that contains none of these words has no site of that kind. Other kinds have no words.
KIND_WORDS: dict[SiteKind, frozenset[str]] = {
    SiteKind.DATA_LOADER: frozenset(("DataLoader", "num_workers", "persistent_workers")),
    # The calls that `for_training` recognises show this kind as well.
    SiteKind.OPTIMIZER_OPTION: frozenset(("set_to_none",)),
    SiteKind.RACE: frozenset(("non_blocking",)),
    SiteKind.SWITCH: frozenset((*(n.rpartition(".")[2] for n in DEBUG_SWITCHES), "environ")),
    SiteKind.RECORDED_EVALUATION: frozenset(("eval",)),
    SiteKind.REPEATED_DATA: frozenset(("DataLoader",)),
    # These occur only in code that `CompiledCode.concerns` recognises, which is always analysed.
    SiteKind.TRANSFORM: frozenset(),
    SiteKind.RECOMPILE: frozenset(),
}
# The words of a data loader. A loader that is iterated in a loop may be made in another function.
LOADING = KIND_WORDS[SiteKind.DATA_LOADER]
# Options of optimizers, which may also stand in a dict.
OPTIMIZER_OPTIONS = ("foreach", "fused")
# Functions that make indices on the host.
INDEX_MAKERS = ("linear_sum_assignment", "randperm", "as_tensor", "from_numpy")
# Methods of Python's containers and texts.
_OF_CONTAINERS = frozenset(name for kind in (list, dict, set, str, bytes) for name in dir(kind))
# Methods that are called without being named.
UNNAMED = {"forward", "__call__", "__getitem__"}


class Selection:
    """Chooses among the suspects of one module.

    ``spoken`` holds the kinds of sites that some rule objects to wherever they stand.
    """

    def __init__(
        self,
        module: ModuleMap,
        analysis: Analysis,
        heats: FunctionHeats,
        spoken: frozenset[SiteKind],
    ) -> None:
        self._module = module
        self._analysis = analysis
        self._heats = heats
        self._spoken = spoken
        self._words = frozenset(word for kind in self._spoken for word in KIND_WORDS.get(kind, ()))
        self._nominating = names_that_nominate(module, analysis.called)

    def chosen(self, suspects: Sequence[FunctionInfo], scope: Level) -> list[FunctionInfo]:
        """Return the suspects that can have a finding, and callers that show their arguments."""
        return self._with_givers(self._suspects_chosen(suspects, scope))

    def _suspects_chosen(
        self, suspects: Sequence[FunctionInfo], scope: Level
    ) -> list[FunctionInfo]:
        if self._all_count(scope):
            return list(suspects)
        kept: list[FunctionInfo] = []
        others: list[FunctionInfo] = []
        for info in suspects:
            wanted = self._may_report(info) or self._holds(info.nodes)
            (kept if wanted else others).append(info)
        return _with_tellers(kept, others, suspects, self._analysis)

    def _with_givers(self, chosen: list[FunctionInfo]) -> list[FunctionInfo]:
        """Add functions without suspects that may pass indices made on the host to chosen ones."""
        if not any(self._module.says(name) for name in INDEX_MAKERS):
            return chosen
        known = {id(info) for info in chosen}
        taking = {
            info.name
            for info in chosen
            if _indexes(info.nodes)
            and UNKNOWN in declared_parameters(info, self._analysis).values()
        }
        return [
            info
            for info in self._module.defined
            if id(info) in known or not taking.isdisjoint(info.nodes.words())
        ]

    def unheard(self, suspects: Sequence[FunctionInfo]) -> list[FunctionInfo]:
        """Return the cold suspects that may wait or grow; calls elsewhere may make them hot."""
        return [
            info
            for info in suspects
            if (
                not WAITING_CALLS.isdisjoint(info.nodes.words())
                or not MOVE_CALLS.isdisjoint(info.nodes.words())
                or decides(info.nodes, info.hosts)
                or converts(info.nodes, info.hosts)
                or masks(info.nodes)
                or places(info.nodes)
                or (info.owner is not None and not JOINING_CALLS.isdisjoint(info.nodes.words()))
            )
            and self._heats.own(info).level is Level.COLD
            and self._heats.called(info).level is Level.COLD
        ]

    def module_level(self, scope: Level) -> bool:
        """True if the statements outside functions can have a site that a rule objects to."""
        nodes = module_level(self._module)
        return (
            self._all_count(scope)
            or self._is_compiled(nodes)
            or self._holds(nodes)
            or waits_in_lambda(nodes)
            or (
                repeats(nodes) and suspect_in_loops(HostNames(None, nodes), nodes, self._nominating)
            )
        )

    def _all_count(self, scope: Level) -> bool:
        return scope is Level.COLD or not self._spoken <= KIND_WORDS.keys()

    def _is_compiled(self, nodes: Nodes) -> bool:
        code = self._analysis.compiled
        return code is not None and code.concerns_any(nodes)

    def _may_report(self, info: FunctionInfo) -> bool:
        """True if a site in this function may be hot."""
        if self._is_compiled(info.nodes):
            return True
        if self._heats.own(info).level >= Level.HOT:
            return True
        heat = self._heats.called(info)
        if heat.cause in FINAL:
            return False
        if heat.level >= Level.HOT:
            return True
        if waits_in_lambda(info.nodes):
            return True
        nested = len(info.nodes.of_any(ast.FunctionDef, ast.AsyncFunctionDef)) > 1
        if nested and self._nested_may_be_hot(info):
            return True
        cold = heat.level is Level.COLD and heat.around is Level.COLD
        if cold and not self._loops_may_count(info):
            return False
        return repeats(info.nodes) and suspect_in_loops(info.hosts, info.nodes, self._nominating)

    def _loops_may_count(self, info: FunctionInfo) -> bool:
        """True if loops of a cold function may go over elements or steps, or call a model."""
        if loops_may_count(info) or self._heats.step_loops(info):
            return True
        inside = walk(info.nodes.of_any(*STATEMENTS, *COMPREHENSIONS))
        return any(
            isinstance(node, ast.Call) and self._may_be_model(node.func, info) for node in inside
        )

    def _may_be_model(self, called: ast.expr, info: FunctionInfo) -> bool:
        """True if a variable, an attribute or a container may hold what a function calls."""
        match called:
            case ast.Name(id=name):
                return name in bound_in(info.node) or name in self._module.constants
            case ast.Attribute(value=owner, attr=name):
                if name in _OF_CONTAINERS or name in self._analysis.table.method_names():
                    return False
                if info.owner is not None and name in info.owner.methods:
                    return False
                return dotted_name(owner).partition(".")[0] not in self._module.imports
        return isinstance(called, ast.Subscript)

    def _nested_may_be_hot(self, info: FunctionInfo) -> bool:
        """True if a function nested in this one may run more often than this one.

        The methods of a nested class always may.
        """
        if info.nodes.of(ast.ClassDef):
            return True
        return any(
            self._heats.nested(nested_info(node, info.qualname, info.module)).level >= Level.HOT
            for node in info.nodes.of_any(ast.FunctionDef, ast.AsyncFunctionDef)
            if node is not info.node
        )

    @cached_property
    def _speaks_of_workers(self) -> bool:
        """True if the module mentions ``num_workers``, the number of processes that load data."""
        return "num_workers" in "".join(self._module.lines)

    def _holds(self, nodes: Nodes) -> bool:
        """True if the nodes may hold a site that a rule objects to wherever it stands.

        That is shown by a word of `KIND_WORDS`, by a loop in a loop that may go over a loader, or
        by the training of a model.
        """
        words = self._words
        loaded = len(nodes.of_any(ast.For, ast.While)) > 1 and not words.isdisjoint(LOADING)
        if loaded and self._speaks_of_workers:
            return True
        if SiteKind.OPTIMIZER_OPTION in self._spoken and _trains(nodes):
            return True
        return not words.isdisjoint(nodes.words()) or any(
            isinstance(c.value, str) and c.value in words for c in nodes.of(ast.Constant)
        )


def _indexes(nodes: Nodes) -> bool:
    """True if something is indexed by a name, alone or among other indices."""
    return any(isinstance(index, ast.Name) for index in indices(nodes))


def _trains(nodes: Nodes) -> bool:
    return any(
        for_training(call) or (call.args and called_name(call.func) == "zero_grad")
        for call in nodes.of(ast.Call)
    ) or any(constant.value in OPTIMIZER_OPTIONS for constant in nodes.of(ast.Constant))


def _with_tellers(
    kept: list[FunctionInfo],
    others: list[FunctionInfo],
    suspects: Sequence[FunctionInfo],
    analysis: Analysis,
) -> list[FunctionInfo]:
    """Add the functions that may call a chosen one whose declared parameters show too little."""
    told = {info.name for info in kept if _asks(info, analysis)}
    chosen = {id(info) for info in kept}
    while told:
        callers = [info for info in others if id(info) not in chosen and _calls(info, told)]
        chosen.update(map(id, callers))
        told = {info.name for info in callers if _asks(info, analysis)}
    return [info for info in suspects if id(info) in chosen]


def _asks(info: FunctionInfo, analysis: Analysis) -> bool:
    """True if the calls in its module may show this function's arguments. See `fill_from_calls`."""
    values = declared_parameters(info, analysis).values()
    unknown = UNKNOWN in values
    return unknown or (
        info.name.startswith("_") and any(isinstance(value, Tensor) for value in values)
    )


def _calls(info: FunctionInfo, names: Iterable[str]) -> bool:
    """True if this function may call a function of one of these names, or pass it on."""
    if not info.nodes.words().isdisjoint(names):
        return True
    return not UNNAMED.isdisjoint(names) and _calls_objects(info)


def _calls_objects(info: FunctionInfo) -> bool:
    """True if a call may be of an object that is no function: ``self.layer(x)``."""
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
