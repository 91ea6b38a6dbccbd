"""The arguments that calls in other modules pass to parameters whose type nothing else shows.

They are looked up only for parameters that the function reads on the host, as in ``float(value)``,
which waits if the value is a tensor. Few callers are looked at, because each has to be interpreted.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.calls.summaries import called_at
from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.judgement.frequency.own_heat import SET_UP
from flake8_torchperf.judgement.frequency.propagation import called_heat
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.values.values import UNKNOWN, Reason, Strength, Tensor, tensor_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.project.module_index import FunctionInfo

CONVERTING = frozenset(("float", "int", "bool"))
_READING = methods_of("reads", "copies-to-host")
# The most functions of a linted file that are looked up, and the most callers interpreted for each.
MAX_ASKED = 12
MAX_CALLERS = 3


class PackageArguments:
    """Finds the arguments for the functions of one module in their callers."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats, callers: PackageCallers) -> None:
        self._analysis = analysis
        self._heats = heats
        self._callers = callers
        self._asked = 0

    def tell(self, functions: Sequence[FunctionInfo]) -> None:
        """Find the arguments of read parameters; heat a function that a loop gives a tensor."""
        for info in functions:
            names = _read_parameters(info, self._analysis)
            if names and self._asked < MAX_ASKED:
                self._asked += 1
                self._tell(info, names)

    def _tell(self, info: FunctionInfo, names: list[str]) -> None:
        sites = [site for site in self._callers.around(info) if site.caller is not None]
        sites.sort(key=lambda site: not site.loops)
        for site in sites[:MAX_CALLERS]:
            caller = site.caller
            if caller is None or caller.key == info.key:
                continue
            probe = self._analysis.watching(info.key)
            interpret_function(caller, probe)
            given = probe.observed.get(called_at(info, caller.module, site.line), {})
            for name in names:
                tensor = tensor_of(given.get(name, UNKNOWN))
                if tensor is not None and tensor.device != "host":
                    told = self._analysis.told.setdefault(info.key, {})
                    told.setdefault(name, _as_given(name, tensor, caller))
                    self._warm(info, site)

    def _warm(self, info: FunctionInfo, site: CallSite) -> None:
        """Heat a helper that a loop elsewhere calls with a tensor, because it waits each round."""
        heat = self._heats.called(info)
        if heat.level >= Level.STEP or heat.cause in SET_UP or site.caller is None:
            return
        heats = self._heats.of_module(site.caller.module)
        if heats.in_steps(info, site):
            self._heats.warm(info, called_heat(info, [site], Level.STEP))
        elif heats.makes_hot(info, site):
            self._heats.warm(info, called_heat(info, [site], Level.COLD))


def _as_given(name: str, tensor: Tensor, caller: FunctionInfo) -> Tensor:
    reason = Reason(
        f"parameter `{name}` is given a tensor by `{caller.qualname}` of {caller.module.name}",
        None,
        None,
        min(tensor.reason.strength, Strength.INFERRED),
    )
    return Tensor(reason, tensor.dtype, "unknown", tensor.scalar)


def _read_parameters(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters that are read on the host and whose type nothing shows."""
    read: dict[str, None] = {}
    for call in info.nodes.of(ast.Call):
        match call:
            case ast.Call(func=ast.Name(id=function), args=[ast.Name(id=name)]):
                if function in CONVERTING:
                    read[name] = None
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                if method in _READING:
                    read[name] = None
    if not read:
        return []
    declared = declared_parameters(info, analysis)
    return [name for name in read if declared.get(name) is UNKNOWN]
