"""Functions that a framework calls, in each step or once, by the protocol of their class.

The protocols are data: `protocols.toml` lists base classes and the methods that are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flake8_torchperf.idioms.module_roles import imports_tests, is_test_file
from flake8_torchperf.knowledge.toml_file import read_toml
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo

PROTOCOLS = Path(__file__).with_name("protocols.toml")
# The cause that each field of a protocol gives the methods that it names.
CAUSES = {
    "step": Cause.STEP_ROOT,
    "evaluation": Cause.EVALUATION,
    "set_up": Cause.SET_UP_ROOT,
    "worker": Cause.DATA_WORKER,
    "conversion": Cause.CONVERSION,
}
# Decorators of functools that run a function once and store its result.
CACHING_DECORATORS = frozenset(
    ("functools.lru_cache", "functools.cache", "functools.cached_property")
)


@dataclass(frozen=True, slots=True)
class Protocol:
    """Classes, selected by kind, base or method, and the causes that their methods have.

    ``requests`` are globs of methods that answer requests, each with ``takes`` arguments; 0: any.
    """

    id: str
    kinds: frozenset[str]
    bases: frozenset[str]
    has: str
    methods: Mapping[str, Cause]
    requests: tuple[str, ...] = ()
    takes: int = 0

    def anyone(self) -> bool:
        """True if the protocol applies to every class."""
        return not (self.kinds or self.bases or self.has)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The ancestry of a class: its kind in torch, and the last names of itself and all its bases.

    ``whole`` is True if each base was read, or is torch's or Python's own.
    """

    kind: str
    names: frozenset[str]
    whole: bool


@cache
def protocols() -> tuple[Protocol, ...]:
    """Return the table of protocols, read once."""
    rows: list[dict[str, Any]] = read_toml(PROTOCOLS)["protocol"]
    return tuple(_protocol(row) for row in rows)


def _protocol(row: dict[str, Any]) -> Protocol:
    methods = {name: cause for field, cause in CAUSES.items() for name in row.get(field, ())}
    return Protocol(
        row["id"],
        frozenset(row.get("kinds", ())),
        frozenset(row.get("bases", ())),
        row.get("has", ""),
        methods,
        tuple(row.get("request", ())),
        row.get("takes", 0),
    )


def root_of(info: FunctionInfo, lineage: Callable[[ClassInfo], Lineage]) -> Cause | None:
    """Return the cause that a protocol gives a function; None if no protocol applies.

    If several apply, a step takes precedence.
    """
    if is_test(info):
        return Cause.TEST
    if any(one in CACHING_DECORATORS for one in info.decorators):
        return Cause.RESULT_KEPT
    if any(hands_to_tracer(one) for one in info.decorators):
        return Cause.REGISTERED
    if info.owner is None or not any(info.name in one.methods for one in protocols()):
        return None
    found = lineage(info.owner)
    said = [
        one.methods[info.name]
        for one in protocols()
        if info.name in one.methods and _follows(info.owner, found, one)
    ]
    return Cause.STEP_ROOT if Cause.STEP_ROOT in said else next(iter(said), None)


def _follows(owner: ClassInfo, lineage: Lineage, protocol: Protocol) -> bool:
    if protocol.anyone() or lineage.kind in protocol.kinds:
        return True
    if not lineage.names.isdisjoint(protocol.bases):
        return True
    return not lineage.whole and protocol.has in owner.methods


def hands_to_tracer(decorator: str) -> bool:
    """True for ``@torch.library.register_fake(...)`` and ``@op.py_impl(...)``."""
    last = decorator.rpartition(".")[2]
    if last == "py_impl":
        return True
    return decorator.startswith("torch.") and last.startswith("register_")


def is_test(info: FunctionInfo) -> bool:
    """True if a function is a test, a fixture or a method of a test class, in a file of tests.

    True as well for every function of a module that imports a test framework.
    """
    if not is_test_file(info.module):
        return False
    return (
        imports_tests(info.module)
        or info.name.startswith("test")
        or any(one.rpartition(".")[2] == "fixture" for one in info.decorators)
        or (info.owner is not None and is_test_class(info.owner))
    )


def is_test_class(owner: ClassInfo) -> bool:
    """True for a class that pytest collects, or one derived from a test case of unittest."""
    return owner.name.startswith("Test") or any(
        base.rpartition(".")[2].endswith("TestCase") for base in owner.bases
    )
