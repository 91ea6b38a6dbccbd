"""Where parameters lie, by what a function combines them with, and by its callers.

Callers move a batch to a device, or compute with a module's parameters, or their callers do. Only
then is it sure that a read of a parameter waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
from flake8_torchperf.interpreter.inference.combined import places_of
from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.judgement.fate import FROM_DEVICE
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.judge import judge
from flake8_torchperf.judgement.review.seen_callers import SeenCallers
from flake8_torchperf.values.devices import CHOSEN
from flake8_torchperf.values.values import (
    BESIDE_HOST,
    UNKNOWN,
    Mapping_,
    Sequence,
    Tensor,
    Union,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.judged_site import Judged, JudgedSite
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.site import SiteKind

# The most calls of a function that are followed, and the most levels of callers. One call that
# places a value is enough, and most of the calls of a function are alike.
MAX_CALLS = 3
MAX_ABOVE = 3
PLACED = ("device", CHOSEN)
SHOWN = (*PLACED, BESIDE_HOST)


class PlacingCallers:
    """Finds the values that callers place, for the functions of one module."""

    def __init__(
        self,
        analysis: Analysis,
        heats: FunctionHeats,
        callers: PackageCallers,
    ) -> None:
        self._analysis = analysis
        self._heats = heats
        self._callers = callers
        self._seen = SeenCallers(analysis, heats)
        self._known: dict[str, dict[str, Value]] = {}

    def reviewed(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites of a function, with where the values lie that callers place."""
        if not any(map(_asks, result.sites)):
            return result
        given = self._given(info, MAX_ABOVE)
        if not given:
            return result
        probe = self._analysis.watching(info.key)
        probe.agreed[info.key] = given
        there = {
            (id(site.node), site.kind): site
            for site in judge(interpret_function(info, probe), self._heats).sites
            if (tensor := _tensor(site)) is not None and tensor.device in SHOWN
        }
        return replace(result, sites=tuple(_placed(site, there) for site in result.sites))

    def _given(self, info: FunctionInfo, above: int) -> dict[str, Value]:
        """Return the parameters that are shown to be placed, each with such a value."""
        known = self._known.get(info.key)
        if known is not None:
            return known
        self._known[info.key] = {}  # for functions that call each other
        declared = declared_parameters(info, self._analysis)
        names = [name for name, value in declared.items() if _may_be_placed(value)]
        combined = places_of(info.node, self._analysis)
        found: dict[str, Value] = {
            name: replace(tensor, device=combined[name])
            for name in names
            if name in combined and (tensor := tensor_of(declared[name])) is not None
        }
        for site in self._calls(info) if names else ():
            given = self._given_at(info, site, above)
            found |= {
                name: given[name]
                for name in names
                if name not in found and _is_placed(given.get(name, UNKNOWN))
            }
        self._known[info.key] = found
        return found

    def _given_at(self, info: FunctionInfo, site: CallSite, above: int) -> dict[str, Value]:
        """Return the arguments of a call, as its caller is given its own."""
        caller = site.caller
        if caller is None:
            return {}
        if not self._seen.is_known(caller):
            self._seen.interpret(caller, self._given(caller, above - 1) if above > 0 else None)
        return self._seen.seen_at(info, site)

    def _calls(self, info: FunctionInfo) -> list[CallSite]:
        """Return the first calls of a function, those in loops first."""
        calls = [site for site in self._callers.leading(info) if site.caller is not None]
        calls.sort(key=lambda site: not site.loops)
        return calls[:MAX_CALLS]


def _asks(site: JudgedSite) -> bool:
    """True if a site may be reported, and nothing shows where the value that it reads lies."""
    tensor = _tensor(site)
    unknown = tensor is not None and tensor.device == "unknown"
    return unknown and site.heat.level > Level.COLD and site.kind in FROM_DEVICE


def _tensor(site: JudgedSite) -> Tensor | None:
    return None if site.operand is None else tensor_of(site.operand)


def _placed(site: JudgedSite, there: dict[tuple[int, SiteKind], JudgedSite]) -> JudgedSite:
    """Return a site with its value where another run of the function has it."""
    found = there.get((id(site.node), site.kind))
    tensor = None if found is None else _tensor(found)
    if found is None or tensor is None or not _asks(site) or not isinstance(site.operand, Tensor):
        return site
    placed = replace(site, operand=replace(site.operand, device=tensor.device))
    return replace(placed, heat=found.heat) if tensor.device == BESIDE_HOST else placed


def _may_be_placed(value: Value) -> bool:
    """True for a parameter of unknown type, a tensor of unknown place, and a container."""
    tensor = tensor_of(value)
    if tensor is not None:
        return tensor.device == "unknown"
    return value is UNKNOWN or isinstance(value, (Sequence, Mapping_))


def _is_placed(value: Value) -> bool:
    """True for a tensor on a device, and for a container of such a tensor."""
    tensor = tensor_of(value)
    if tensor is not None:
        return tensor.device in PLACED
    match value:
        case Sequence(element=element, items=items):
            return any(map(_is_placed, (element, *(items or ()))))
        case Mapping_(element=element, items=named):
            return any(map(_is_placed, (element, *(one for _, one in named))))
        case Union(options=options):
            return any(map(_is_placed, options))
    return False
