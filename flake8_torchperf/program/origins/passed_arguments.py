"""The arguments that the calls of a function give its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.program.given import RUN_WHEN_CALLED, RUNNING_CALLS
from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.origins.makers import MAX_CALLS, Makers
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, STARRED, VALUE, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.objects import Objects
    from flake8_torchperf.program.runs import Run, Runs


class PassedArgument(NamedTuple):
    """An expression that a call gives a parameter, by its module and its number there.

    ``number`` is None if the call doesn't show what it gives.
    """

    path: str
    number: int | None


class PassedArguments:
    """Finds what the calls of a function give a parameter, defaults included."""

    def __init__(
        self,
        linker: Linker,
        objects: Objects,
        makers: Makers,
        runs: Callable[[Unit], Runs],
    ) -> None:
        self._linker = linker
        self._objects = objects
        self._makers = makers
        self._runs = runs

    def are_open(self, function: Unit) -> bool:
        """True if calls that aren't seen may give a function its arguments."""
        return bool(self._runs(function).open) or self._makers.is_called_elsewhere(function)

    def of(
        self, function: Unit, name: str, counts: Callable[[Run], bool] | None = None
    ) -> Iterator[PassedArgument]:
        """Yield what each call of a function gives a parameter; nothing if the calls are many.

        ``counts`` tells which of the places that run the function count, if any does; all without.
        """
        places = self._runs(function).outside_tests
        if len(places) > MAX_CALLS:
            return
        counted = [run for run in places if counts(run)] if counts is not None else []
        calls = [(run.path, run.node) for run in counted or places]
        body = self._linker.body(function)
        if body.name == "__init__":
            calls += self._makers.from_below(Unit(function.path, body.owner, is_class=True))
        for path, call in calls:
            yield self._argument(path, call, function, name)

    def _argument(self, path: str, call: int, function: Unit, name: str) -> PassedArgument:
        """Return what one call gives a parameter, its default included."""
        outline = self._linker.outline(path)
        is_call = outline.nodes[call].kind == Kind.CALL
        called = outline.child(call, FUNCTION) if is_call else None
        if called is None or not self._names(path, called, function):
            return PassedArgument(path, None)
        body = self._linker.body(function)
        slots = [outline.nodes[one].slot for one in outline.children[call]]
        names = [name]
        if name in body.positional:
            position = body.positional.index(name) - self._is_bound(path, called, function)
            names.append(str(position))
        for slot in names:
            if slot in slots:
                shifted = slot.isdigit() and STARRED in slots[: slots.index(slot)]
                return PassedArgument(path, None if shifted else outline.child(call, slot))
        return PassedArgument(path, None) if STARRED in slots else self._default(function, name)

    def _default(self, function: Unit, name: str) -> PassedArgument:
        outline = self._linker.outline(function.path)
        for root in outline.of(Kind.DEFAULT, name):
            if outline.nodes[root].slot == str(function.number):
                return PassedArgument(function.path, outline.child(root, VALUE))
        return PassedArgument(function.path, None)

    def _names(self, path: str, called: int, function: Unit) -> bool:
        """True if what a call calls is the function itself, no object that passes arguments on."""
        body = self._linker.body(function)
        outline = self._linker.outline(path)
        node = outline.nodes[called]
        found = self._linker.dotted(path, called)
        if body.owner < 0:
            return found == function
        if body.name == "__init__" and isinstance(found, Unit) and found.is_class:
            return self._linker.method(found, "__init__") == function
        if found == function or (node.kind == Kind.ATTRIBUTE and node.word == body.name):
            return True
        if body.name not in RUN_WHEN_CALLED or node.word in RUNNING_CALLS:
            return False
        classes = self._objects.classes(path, called)
        if not classes:  # the object itself, unless something has given it arguments before
            return not (found or "partial" in outline.by_word)
        return any(
            isinstance(one, Unit) and self._linker.method(one, body.name) == function
            for one in classes
        )

    def _is_bound(self, path: str, called: int, function: Unit) -> bool:
        """True if a call gives the first parameter of a method no argument of its own."""
        body = self._linker.body(function)
        if body.owner < 0 or body.is_static:
            return False
        holder = self._linker.outline(path).child(called, OWNER)
        above = None if holder is None else self._linker.dotted(path, holder)
        return not isinstance(above, Unit)
