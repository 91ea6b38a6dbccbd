"""The bodies that the calls and decorators of a module compile with torch, whosever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.program.hooks import called_method
from flake8_torchperf.program.linking import Unit
from flake8_torchperf.program.object_values import Itself
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flake8_torchperf.program.linking import Linker
    from flake8_torchperf.program.object_values import Values

COMPILE = "compile"
COMPILE_FUNCTIONS = frozenset(("torch.compile", "torch.compiler.compile"))
# The slots of what a call compiles: its first argument, or ``model``.
_GIVEN = ("0", "model")


class Compiled(NamedTuple):
    """A body, and the one that compiles it."""

    unit: Unit
    by: Unit
    fullgraph: bool


class Compiling:
    """Finds what modules compile. ``values`` returns what an expression may be."""

    def __init__(self, linker: Linker, values: Callable[[str, int], Values]) -> None:
        self._linker = linker
        self._values = values

    def of_modules(self, paths: Iterable[str]) -> Iterator[Compiled]:
        """Yield the bodies that some modules compile."""
        for path in paths:
            outline = self._linker.outline(path)
            for use in outline.by_word.get(COMPILE, ()):
                yield from self._by_use(path, use)

    def _by_use(self, path: str, use: int) -> Iterator[Compiled]:
        """Yield the bodies that the call or the decorator compiles which a name stands in."""
        outline = self._linker.outline(path)
        node = outline.nodes[use]
        of_torch = self._linker.dotted(path, use) in COMPILE_FUNCTIONS
        if node.parent < 0:
            return
        by = Unit(path, node.body)
        top = node.parent if node.slot == FUNCTION else use
        above = outline.nodes[top].parent
        if of_torch and above >= 0 and outline.nodes[above].kind == Kind.DECORATED:
            word = outline.nodes[above].word
            if word.startswith("b"):
                yield Compiled(Unit(path, int(word[1:])), by, self._is(path, top, "fullgraph"))
        elif node.slot == FUNCTION and not self._is(path, top, "disable"):
            whole = self._is(path, top, "fullgraph")
            for unit in self._given(path, use, of_torch=of_torch):
                yield Compiled(unit, by, whole)

    def _is(self, path: str, call: int, option: str) -> bool:
        """True if a call is given the literal True for an option."""
        outline = self._linker.outline(path)
        given = outline.child(call, option)
        return given is not None and outline.nodes[given].word == "True"

    def _given(self, path: str, use: int, *, of_torch: bool) -> Iterator[Unit]:
        """Yield the bodies that a call compiles: of torch's function, or of a module's method."""
        outline = self._linker.outline(path)
        given = outline.child(use, OWNER)
        if of_torch:
            places = (outline.child(outline.nodes[use].parent, slot) for slot in _GIVEN)
            given = next((one for one in places if one is not None), None)
        if given is None:
            return
        values = sorted(self._values(path, given), key=str)
        for one in values:
            if isinstance(one, Itself):
                if of_torch and not one.unit.is_class:
                    yield one.unit
            elif isinstance(one, Unit) and (of_torch or self._linker.method(one, COMPILE) is None):
                method = called_method(self._linker, one)
                yield from () if method is None else (method,)
        if of_torch and not values:
            yield from self._bound(path, given)

    def _bound(self, path: str, given: int) -> Iterator[Unit]:
        """Yield the methods that an attribute stands for, or the function that a name is again.

        ``step = torch.compile(step)`` in a function that declares the name global.
        """
        outline = self._linker.outline(path)
        node, owner = outline.nodes[given], outline.child(given, OWNER)
        if node.kind == Kind.NAME and node.body:
            found = self._linker.named(path, outline.bodies[node.body].outer, node.word)
            if isinstance(found, Unit) and not found.is_class:
                yield found
        elif node.kind == Kind.ATTRIBUTE and owner is not None:
            for one in sorted(self._values(path, owner), key=str):
                method = self._linker.method(one, node.word) if isinstance(one, Unit) else None
                yield from () if method is None else (method,)
