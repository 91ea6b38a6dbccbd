"""The arguments that calls in other modules pass to parameters whose type nothing else shows.

They are looked up only for parameters that the function reads on the host, as in ``float(value)``,
which waits if the value is a tensor. Few callers are looked at, because each has to be interpreted.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.calls.other_kinds import is_declared_int
from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.judgement.frequency.own_heat import SET_UP
from flake8_torchperf.judgement.frequency.propagation import called_from, called_heat
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.review.seen_callers import SeenCallers
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.suspects.words import CONVERTING
from flake8_torchperf.values.values import (
    COMPARED,
    STR,
    UNKNOWN,
    Function,
    Mapping_,
    Reason,
    Strength,
    Tensor,
    tensor_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.values import Value

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
        self.seen = SeenCallers(analysis, heats)

    def tell(self, functions: Sequence[FunctionInfo]) -> None:
        """Find the arguments of read parameters; heat a function that a loop gives a tensor."""
        for names_of in (_read_parameters, _tested_parameters, _positions, _repeats):
            for info in functions:
                names = names_of(info, self._analysis)
                if names and self._asked < MAX_ASKED:
                    self._asked += 1
                    inside = names_of is _positions
                    self._tell(info, names, self._own_calls(info) if inside else [])

    def _own_calls(self, info: FunctionInfo) -> list[CallSite]:
        """Return the calls in the function's own module, whose callers may be no suspects."""
        return self._heats.calls(info.module).of(info)

    def _tell(self, info: FunctionInfo, names: list[str], own: list[CallSite]) -> None:
        calls = (*own, *self._callers.around(info))
        sites = [site for site in calls if site.caller is not None]
        sites.sort(key=lambda site: not site.loops)
        seen = [(site, self.seen.given_at(info, site)) for site in sites[:MAX_CALLERS]]
        for name in names:
            told = [self._note(info, name, given.get(name, UNKNOWN), s.caller) for s, given in seen]
            for (site, given), shown in zip(seen, told, strict=True):
                # A call whose argument is not known gives what the others give.
                if shown or (any(told) and given.get(name, UNKNOWN) is UNKNOWN):
                    self._warm(info, site)
        if not sites:
            self._tell_handed(info, names)

    def _tell_handed(self, info: FunctionInfo, names: list[str]) -> None:
        """Find the arguments of a function that is handed on by name, as in ``partial(loss)``.

        The functions that receive it are interpreted. A call that hands it on in a step heats it.
        """
        for giver in self._callers.naming(info)[:MAX_CALLERS]:
            self.seen.look_at(giver)
        for _, call in self.seen.handing(info)[:MAX_CALLERS]:
            if isinstance(call.target, Function):
                self.seen.look_at(call.target.info)
        given = self.seen.given(info)
        for giver, call in self.seen.handing(info):
            told = [self._note(info, name, given.get(name, UNKNOWN), giver) for name in names]
            for site in self._heats.calls(giver.module).at(giver, call.node) if any(told) else ():
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
                told.setdefault(name, Mapping_(STR, given) if value not in values else given)
                return True
        return False

    def _warm(self, info: FunctionInfo, site: CallSite) -> None:
        """Heat a helper that a loop elsewhere calls with a tensor, because it waits each round."""
        heat = self._heats.called(info)
        if heat.level >= Level.STEP or heat.cause in SET_UP or site.caller is None:
            return
        heats = self._heats.of_module(site.caller.module)
        if heats.in_steps(info, site):
            self._heats.warm(info, called_heat(info, (called_from(site),), Level.STEP))
        elif heats.makes_hot(info, site):
            self._heats.warm(info, called_heat(info, (called_from(site),), Level.COLD))


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
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in _READING:
                read.update((name, None) for name in _dict_of(value))
    return _undeclared(read, info, analysis)


def _dict_of(value: ast.expr) -> list[str]:
    """Return the name of the dict whose entry a value is computed from: ``batch["n"].max()``."""
    while True:
        match value:
            case ast.Call(func=ast.Attribute(value=inner)):
                value = inner
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str())):
                return [name]
            case _:
                return []


def _tested_parameters(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters of unknown type that a test compares, or that stand as an index."""
    found: dict[str, None] = {}
    for branch in info.nodes.of_any(ast.If, ast.While, ast.IfExp, ast.Assert):
        match branch.test:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, ORDERING):
                found.update((one.id, None) for one in (left, right) if isinstance(one, ast.Name))
    for item in info.nodes.of(ast.Subscript):
        if isinstance(item.slice, ast.Name) and isinstance(item.value, ast.Name):
            found[item.slice.id] = None
    return _undeclared(found, info, analysis)


def _positions(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters declared to be integers that index a table of the object.

    A loop over ``scheduler.timesteps`` gives ``def step(self, x, t: int)`` a tensor, which
    ``self.alphas[t]`` reads.
    """
    if info.owner is None:
        return []
    names = {
        item.slice.id: None
        for item in info.nodes.of(ast.Subscript)
        if isinstance(item.slice, ast.Name) and isinstance(item.value, ast.Attribute)
    }
    declared = declared_parameters(info, analysis) if names else {}
    return [name for name in names if is_declared_int(declared.get(name, UNKNOWN))]


def _repeats(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters of unknown type that say how often ``repeat_interleave`` repeats."""
    found: dict[str, None] = {}
    for call in info.nodes.of(ast.Call):
        match call.func:
            case ast.Attribute(value=owner, attr="repeat_interleave"):
                place = 1 if isinstance(owner, ast.Name) and owner.id == "torch" else 0
                named = {keyword.arg: keyword.value for keyword in call.keywords}
                if "output_size" in named:
                    continue  # nothing is read then
                given = [*call.args[place : place + 1], named.get("repeats")]
                found.update((one.id, None) for one in given if isinstance(one, ast.Name))
    return _undeclared(found, info, analysis)


# Comparisons by which a branch on a tensor waits.
ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _undeclared(names: dict[str, None], info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return those of the names that are parameters whose type nothing in the function shows.

    A name that goes through the values of ``**keywords`` stands for these.
    """
    if not names:
        return []
    declared = declared_parameters(info, analysis)
    keywords = info.tree.args.kwarg
    if keywords is not None and not names.keys().isdisjoint(_values_of(keywords.arg, info)):
        names = {**names, keywords.arg: None}
    return [name for name in names if declared.get(name) in UNDECLARED]


# The value of a parameter of unknown type, and of one such as ``**keywords``.
UNDECLARED = (UNKNOWN, Mapping_(STR, UNKNOWN))


def _values_of(keywords: str, info: FunctionInfo) -> set[str]:
    """Return the names that a loop over a dict binds to its values."""
    found: set[str] = set()
    loops = [(one.iter, one.target) for one in info.nodes.of(ast.For)]
    loops += [(one.iter, one.target) for one in info.nodes.of(ast.comprehension)]
    for source, target in loops:
        match source, target:
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr="items")),
                ast.Tuple(elts=[_, ast.Name(id=name)]),
            ) if held == keywords:
                found.add(name)
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr="values")),
                ast.Name(id=name),
            ) if held == keywords:
                found.add(name)
    return found
