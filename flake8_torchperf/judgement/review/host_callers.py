"""Functions that are given host values by every call in the project, or by some of them.

The callers are interpreted, with the host values that their own callers give them. A call from a
driver of actors, or from a method of a data set, passes host values whatever they are made of.
Where only some calls pass host values, a site names a call for which it waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.interpreter.calls.instances import ATTRIBUTES
from flake8_torchperf.interpreter.calls.summaries import SUMMARIES
from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
from flake8_torchperf.interpreter.inference.parameters import (
    ANY_KEYWORDS,
    declared_parameters,
    on_host,
)
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method
from flake8_torchperf.judgement.fate import FROM_DEVICE
from flake8_torchperf.judgement.frequency.own_heat import SET_UP
from flake8_torchperf.judgement.frequency.propagation import called_from
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.judge import judge
from flake8_torchperf.judgement.review.constructors import HOST, given_host, is_host
from flake8_torchperf.judgement.review.seen_callers import CALLED_UNNAMED, SeenCallers
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.elements import is_loader
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    BESIDE_HOST,
    LOADED,
    STR,
    UNKNOWN,
    Instance,
    Mapping_,
    NDArray,
    NoneValue,
    Scalar,
    Sequence,
    Tensor,
    Union,
    join_all,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.heat import Call
    from flake8_torchperf.judgement.judged_site import Judged, JudgedSite
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo
    from flake8_torchperf.values.values import Value

# The most calls of a function that are followed, and the most levels of callers.
MAX_CALLS = 12
MAX_ABOVE = 3


class HostCallers:
    """Finds the host values that all callers give, for the functions of one module."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats, callers: PackageCallers) -> None:
        self._analysis = analysis
        self._heats = heats
        self._callers = callers
        self._known: dict[str, dict[str, Value]] = {}
        self._driven: dict[str, bool] = {}
        self._seen = SeenCallers(analysis, heats)

    def reviewed(self, result: Judged, info: FunctionInfo, sets_up: SetsUp) -> Judged:
        """Return the sites of a function; those that read host values of all callers are free.

        ``sets_up`` returns True for a call in set-up code, which makes no site wait often.
        """
        if Cause.HOST_CALLERS in self._analysis.ignored or not any(map(_asks, result.sites)):
            return result
        result = self._as_made(result, info)
        unseen = self._heats.called(info).cause in CALLED_UNSEEN
        if unseen and info.name not in CALLED_UNNAMED:
            return result
        if self._is_on_host(info) or (self._is_counted(info) and self._is_driven(info)):
            reads = (site for site in result.sites if "to-device" not in site.traits)
            return _freed(result, set(map(_key, reads)))
        if not self._is_counted(info):
            return result
        given = self._given(info, MAX_ABOVE)
        if given:
            return _freed(result, self._host_reads(result, info, given))
        return self._for_some(result, info, sets_up)

    def _as_made(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites of a method; free where all makers of its object name the host."""
        owner = info.owner
        maker = None if owner is None else find_method(owner, "__init__", self._analysis)
        if owner is None or maker is None or maker.key == info.key:
            return result
        if not any("device" in one.arg for one in named_parameters(maker.info.tree.args)):
            return result
        given = self._given(maker.info, MAX_ABOVE)
        names = [name for name, one in given.items() if one == HOST]
        if not names or not self._are_all_made_here(owner, maker.info):
            return result
        probe = self._analysis.watching(info.key)
        probe.caches = {
            name: one for name, one in probe.caches.items() if name not in OBJECT_CACHES
        }
        probe.agreed.update(given_host(owner, names, self._analysis))
        return _freed(result, self._reads_of(probe, result, info))

    def _host_reads(self, result: Judged, info: FunctionInfo, given: dict[str, Value]) -> _Sites:
        """Return the sites of a function that read host values where these are its arguments."""
        probe = self._analysis.watching(info.key)
        probe.agreed[info.key] = given
        return self._reads_of(probe, result, info)

    def _reads_of(self, probe: Analysis, result: Judged, info: FunctionInfo) -> _Sites:
        """Return the sites of a function that read host values as an analysis has it."""
        there = judge(interpret_function(info, probe), self._heats)
        kept = {_key(site) for site in there.sites if not _on_host(site)}
        return set(map(_key, result.sites)) - kept

    def _for_some(self, result: Judged, info: FunctionInfo, sets_up: SetsUp) -> Judged:
        """Return the sites of a function that some calls give host values.

        A site that reads them names a call for which it waits; it is free if these are all set-up.
        """
        names = _may_be_tensors(info, self._analysis)
        given = {site: self._given_at(info, site, MAX_ABOVE) for site in self._calls(info)}
        found: dict[str, Value] = {}
        for name, declared in names.items():
            here = [one[name] for one in given.values() if name in one]
            if any(map(_holds_host_data, here)):
                found[name] = as_every_call_gives(declared, here)
        waiting = [site for site, one in given.items() if not one.keys() >= found.keys()]
        if not found or not all(map(self._is_seen, waiting)):
            return result
        reads = self._host_reads(result, info, found)
        often = [site for site in waiting if not sets_up(site)]
        if not often:
            # Set-up code seldom waits, but a copy that arrives late is wrong there as well.
            return _freed(result, {one for one in reads if one[1] is not SiteKind.RACE})
        chosen = max(often, key=lambda site: self._certainty(info, site, found.keys()))
        return _naming(result, reads, called_from(chosen))

    def _is_seen(self, site: CallSite) -> bool:
        """True if the caller is known, and something runs it."""
        return site.caller is not None and self._is_reached(site.caller)

    def _certainty(self, info: FunctionInfo, site: CallSite, names: Collection[str]) -> int:
        """Return 2 if a call passes a tensor on a device under one of the names, 1 for a tensor."""
        found = [tensor_of(self._seen.seen_at(info, site).get(name, UNKNOWN)) for name in names]
        return max(0 if one is None else 1 + (one.device == "device") for one in found)

    def _is_counted(self, info: FunctionInfo) -> bool:
        """True if all calls of a function can be found, by its name.

        The programs that use a library may call its public functions with other values. Those
        that a program of the project runs are none of these.
        """
        if info.name.startswith("_") or self._analysis.project.trains:
            return True
        return self._callers.is_run_by_own_program(info)

    def _are_all_made_here(self, owner: ClassInfo, maker: FunctionInfo) -> bool:
        """True if only the project makes objects of a class, of which ``maker`` is the constructor.

        Programs that use a library may make objects of its classes, but not of those of a script.
        """
        program = self._callers.program
        if program.is_found_by_name(owner):
            return False
        if self._analysis.project.trains:
            return True
        return self._callers.is_run_by_own_program(maker) and program.is_of_script(maker)

    def _calls(self, info: FunctionInfo) -> list[CallSite]:
        """Return all calls of a function, none if there may be others or if there are too many."""
        found = self._callers.possible(info) or []
        if not self._analysis.project.trains:
            found = [one for one in found if self._is_own(one)]
        calls = [site for site in found if site.caller is None or site.caller.key != info.key]
        return calls if len(calls) <= MAX_CALLS else []

    def _is_own(self, site: CallSite) -> bool:
        """True for a call that a program of the project may run."""
        return site.caller is None or self._callers.is_run_by_own_program(site.caller)

    def _is_driven(self, info: FunctionInfo, above: int = MAX_ABOVE) -> bool:
        """True if every call of a function is in a process without a device."""
        known = self._driven.get(info.key)
        if known is not None:
            return known
        self._driven[info.key] = False  # for functions that call each other
        calls = self._calls(info)
        found = bool(calls) and all(self._is_on_host_at(site, above) for site in calls)
        self._driven[info.key] = found
        return found

    def _is_on_host_at(self, site: CallSite, above: int) -> bool:
        """True if a call is in a process without a device."""
        caller = site.caller
        if site.in_data or caller is None:
            return site.in_data
        return self._is_on_host(caller) or (above > 0 and self._is_driven(caller, above - 1))

    def _is_on_host(self, caller: FunctionInfo) -> bool:
        """True for a method of a data set, and for what makes batches."""
        return self._callers.is_of_data(caller) or self._callers.program.collates(caller)

    def _given(self, info: FunctionInfo, above: int) -> dict[str, Value]:
        """Return the parameters that every call gives a host value, with these."""
        known = self._known.get(info.key)
        if known is not None:
            return known
        self._known[info.key] = {}  # for functions that call each other
        names = _may_be_tensors(info, self._analysis)
        calls = self._calls(info) if names else []
        given: list[dict[str, Value]] = []
        for site in calls:
            given.append(self._given_at(info, site, above))
            names = {name: value for name, value in names.items() if name in given[-1]}
            if not names:
                return {}
        found = {
            name: as_every_call_gives(declared, [one[name] for one in given])
            for name, declared in names.items()
            if any(_holds_host_data(one[name]) for one in given)
        }
        self._known[info.key] = found
        return found

    def _given_at(self, info: FunctionInfo, site: CallSite, above: int) -> dict[str, Value]:
        """Return the arguments of one call that lie on the host."""
        caller = site.caller
        if self._is_on_host_at(site, 0):
            declared = declared_parameters(info, self._analysis)
            return {name: on_host(value) for name, value in declared.items()}
        if caller is None or not self._is_reached(caller):
            return {}
        if not self._seen.is_known(caller):
            self._seen.interpret(caller, self._given(caller, above - 1) if above > 0 else None)
        seen = self._seen.seen_at(info, site)
        rest = info.tree.args.kwarg
        if rest is not None and isinstance(entries := seen.get(rest.arg), Mapping_):
            seen = {**seen, rest.arg: _host_entries(entries)}
        return {
            name: value
            for name, value in seen.items()
            if _holds_host_data(value) or _is_no_tensor(value)
        }

    def _is_reached(self, caller: FunctionInfo) -> bool:
        """True if something runs a caller; what only examples pass shows nothing."""
        if caller.name in CALLED_UNNAMED or self._heats.called(caller).cause in CALLED_UNSEEN:
            return True
        return self._callers.is_used(caller)


# Returns True for a call in set-up code.
SetsUp: TypeAlias = "Callable[[CallSite], bool]"
# Sites by the identity of their node, their kind, and whether they copy to a device.
_Sites: TypeAlias = "set[tuple[int, SiteKind, bool]]"
# Functions that torch or a framework calls.
CALLED_UNSEEN = frozenset((*SET_UP, Cause.STEP_ROOT)) - {Cause.CONVENTION}


# The caches of facts of functions that depend on the arguments of constructors.
OBJECT_CACHES = (ATTRIBUTES.name, SUMMARIES.name)


def _asks(site: JudgedSite) -> bool:
    """True if a site may be reported, and reads a tensor that nothing shows to be on a device."""
    if site.kind is SiteKind.RACE:
        return True  # there is none if the tensor that it copies lies on the host already
    tensor = None if site.operand is None else tensor_of(site.operand)
    placed = tensor is None or tensor.device == "device"
    return site.heat.level > Level.COLD and site.kind in FROM_DEVICE and not placed


def _key(site: JudgedSite) -> tuple[int, SiteKind, bool]:
    """Return what tells a site from others of its function: a copy goes one way or the other."""
    return id(site.node), site.kind, "to-device" in site.traits


def _freed(result: Judged, sites: _Sites) -> Judged:
    """Return the sites of a function, those given made free; a race among them is none."""
    found = ((site, _asks(site) and _key(site) in sites) for site in result.sites)
    return replace(
        result,
        sites=tuple(
            _as_free(site) if free else site
            for site, free in found
            if not free or site.kind is not SiteKind.RACE
        ),
    )


def _naming(result: Judged, sites: _Sites, call: Call) -> Judged:
    """Return the sites of a function, those given with the call for which they wait."""
    return replace(
        result,
        sites=tuple(
            site.heated(replace(site.heat, calls=(call,)))
            if _asks(site) and _key(site) in sites
            else site
            for site in result.sites
        ),
    )


def _as_free(site: JudgedSite) -> JudgedSite:
    """Return a site that reads a host value."""
    operand = site.operand
    if isinstance(operand, Tensor):
        operand = replace(operand, device="host")
    return replace(site.cooled(Cause.HOST_CALLERS), operand=operand)


def _on_host(site: JudgedSite) -> bool:
    """True for a read of a host tensor; a copy to a device is made of one."""
    if "to-device" in site.traits or site.kind is SiteKind.RACE:
        return False
    return isinstance(site.operand, Tensor) and site.operand.device in ("host", BESIDE_HOST)


def _may_be_tensors(info: FunctionInfo, analysis: Analysis) -> dict[str, Value]:
    """Return the parameters that are tensors or devices, or of which nothing is known."""
    declared = declared_parameters(info, analysis)
    return {
        name: value
        for name, value in declared.items()
        if value in (UNKNOWN, ANY_KEYWORDS) or on_host(value) != value or "device" in name
    }


def as_every_call_gives(declared: Value, given: list[Value]) -> Value:
    """Return a parameter as the host values that all calls give it."""
    if any(map(is_host, given)):
        return HOST if all(map(is_host, given)) else UNKNOWN
    if declared == ANY_KEYWORDS:
        return _shared_entries(given)
    if declared is UNKNOWN:
        return join_all(given)
    match declared:
        case Union(options=options):
            return replace(declared, options=tuple(map(on_host, options)))
    shaped = all(isinstance(one, Tensor) and one.scalar is False for one in given)
    host = on_host(declared)
    return replace(host, scalar=False) if shaped and isinstance(host, Tensor) else host


def _host_entries(keywords: Mapping_) -> Mapping_:
    """Return the entries of ``**keywords`` that hold host data or no tensor."""
    found = [(n, one) for n, one in keywords.items if _holds_host_data(one) or _is_no_tensor(one)]
    return Mapping_(STR, UNKNOWN, tuple(found))


def _shared_entries(given: list[Value]) -> Value:
    """Return the entries of ``**keywords`` that all calls give."""
    calls = [dict(one.items) for one in given if isinstance(one, Mapping_)]
    names = [name for name in calls[0] if all(name in one for one in calls)] if calls else []
    return Mapping_(STR, UNKNOWN, tuple((n, join_all([one[n] for one in calls])) for n in names))


def _holds_host_data(value: Value) -> bool:
    """True for a host tensor, an array, or a list of them, and for the host itself."""
    if is_host(value):
        return True
    match value:
        case NDArray():
            return True
        case Instance():
            return is_loader(value)  # its batches lie on the host
        case Tensor(device=device):
            return device == "host"
        case Sequence(items=items, element=element):
            return all(map(_holds_host_data, (element,) if items is None else items or (element,)))
        case Mapping_(items=items, element=element):
            held = [one for _, one in items]
            if element is not UNKNOWN or not held:
                held.append(element)
            return all(map(_holds_host_data, held))
    return value is LOADED


def _is_no_tensor(value: Value) -> bool:
    """True for None and for numbers, which lie on the host where other calls give a tensor."""
    return isinstance(value, (NoneValue, Scalar))
