"""Facts about a module, found once and held by its map, so that they go when the map goes.

A cache of maps beside them would hold whole trees of files that were linted long ago.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableMapping
    from contextlib import AbstractContextManager


class RecordsQueries(Protocol):
    """Records the queries of an outline (`answers.Parts`)."""

    def ask(self, part: str) -> None:
        """Record a query."""

    def heard(self) -> AbstractContextManager[Iterable[str]]:
        """Give the parts that are queried in a context."""


class HoldsFacts(Protocol):
    """The map of a module, with the facts that were found about it."""

    @property
    def facts(self) -> MutableMapping[Any, Any]:
        """The facts, by the function that looked for each."""

    @property
    def parts(self) -> RecordsQueries | None:
        """The parts of an outline, which record queries; None for other modules."""


Module = TypeVar("Module", bound=HoldsFacts)
Fact = TypeVar("Fact")


def once_per_module(find: Callable[[Module], Fact]) -> Callable[[Module], Fact]:
    """Return a function that looks for a fact about a module on its first call only.

    What was queried for it is recorded again for each linted file.
    """

    @wraps(find)
    def found(module: Module) -> Fact:
        parts = module.parts
        if found not in module.facts:
            if parts is None:
                module.facts[found] = find(module), ()
            else:
                with parts.heard() as heard:
                    fact = find(module)
                module.facts[found] = fact, heard
        elif parts is not None:
            for part in module.facts[found][1]:
                parts.ask(part)
        return cast("Fact", module.facts[found][0])

    return found
