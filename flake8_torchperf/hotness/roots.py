"""Roots by protocol and owner: what a framework calls in each step, and what once.

The protocols are data (`protocols.toml`): which base class makes which methods whose.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flake8_torchperf.absint.domain.heat import Cause

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap

PROTOCOLS = Path(__file__).with_name("protocols.toml")
# What a field of a protocol says of the methods that it names.
CAUSES = {
    "step": Cause.STEP_ROOT,
    "set_up": Cause.SET_UP_ROOT,
    "worker": Cause.DATA_WORKER,
    "conversion": Cause.CONVERSION,
}
# What a decorator of functools keeps, it works out once.
KEEPING = frozenset(("functools.lru_cache", "functools.cache", "functools.cached_property"))


@dataclass(frozen=True, slots=True)
class Protocol:
    """Classes, by kind, base or method, and what is known of their methods."""

    id: str
    kinds: frozenset[str]
    bases: frozenset[str]
    has: str
    methods: Mapping[str, Cause]

    def anyone(self) -> bool:
        """Does it hold for every class?"""
        return not (self.kinds or self.bases or self.has)


@dataclass(frozen=True, slots=True)
class Lineage:
    """What is known of a class: torch's kind of it, the last names of itself and all its bases.

    ``whole`` says that each base was read or is torch's or Python's own.
    """

    kind: str
    names: frozenset[str]
    whole: bool


@cache
def protocols() -> tuple[Protocol, ...]:
    """The table of protocols, read once."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    rows: list[dict[str, Any]] = tomllib.loads(PROTOCOLS.read_text(encoding="utf-8"))["protocol"]
    return tuple(_protocol(row) for row in rows)


def _protocol(row: dict[str, Any]) -> Protocol:
    methods = {name: cause for field, cause in CAUSES.items() for name in row.get(field, ())}
    return Protocol(
        row["id"],
        frozenset(row.get("kinds", ())),
        frozenset(row.get("bases", ())),
        row.get("has", ""),
        methods,
    )


def root_of(info: FunctionInfo, lineage: Callable[[ClassInfo], Lineage]) -> Cause | None:
    """What a protocol says of a function; None where there is none.

    Of a class that follows several, a step is what any of them calls a step.
    """
    if is_test(info):
        return Cause.TEST
    if any(one in KEEPING for one in info.decorators):
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
    """``@torch.library.register_fake(...)``, ``@op.py_impl(...)``, the setter of a property."""
    last = decorator.rpartition(".")[2]
    if last in ("setter", "py_impl"):
        return True
    return decorator.startswith("torch.") and last.startswith("register_")


def is_test(info: FunctionInfo) -> bool:
    """Does pytest or unittest run it: ``test_*`` in a file of tests, a fixture, a test's class?

    Or does its module take part in tests, by what it imports?
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
    """A class that pytest collects, or one derived from a case of unittest."""
    return owner.name.startswith("Test") or any(
        base.rpartition(".")[2].endswith("TestCase") for base in owner.bases
    )


@lru_cache(maxsize=8)  # of the module linted, and of those that call its functions
def is_test_file(module: ModuleMap) -> bool:
    """Does pytest collect the file by its name, or does it import what tests are made with?"""
    if imports_tests(module):
        return True
    name = module.name.rpartition(".")[2] if module.path is None else module.path.stem
    return name.startswith("test_") or name.endswith("_test") or name == "conftest"


@lru_cache(maxsize=8)
def imports_tests(module: ModuleMap) -> bool:
    """Does a module import pytest, unittest or torch's own tools for tests?"""
    return any(
        target.partition(".")[0] in ("pytest", "unittest")
        or target.startswith("torch.testing._internal")
        for target in module.imports.values()
    )
