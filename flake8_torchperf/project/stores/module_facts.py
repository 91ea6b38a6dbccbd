"""Facts about a module, found once and held by its map, so that they go when the map goes.

A cache of maps beside them would hold whole trees of files that were linted long ago.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping


class HoldsFacts(Protocol):
    """The map of a module, with the facts that were found about it."""

    @property
    def facts(self) -> MutableMapping[Any, Any]:
        """The facts, by the function that looked for each."""


Module = TypeVar("Module", bound=HoldsFacts)
Fact = TypeVar("Fact")


def once_per_module(find: Callable[[Module], Fact]) -> Callable[[Module], Fact]:
    """Return a function that looks for a fact about a module on its first call only."""

    @wraps(find)
    def found(module: Module) -> Fact:
        if found not in module.facts:
            module.facts[found] = find(module)
        return cast("Fact", module.facts[found])

    return found
