"""The functions that code which is not read is given by decorators and calls, to run them later."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.program.linking import Unit
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, VALUE, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.program.linking import Linker
    from flake8_torchperf.program.objects import Objects

# Where a call is given a function, or a decorator a text.
FIRST = "0"


class Registration(NamedTuple):
    """A decorator that is a call of a method, as ``@app.post("/answer")``: the name and the text.

    ``text`` is "" without a literal one.
    """

    method: str
    text: str


class Registered:
    """Finds what registers functions, where the project doesn't define it."""

    def __init__(self, linker: Linker, objects: Objects) -> None:
        self._linker = linker
        self._objects = objects

    def decorating(self, unit: Unit) -> Iterator[Registration]:
        """Yield the calls of methods that decorate a function, of objects from elsewhere."""
        path, outline = unit.path, self._linker.outline(unit.path)
        for root in outline.of(Kind.DECORATED, f"b{unit.number}"):
            call = outline.child(root, VALUE)
            called = None if call is None else outline.child(call, FUNCTION)
            if call is None or called is None or outline.nodes[called].kind != Kind.ATTRIBUTE:
                continue
            if not self._is_own(path, called):
                given = (outline.child(call, slot) for slot in (FIRST, "path", "rule"))
                texts = (outline.nodes[one] for one in given if one is not None)
                text = next((one.word for one in texts if one.kind == Kind.TEXT), "")
                yield Registration(outline.nodes[called].word, text)

    def _is_own(self, path: str, called: int) -> bool:
        """True if the project defines a method that an expression names."""
        if isinstance(self._linker.dotted(path, called), Unit):
            return True
        word = self._linker.outline(path).nodes[called].word
        return any(
            isinstance(one, Unit) and self._linker.method(one, word) is not None
            for one in self._holders(path, called)
        )

    def _holders(self, path: str, called: int) -> Iterable[object]:
        """Return the classes of the object whose method an expression names."""
        holder = self._linker.outline(path).child(called, OWNER)
        return () if holder is None else self._objects.values(path, holder)

    def given(self, unit: Unit, paths: Iterable[str], slot: str) -> Iterator[str]:
        """Yield the dotted names of the calls in some modules that are given a function.

        It is their first argument, or has the keyword ``slot``. That of a method begins with the
        class of its object: ``gradio.Button.click``.
        """
        name = self._linker.body(unit).name
        for path in paths:
            outline = self._linker.outline(path)
            for use in outline.by_word.get(name, ()):
                node = outline.nodes[use]
                if node.parent < 0 or node.slot not in (FIRST, slot):
                    continue
                called = outline.child(node.parent, FUNCTION)
                if called is not None and self._linker.dotted(path, use) == unit:
                    yield from self._names(path, called)

    def _names(self, path: str, called: int) -> Iterator[str]:
        found = self._linker.dotted(path, called)
        if isinstance(found, str) and found:
            yield found
            return
        word = self._linker.outline(path).nodes[called].word
        for one in self._holders(path, called):
            if isinstance(one, str):
                yield f"{one}.{word}"
