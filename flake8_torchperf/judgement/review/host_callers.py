"""Functions whose calls in the project show that a site is none for all of them, or for some.

They may give host values, numbers, or what a test sends past the site. The callers are interpreted,
with the host values that their own callers give them. A call from a driver of actors, or from a
method of a data set, passes host values whatever they are made of. Where a site is one only for
some calls, it names one of these.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.interpreter.calls.instances import ATTRIBUTES
from flake8_torchperf.interpreter.calls.summaries import SUMMARIES
from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
from flake8_torchperf.interpreter.events.guards import leads_to_host
from flake8_torchperf.interpreter.inference.parameters import (
    declared_parameters,
    on_host,
)
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method
from flake8_torchperf.judgement.frequency.own_heat import SET_UP
from flake8_torchperf.judgement.frequency.propagation import CALLS, called_from
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.judge import judge
from flake8_torchperf.judgement.review.given_values import (
    HOST,
    as_a_call_gives,
    as_every_call_gives,
    given_host,
    holds_host_data,
    host_entries,
    is_no_tensor,
    kind_of,
    kinds_of_calls,
    may_be_tensors,
    sites_given,
    tested_parameters,
    waits_on_device,
)
from flake8_torchperf.judgement.review.seen_callers import (
    CALLED_UNNAMED,
    MAX_AGREEING,
    MAX_GIVING_ABOVE,
    SeenCallers,
)
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.devices import BESIDE_HOST
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    Mapping_,
    Tensor,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.judged_site import Judged, JudgedSite
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.judgement.review.package_heats import PackageHeats
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo
    from flake8_torchperf.values.values import Value


class HostCallers:
    """Finds what the callers give, for the functions of one module."""

    def __init__(
        self,
        analysis: Analysis,
        heats: FunctionHeats,
        callers: PackageCallers,
        package: PackageHeats,
    ) -> None:
        self._analysis = analysis
        self._heats = heats
        self._callers = callers
        self._package = package
        self._known: dict[str, dict[str, Value]] = {}
        # Apart from those of `PackageArguments`, where callers are interpreted without the host
        # values that their own callers give them: each is interpreted once.
        self._seen = SeenCallers(analysis, heats)

    def reviewed(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites of a function; those that are none for all its calls are free."""
        if Cause.HOST_CALLERS in self._analysis.ignored or not self._are_asked(result, info):
            return result
        if self._is_called_on_host(info):
            return _freed_on_host(result)
        result = self._as_made(result, info)
        unseen = self._heats.called(info).cause in CALLED_UNSEEN
        if unseen and info.name not in CALLED_UNNAMED:
            return result
        if self._is_on_host(info) or (self._is_counted(info) and self._is_driven(info)):
            return _freed_on_host(result)
        if self._is_counted(info):
            return self._as_called(result, info, self._calls(info))
        if _rests_on_calls(result) and tested_parameters(info):
            calls = self._callers.possible(info) or []
            if len(calls) <= MAX_AGREEING:
                return self._as_called(result, info, calls, others=True)
        return result

    def _are_asked(self, result: Judged, info: FunctionInfo) -> bool:
        """True if the calls may show that one of the sites of a function is none."""
        if any(map(_may_lie_on_host, result.sites)):
            return True
        warm = any(site.heat.level > Level.COLD for site in result.sites)
        return warm and bool(tested_parameters(info))

    def _as_made(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites of a method; free where all makers of its object name the host."""
        owner = info.owner
        maker = None if owner is None else find_method(owner, "__init__", self._analysis)
        if owner is None or maker is None or maker.key == info.key:
            return result
        if not any("device" in one.arg for one in named_parameters(maker.info.tree.args)):
            return result
        given = self._given(maker.info, MAX_GIVING_ABOVE)
        names = [name for name, one in given.items() if one == HOST]
        if not names or not self._are_all_made_here(owner, maker.info):
            return result
        probe = self._analysis.watching(info.key)
        probe.caches = {
            name: one for name, one in probe.caches.items() if name not in OBJECT_CACHES
        }
        probe.agreed.update(given_host(owner, names, self._analysis))
        there = judge(interpret_function(info, probe), self._heats)
        kept = {_key(site) for site in there.sites if not _reads_host(site)}
        return _freed(result, set(map(_key, result.sites)) - kept)

    def _as_called(
        self, result: Judged, info: FunctionInfo, calls: list[CallSite], *, others: bool = False
    ) -> Judged:
        """Return the sites of a function; those that are none for any of its calls are free.

        A site that is one only for some names one of these; it is free if they are all set-up.
        ``others`` says that programs outside the project may call the function too, so that nothing
        is free.
        """
        given = {site: self._values_at(info, site, unreached=others) for site in calls}
        kinds = kinds_of_calls(given.values())
        there = [self._there(info, kind) for kind in kinds]
        if all(one is None for one in there):
            return result
        by_call = {site: there[kinds.index(kind_of(one, kinds))] for site, one in given.items()}
        if others:
            return result.having(self._for_others(site, info, by_call) for site in result.sites)
        sites = (self._for_calls(site, info, by_call) for site in result.sites)
        return result.having(site for site in sites if site is not None)

    def _for_others(
        self, site: JudgedSite, info: FunctionInfo, by_call: dict[CallSite, _There | None]
    ) -> JudgedSite:
        """Return a site that other programs may make wait, with a call for which it is one.

        Without a call in a step that is one, the site runs as often as the function alone shows.
        """
        if site.heat.cause not in CALLS or not site.heat.calls:
            return site
        waiting = [call for call, there in by_call.items() if there is None or there.waits(site)]
        named = site.heat.calls[0]
        if named in map(called_from, waiting) or named not in map(called_from, by_call):
            return site
        often = [call for call in waiting if self._is_in_steps(call)]
        if not often:
            return site.heated(self._heats.own(info))
        return site.heated(replace(site.heat, calls=(called_from(often[0]),)))

    def _is_in_steps(self, site: CallSite) -> bool:
        """True for a call in a loop, or in a function that a loop or a step runs."""
        caller = site.caller
        if caller is None or site.loops:
            return bool(site.loops)
        return self._heats.called(caller).level >= Level.STEP

    def _for_calls(
        self, site: JudgedSite, info: FunctionInfo, by_call: dict[CallSite, _There | None]
    ) -> JudgedSite | None:
        """Return a site as the calls have it, None for a race that is none.

        ``by_call`` has the sites that are there for each call, or None if it shows nothing.
        """
        if site.heat.level <= Level.COLD and site.kind is not SiteKind.RACE:
            return site
        waiting = [call for call, there in by_call.items() if there is None or there.waits(site)]
        if len(waiting) == len(by_call):
            return site
        often = [call for call in waiting if not self._package.is_set_up(call)]
        if not often:
            if site.kind is SiteKind.RACE:
                # Set-up code seldom waits, but a copy that arrives late is wrong there as well.
                return site if waiting else None
            return _as_free(site)
        if not all(map(self._is_seen, waiting)):
            return site
        named = site.heat.calls[:1]
        chosen = max(often, key=lambda one: (self._certainty(info, one), called_from(one) in named))
        return site.heated(replace(site.heat, calls=(called_from(chosen),)))

    def _values_at(
        self, info: FunctionInfo, site: CallSite, *, unreached: bool
    ) -> dict[str, Value]:
        """Return what is known of the arguments of one call.

        ``unreached`` says whether a call counts that nothing in the project leads to.
        """
        if self._is_on_host_at(site):
            return self._all_on_host(info)
        seen = self._seen_at(info, site, MAX_GIVING_ABOVE, unreached=unreached)
        return as_a_call_gives(info, self._analysis, seen)

    def _all_on_host(self, info: FunctionInfo) -> dict[str, Value]:
        """Return the parameters of a function as a call in a process without a device has them."""
        declared = declared_parameters(info, self._analysis)
        return {name: on_host(value) for name, value in declared.items()}

    def _there(self, info: FunctionInfo, given: dict[str, Value]) -> _There | None:
        """Return the sites of a function with these arguments; None if they show nothing new."""
        sites = sites_given(info, given, self._analysis, self._heats, alone=True)
        if sites is None:
            return None
        run = [one for one in sites if one.heat.hidden_by is not Cause.NEVER_LEFT_OUT]
        return _There(set(map(_key, run)), {_key(one) for one in run if not _reads_host(one)})

    def _is_seen(self, site: CallSite) -> bool:
        """True if the caller is known, and something runs it."""
        return site.caller is not None and self._is_reached(site.caller)

    def _certainty(self, info: FunctionInfo, site: CallSite) -> int:
        """Return 2 if a call passes a tensor on a device, 1 for a tensor."""
        found = [tensor_of(one) for one in self._seen.seen_at(info, site).values()]
        return max((0 if one is None else 1 + (one.device == "device") for one in found), default=0)

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
        return calls if len(calls) <= MAX_AGREEING else []

    def _is_own(self, site: CallSite) -> bool:
        """True for a call that a program of the project may run."""
        return site.caller is None or self._callers.is_run_by_own_program(site.caller)

    def _is_driven(self, start: FunctionInfo) -> bool:
        """True if all calls that lead to a function begin in a process without a device.

        Functions on the way may call each other, as a container of transforms and one that chooses.
        """
        seen, level, begun = {start.key}, [start], False
        for _ in range(MAX_GIVING_ABOVE + 1):
            above: dict[str, FunctionInfo] = {}
            for one in level:
                calls = self._calls(one)
                if not calls:
                    return False
                for site in calls:
                    if self._is_on_host_at(site):
                        begun = True
                    elif site.caller is None:
                        return False
                    else:
                        above[site.caller.key] = site.caller
            level = [one for key, one in above.items() if key not in seen]
            seen.update(above)
            if not level:
                return begun
        return False

    def _is_called_on_host(self, info: FunctionInfo) -> bool:
        """True if all calls of a function stand in branches that only tensors on the host take."""
        calls = self._callers.possible(info) or []
        return bool(calls) and all(
            any(leads_to_host(*test) for test in site.tests) for site in calls
        )

    def _is_on_host_at(self, site: CallSite) -> bool:
        """True if a call is in the worker of a loader, or made there by a data set."""
        return site.in_data or (site.caller is not None and self._is_on_host(site.caller))

    def _is_on_host(self, caller: FunctionInfo) -> bool:
        """True for a method of a data set, and for what makes batches."""
        return self._callers.is_of_data(caller) or self._callers.program.collates(caller)

    def _given(self, info: FunctionInfo, above: int) -> dict[str, Value]:
        """Return the parameters that every call gives a host value, with these."""
        known = self._known.get(info.key)
        if known is not None:
            return known
        self._known[info.key] = {}  # for functions that call each other
        names = may_be_tensors(info, self._analysis)
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
            if any(holds_host_data(one[name]) for one in given)
        }
        self._known[info.key] = found
        return found

    def _given_at(self, info: FunctionInfo, site: CallSite, above: int) -> dict[str, Value]:
        """Return the arguments of one call that lie on the host."""
        if self._is_on_host_at(site):
            return self._all_on_host(info)
        return {
            name: value
            for name, value in self._seen_at(info, site, above).items()
            if holds_host_data(value) or is_no_tensor(value)
        }

    def _seen_at(
        self, info: FunctionInfo, site: CallSite, above: int, *, unreached: bool = False
    ) -> dict[str, Value]:
        """Return the arguments of one call, with what the calls of its caller give that."""
        caller = site.caller
        if caller is None or not (unreached or self._is_reached(caller)):
            return {}
        if not self._seen.is_known(caller):
            self._seen.interpret(caller, self._given(caller, above - 1) if above > 0 else None)
        seen = self._seen.seen_at(info, site)
        rest = info.tree.args.kwarg
        if rest is not None and isinstance(entries := seen.get(rest.arg), Mapping_):
            seen = {**seen, rest.arg: host_entries(entries)}
        return seen

    def _is_reached(self, caller: FunctionInfo) -> bool:
        """True if something runs a caller; what only examples pass shows nothing."""
        if caller.name in CALLED_UNNAMED or self._heats.called(caller).cause in CALLED_UNSEEN:
            return True
        return self._callers.is_used(caller)


@dataclass(frozen=True, slots=True)
class _There:
    """The sites of a function as some arguments have it, and those that don't read the host."""

    run: _Sites
    off_host: _Sites

    def waits(self, site: JudgedSite) -> bool:
        """True if a site is one with these arguments."""
        return _key(site) in (self.off_host if _may_lie_on_host(site) else self.run)


# Sites by the identity of their node, their kind, and whether they copy to a device.
_Sites: TypeAlias = "set[tuple[int, SiteKind, bool]]"
# Functions that torch or a framework calls.
CALLED_UNSEEN = frozenset((*SET_UP, Cause.STEP_ROOT)) - {Cause.CONVENTION}


# The caches of facts of functions that depend on the arguments of constructors.
OBJECT_CACHES = (ATTRIBUTES.name, SUMMARIES.name)


def _may_lie_on_host(site: JudgedSite) -> bool:
    """True if a site may be reported, and reads a tensor that nothing shows to be on a device."""
    if site.kind is SiteKind.RACE:
        return True  # there is none if the tensor that it copies lies on the host already
    tensor = site.tensor
    return tensor is not None and tensor.device != "device" and waits_on_device(site)


def _rests_on_calls(result: Judged) -> bool:
    """True if only a call shows that a site of a function runs often."""
    return any(site.heat.level > Level.COLD and site.heat.cause in CALLS for site in result.sites)


def _names_no_device(site: JudgedSite) -> bool:
    """True for a read, and for a copy that only the other operand asks for: ``x[keep]``."""
    return "to-device" not in site.traits or not isinstance(site.node, ast.Call)


def _key(site: JudgedSite) -> tuple[int, SiteKind, bool]:
    """Return what tells a site from others of its function: a copy goes one way or the other."""
    return *site.key, "to-device" in site.traits


def _freed_on_host(result: Judged) -> Judged:
    """Return the sites of a function that works on the host, free but for those naming a device."""
    return _freed(result, set(map(_key, filter(_names_no_device, result.sites))))


def _freed(result: Judged, sites: _Sites) -> Judged:
    """Return the sites of a function, those given made free; a race among them is none."""
    found = ((site, _may_lie_on_host(site) and _key(site) in sites) for site in result.sites)
    return result.having(
        _as_free(site) if free else site
        for site, free in found
        if not free or site.kind is not SiteKind.RACE
    )


def _as_free(site: JudgedSite) -> JudgedSite:
    """Return a site that reads a host value, or is none as it is called."""
    operand = site.operand
    if isinstance(operand, Tensor) and _may_lie_on_host(site):
        operand = replace(operand, device="host")
    return replace(site.cooled(Cause.HOST_CALLERS), operand=operand)


def _reads_host(site: JudgedSite) -> bool:
    """True for a read of a host tensor; a copy to a device is made of one."""
    if "to-device" in site.traits or site.kind is SiteKind.RACE:
        return False
    return isinstance(site.operand, Tensor) and site.operand.device in ("host", BESIDE_HOST)
