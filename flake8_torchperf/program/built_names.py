"""Names that are put together while the program runs, as ``getattr(part, f"on_{event}")``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.outlines.outline import FUNCTION, VALUE, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flake8_torchperf.program.runs import Run, Runs

# The most names and parameters that a part of a name is followed back through.
MAX_BACK = 3
# Expressions that are one of those in them, or hold them.
_SEVERAL = (Kind.EITHER, Kind.PASSED, Kind.GROUP, Kind.ROUNDS)


def missing(pattern: str, name: str) -> str | None:
    """Return what stands for the star of a pattern in a name; None if the name does not fit it.

    "" for a pattern of several stars: nothing shows which of them stands for what.
    """
    first, *_, last = pattern.split("*")
    if len(first) + len(last) >= len(name):
        return None
    if not (name.startswith(first) and name.endswith(last)):
        return None
    return name[len(first) : len(name) - len(last)] if pattern.count("*") == 1 else ""


def fits(pattern: str, part: str, name: str) -> bool:
    """True if a text for the star of a pattern gives a name."""
    return missing(pattern, name) == part


class NameParts:
    """Says where the texts that a name is put together of are all literals."""

    def __init__(self, linker: Linker, runs: Callable[[Unit], Runs]) -> None:
        self._linker = linker
        self._runs = runs

    def are_shown(self, path: str, number: int | None, left: int = MAX_BACK) -> bool:
        """True if an expression stands for literal texts only, or holds such texts."""
        if number is None or not left:
            return False
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        if node.kind == Kind.TEXT:
            return True
        if node.kind in _SEVERAL:
            return self._all(((path, one) for one in outline.children[number]), left)
        if node.kind != Kind.NAME:
            return False
        place = self._linker.named(path, node.body, node.word)
        if not isinstance(place, Variable) or outline.of(Kind.CHANGED, node.word):
            return False
        return self._all(self._given(path, place), left - 1)

    def given(self, path: str, variable: Variable) -> list[tuple[Run, str]] | None:
        """Return the calls of a body with the literal text that each gives a parameter.

        None if it is no parameter, if others may call the body, or if one gives no literal text.
        """
        outline = self._linker.outline(path)
        body = outline.bodies[variable.body]
        if variable.name not in (*body.positional, *body.named):
            return None
        runs = self._runs(Unit(path, variable.body))
        found: list[tuple[Run, str]] = []
        for run in runs.outside_tests:
            number = self._argument(run.path, run.node, path, variable)
            node = None if number is None else self._linker.outline(run.path).nodes[number]
            if node is None or node.kind != Kind.TEXT:
                return None
            found.append((run, node.word))
        is_bound = bool(outline.bound.get((variable.body, variable.name), ()))
        return None if runs.open or not found or is_bound else found

    def _all(self, numbers: Iterable[tuple[str, int | None]], left: int) -> bool:
        found = list(numbers)
        return bool(found) and all(self.are_shown(path, one, left) for path, one in found)

    def _given(self, path: str, variable: Variable) -> Iterator[tuple[str, int | None]]:
        """Yield what a body binds to a name, or what the calls of the body give it."""
        outline = self._linker.outline(path)
        for root in outline.bound.get((variable.body, variable.name), ()):
            is_one = outline.nodes[root].kind in (Kind.BOUND, Kind.ITERATED)
            yield path, outline.child(root, VALUE) if is_one else None
        body = outline.bodies[variable.body]
        if variable.name not in (*body.positional, *body.named):
            if variable.name in body.rest:
                yield path, None
            return
        runs = self._runs(Unit(path, variable.body))
        if runs.open or not runs.places:
            yield path, None
        for run in runs.outside_tests:
            yield run.path, self._argument(run.path, run.node, path, variable)

    def _argument(self, where: str, call: int, path: str, variable: Variable) -> int | None:
        """Return what a call gives a parameter; None if nothing shows it."""
        outline = self._linker.outline(where)
        body = self._linker.body(Unit(path, variable.body))
        slots = [variable.name]
        if variable.name in body.positional:
            bound = body.owner >= 0 and not body.is_static
            slots.append(str(body.positional.index(variable.name) - bound))
        if outline.child(call, FUNCTION) is None:
            return None
        given = (outline.child(call, slot) for slot in slots)
        return next((one for one in given if one is not None), None)
