"""The arguments that calls in other modules pass to parameters whose type nothing else shows.

They are looked up only for parameters that the function reads on the host, as in ``float(value)``,
which waits if the value is a tensor. Few callers are looked at, because each has to be interpreted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.judgement.frequency.own_heat import SET_UP
from flake8_torchperf.judgement.frequency.propagation import called_from, called_heat
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.review.read_parameters import KINDS_OF_READS, masks, positions
from flake8_torchperf.judgement.review.seen_callers import MAX_LOOKED_UP, MAX_SHOWING, SeenCallers
from flake8_torchperf.values.values import (
    COMPARED,
    STR,
    UNKNOWN,
    Function,
    Mapping_,
    Reason,
    Scalar,
    Strength,
    Tensor,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.values import Value


class PackageArguments:
    """Finds the arguments for the functions of one module in their callers."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats, callers: PackageCallers) -> None:
        self._analysis = analysis
        self._heats = heats
        self._callers = callers
        self._asked = 0
        self.seen = SeenCallers(analysis, heats)

    def tell(self, functions: Sequence[FunctionInfo]) -> None:
        """Find the arguments of read parameters; heat a function that a loop gives a tensor."""
        for names_of in KINDS_OF_READS:
            for info in functions:
                names = names_of(info, self._analysis)
                if names and self._asked < MAX_LOOKED_UP:
                    self._asked += 1
                    # The callers in the function's own module may be no suspects.
                    inside = names_of in (positions, masks)
                    own = self._heats.calls(info.module).of(info) if inside else []
                    if names_of is masks:
                        # The arguments that suspects pass are seen when these are interpreted.
                        own = [site for site in own if site.caller not in functions]
                    self._tell(info, names, own, _is_mask if names_of is masks else _is_any)

    def _tell(
        self,
        info: FunctionInfo,
        names: list[str],
        own: list[CallSite],
        counts: Callable[[Value], bool],
    ) -> None:
        """Find the arguments of some parameters; what does not count shows nothing."""
        calls = (*own, *self._callers.around(info))
        sites = [site for site in calls if site.caller is not None]
        sites.sort(key=lambda site: not site.loops)
        seen = [
            (
                site,
                {name: one for name, one in self.seen.given_at(info, site).items() if counts(one)},
            )
            for site in sites[:MAX_SHOWING]
        ]
        for name in names:
            told = [self._note(info, name, one.get(name, UNKNOWN), s.caller) for s, one in seen]
            for (site, values), shown in zip(seen, told, strict=True):
                # A call whose argument is not known gives what the others give.
                if shown or (any(told) and values.get(name, UNKNOWN) is UNKNOWN):
                    self._warm(info, site)
        if not sites and counts is _is_any:
            self._tell_handed(info, names)

    def _tell_handed(self, info: FunctionInfo, names: list[str]) -> None:
        """Find the arguments of a function that is handed on by name, as in ``partial(loss)``.

        The functions that receive it are interpreted. A call that hands it on in a step heats it.
        """
        for giver in self._callers.naming(info)[:MAX_SHOWING]:
            self.seen.look_at(giver)
        for _, call in self.seen.handing(info)[:MAX_SHOWING]:
            if isinstance(call.target, Function):
                self.seen.look_at(call.target.info)
        given = self.seen.given(info)
        for giver, call in self.seen.handing(info):
            told = [self._note(info, name, given.get(name, UNKNOWN), giver) for name in names]
            site = self._callers.place_of(call.node, giver)
            if any(told) and site is not None:
                self._warm(info, site)

    def _note(
        self, info: FunctionInfo, name: str, value: Value, caller: FunctionInfo | None
    ) -> bool:
        """Note what a parameter is given; True if that is a tensor that may lie on the device."""
        if value is COMPARED:  # a mask, if it is one of tensors
            self._analysis.told.setdefault(info.key, {}).setdefault(name, value)
            return True
        values = [value]
        if isinstance(value, Mapping_):
            values = [*(one for _, one in value.items), value.element]
        for tensor in filter(None, map(tensor_of, values)):
            if tensor.device != "host" and caller is not None:
                given = _as_given(name, tensor, caller)
                told = self._analysis.told.setdefault(info.key, {})
                told.setdefault(name, given if value in values else _entries(value, given))
                return True
        return False

    def _warm(self, info: FunctionInfo, site: CallSite) -> None:
        """Heat a helper that a loop elsewhere calls with a tensor, because it waits each round."""
        heat = self._heats.called(info)
        if heat.level >= Level.STEP or heat.cause in SET_UP or site.caller is None:
            return
        if self._heats.in_steps(site):
            self._heats.warm(info, called_heat(info, (called_from(site),), Level.STEP))
        elif self._heats.of_module(site.caller.module).makes_hot(info, site):
            self._heats.warm(info, called_heat(info, (called_from(site),), Level.COLD))


def _is_any(value: Value) -> bool:
    """True for each value."""
    return True


def _is_mask(value: Value) -> bool:
    """True for a mask of tensors, and for what a comparison gives, which may be one."""
    return value is COMPARED or (isinstance(value, Tensor) and value.dtype == "bool")


def _entries(value: Value, given: Tensor) -> Mapping_:
    """Return a dict of tensors that a call passes, with the entries that are known to be none."""
    items = value.items if isinstance(value, Mapping_) else ()
    host = tuple(item for item in items if isinstance(item[1], Scalar) and not item[1].tensor)
    return Mapping_(STR, given, host)


def _as_given(name: str, tensor: Tensor, caller: FunctionInfo) -> Tensor:
    reason = Reason(
        f"parameter `{name}` is given a tensor by `{caller.qualname}` of {caller.module.name}",
        None,
        None,
        min(tensor.reason.strength, Strength.INFERRED),
    )
    return Tensor(reason, tensor.dtype, "unknown", tensor.scalar)
