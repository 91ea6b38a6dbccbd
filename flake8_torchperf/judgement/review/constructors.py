"""The arguments that the constructors of an object are given, if that of its class names the host.

A class often hands arguments of its constructor to that of the class above, which keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
from flake8_torchperf.interpreter.engine.analysis import EVERY_FUNCTION
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.values.values import Device, Scalar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo
    from flake8_torchperf.values.values import Value

# The most constructors that hand arguments on to one another.
MAX_CONSTRUCTORS = 4
# The host as an argument: a name that is no literal, which other programs may not pass.
HOST: Value = Device("host")


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
