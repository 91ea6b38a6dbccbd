"""The values that calls give a function, as its interpretation takes them.

Here are the values that lie on the host, what one call alone shows of the arguments, the sites that
a function has with what some calls give it, and what constructors hand to those of the classes
above theirs, which often keep it.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.calls.filled_parameters import fill_as_called
from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
from flake8_torchperf.interpreter.engine.analysis import EVERY_FUNCTION
from flake8_torchperf.interpreter.inference.parameters import (
    ANY_KEYWORDS,
    declared_parameters,
    on_host,
)
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.judgement.fate import FROM_DEVICE
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.judge import judge
from flake8_torchperf.syntax.shape_tests import is_none
from flake8_torchperf.values.devices import BESIDE_HOST
from flake8_torchperf.values.elements import is_loader
from flake8_torchperf.values.values import (
    LOADED,
    STR,
    UNKNOWN,
    Device,
    Instance,
    Mapping_,
    NDArray,
    NoneValue,
    Scalar,
    Sequence,
    Tensor,
    Union,
    join_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.judged_site import JudgedSite
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo
    from flake8_torchperf.values.values import Value

# The most kinds of calls, by what they give, for each of which a function is interpreted.
MAX_KINDS = 4
# The words of tests that ask what a value is.
TYPE_TEST_WORDS = frozenset(("isinstance", "is_tensor", "hasattr"))
# The most constructors that hand arguments on to one another.
MAX_CONSTRUCTORS = 4
# The host as an argument: a name that is no literal, which other programs may not pass.
HOST: Value = Device("host")


def sites_given(
    info: FunctionInfo,
    given: dict[str, Value],
    analysis: Analysis,
    heats: FunctionHeats,
    *,
    alone: bool = False,
) -> tuple[JudgedSite, ...] | None:
    """Return the sites of a function with some arguments; None if these show nothing new.

    ``alone`` says that the calls seen so far show nothing of these arguments.
    """
    declared = declared_parameters(info, analysis)
    filled = dict(declared)
    fill_as_called(filled, given, private=info.name.startswith("_"))
    if filled == declared:
        return None
    probe = analysis.watching(info.key)
    probe.agreed[info.key] = given
    if alone:
        seen = probe.observed.get(info.key, {})
        probe.observed[info.key] = {name: one for name, one in seen.items() if name not in given}
    return judge(interpret_function(info, probe), heats).sites


def waits_on_device(site: JudgedSite) -> bool:
    """True if a site may be reported, and costs nothing if its value lies on the host."""
    return site.heat.level > Level.COLD and site.kind in FROM_DEVICE


def as_a_call_gives(
    info: FunctionInfo, analysis: Analysis, seen: dict[str, Value]
) -> dict[str, Value]:
    """Return what one call shows of the parameters of a function.

    These are values on the host, numbers without their literals, and what tests of the function
    ask for.
    """
    tested, declared = tested_parameters(info), declared_parameters(info, analysis)
    found: dict[str, Value] = {}
    for name, given in seen.items():
        own, value = declared.get(name, UNKNOWN), _as_combined(given)
        if holds_host_data(value) or own == ANY_KEYWORDS:
            found[name] = as_every_call_gives(own, [value])
        elif _is_plain(value):
            found[name] = _without_literals(value)
        elif name in tested and _is_known(value):
            found[name] = value
    return found


def _as_combined(value: Value) -> Value:
    """Return a tensor that is combined with one on the host as one of the host: it lies there."""
    if isinstance(value, Tensor) and value.device == BESIDE_HOST:
        return replace(value, device="host")
    return value


def kinds_of_calls(given: Iterable[dict[str, Value]]) -> list[dict[str, Value]]:
    """Return the different arguments of some calls; only what all share if they are too many."""
    kinds: list[dict[str, Value]] = []
    for one in given:
        if one not in kinds:
            kinds.append(one)
    if len(kinds) <= MAX_KINDS:
        return kinds
    names = set(kinds[0]).intersection(*kinds[1:])
    joined = {name: join_all([one[name] for one in kinds]) for name in sorted(names)}
    return [{name: value for name, value in joined.items() if value is not UNKNOWN}]


def kind_of(given: dict[str, Value], kinds: list[dict[str, Value]]) -> dict[str, Value]:
    """Return the arguments among those of ``kinds_of_calls`` that stand for a call."""
    return given if given in kinds else kinds[0]


def tested_parameters(info: FunctionInfo) -> frozenset[str]:
    """Return the parameters that tests of a function ask for, by type or whether they are None.

    A type may be asked of a value that is made of any parameter.
    """
    spec = info.tree.args
    names = frozenset(one.arg for one in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))
    if not TYPE_TEST_WORDS.isdisjoint(info.nodes.words()):
        return names
    tests = (one.left for one in info.nodes.of(ast.Compare) if is_none(one.comparators[0]))
    return names.intersection(one.id for one in tests if isinstance(one, ast.Name))


def may_be_tensors(info: FunctionInfo, analysis: Analysis) -> dict[str, Value]:
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


def host_entries(keywords: Mapping_) -> Mapping_:
    """Return the entries of ``**keywords`` that hold host data or no tensor."""
    found = [(n, one) for n, one in keywords.items if holds_host_data(one) or is_no_tensor(one)]
    return Mapping_(STR, UNKNOWN, tuple(found))


def _shared_entries(given: list[Value]) -> Value:
    """Return the entries of ``**keywords`` that all calls give."""
    calls = [dict(one.items) for one in given if isinstance(one, Mapping_)]
    names = [name for name in calls[0] if all(name in one for one in calls)] if calls else []
    return Mapping_(STR, UNKNOWN, tuple((n, join_all([one[n] for one in calls])) for n in names))


def holds_host_data(value: Value) -> bool:
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
            return all(map(holds_host_data, (element,) if items is None else items or (element,)))
        case Mapping_(items=items, element=element):
            held = [one for _, one in items]
            if element is not UNKNOWN or not held:
                held.append(element)
            return all(map(holds_host_data, held))
    return value is LOADED


def is_no_tensor(value: Value) -> bool:
    """True for None and for numbers, which lie on the host where other calls give a tensor."""
    return isinstance(value, (NoneValue, Scalar))


def _is_plain(value: Value) -> bool:
    """True for None, numbers, and what holds only these."""
    match value:
        case Union(options=options):
            return all(map(_is_plain, options))
        case Sequence(items=items, element=element):
            return all(map(_is_plain, (element,) if items is None else items or (element,)))
    return is_no_tensor(value)


def _without_literals(value: Value) -> Value:
    """Return a plain value; of a number or a text, only what it is."""
    return Scalar(value.kind) if isinstance(value, Scalar) else value


def _is_known(value: Value) -> bool:
    """True for a tensor, and for one of several values that are known."""
    match value:
        case Union(options=options):
            return all(map(_is_known, options))
    return isinstance(value, (Tensor, NDArray)) or _is_plain(value)


def is_host(value: Value) -> bool:
    """True for the host's device, or its name."""
    return value == HOST or (isinstance(value, Scalar) and value.known and value.value == "cpu")


def given_host(
    owner: ClassInfo, names: Iterable[str], analysis: Analysis
) -> dict[object, dict[str, Value]]:
    """Return what the constructors of an object are given, as `Analysis.agreed` holds it.

    ``names`` are the parameters of the nearest constructor that are given the host.
    """
    given = dict.fromkeys(names, HOST)
    makers = _constructors(owner, analysis)
    found: dict[object, dict[str, Value]] = {maker.key: given for maker in makers[:1]}
    for maker, above in zip(makers, [*makers[1:], None], strict=True):
        if not given:
            break
        found[owner.key, maker.key] = given
        given = {} if above is None else _handed_up(maker, given, above, analysis)
    return found


def _constructors(owner: ClassInfo, analysis: Analysis) -> list[FunctionInfo]:
    """Return the constructors of a class and of those above it, nearest first."""
    above = (one for one in lineage(owner, analysis) if not isinstance(one, str))
    found = [one.methods["__init__"] for one in above if "__init__" in one.methods]
    return found[:MAX_CONSTRUCTORS]


def _handed_up(
    maker: FunctionInfo, given: dict[str, Value], above: FunctionInfo, analysis: Analysis
) -> dict[str, Value]:
    """Return the parameters of another constructor to which one that is given the host hands it."""
    probe = analysis.watching(EVERY_FUNCTION)
    probe.observed = {}
    probe.agreed[maker.key] = given
    interpret_function(maker, probe)
    seen = probe.observed.get(above.key, {})
    return {name: HOST for name, value in seen.items() if is_host(value)}
