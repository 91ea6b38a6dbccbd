"""The caches of an analysis while one file is linted: a table for each kind of fact, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.analysis import Analysis

Key = TypeVar("Key")
Fact = TypeVar("Fact")


class Cache(Generic[Key, Fact]):
    """One kind of fact, cached by a key. The module that finds the facts defines both."""

    def __init__(self, name: str) -> None:
        self.name = name

    def table(self, analysis: Analysis) -> dict[Key, Fact]:
        """Return all facts of this kind that an analysis has found so far."""
        found: dict[Key, Fact] | None = analysis.caches.get(self.name)
        if found is None:
            found = analysis.caches[self.name] = {}
        return found

    def kept(self, analysis: Analysis, key: Key, find: Callable[[], Fact]) -> Fact:
        """Return the result of ``find`` for this key; it is called on the first request only."""
        table = self.table(analysis)
        if key not in table:
            table[key] = find()
        return table[key]
