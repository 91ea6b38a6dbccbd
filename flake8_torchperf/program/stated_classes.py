"""The classes that annotations state, and those that a function decorates."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.outlines.outline import ATTRIBUTE, FUNCTION, OWNER, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.linking import Search
    from flake8_torchperf.program.outlines.outline import Outline

# Classes of the project, and the dotted names of others.
Classes: TypeAlias = "set[Unit | str]"
# Annotations of one object, whose arguments are its classes.
WRAPPING = ("Optional", "Final", "ClassVar", "Annotated", "Union")


class Annotations:
    """Reads the annotations of a project's modules."""

    def __init__(self, linker: Linker) -> None:
        self._linker = linker

    def classes(self, path: str, root: int, *, items: bool = False) -> Classes:
        """Return the classes that an annotation names, those of optional ones included."""
        outline = self._linker.outline(path)
        found: Classes = set()
        waiting = [(one, items) for one in outline.children[root]]
        while waiting:
            number, inner = waiting.pop()
            node = outline.nodes[number]
            below = outline.children[number]
            owner = outline.child(number, OWNER)
            if node.kind in (Kind.EITHER, Kind.GROUP):
                waiting += [(one, inner) for one in below]
            elif node.kind == Kind.ITEM and owner is not None:
                arguments = [one for one in below if one != owner]
                if outline.nodes[owner].word in WRAPPING:
                    waiting += [(one, inner) for one in arguments]
                elif not inner:
                    waiting.append((owner, False))
                elif arguments:
                    waiting += [(one, False) for one in _last(outline, arguments[-1])]
            elif not inner:
                found |= set(self._class(path, number))
        return found

    def _class(self, path: str, number: int) -> Iterator[Unit | str]:
        """Yield the class that a part of an annotation names."""
        node = self._linker.outline(path).nodes[number]
        found: object = None
        if node.kind == Kind.TEXT:
            last = node.word.partition("[")[0].rpartition("|")[0] or node.word
            if last.strip().isidentifier():
                found = self._linker.named(path, node.body, last.strip())
        else:
            found = self._linker.dotted(path, number)
        if isinstance(found, Unit):
            if found.is_class:
                yield found
        elif isinstance(found, str) and is_class_name(found):
            yield found


def _last(outline: Outline, number: int) -> Iterator[int]:
    """Yield the last argument of an annotation, which is the class of the values."""
    if outline.nodes[number].kind == Kind.GROUP:
        yield from outline.children[number][-1:]
    else:
        yield number


def is_class_name(dotted: str) -> bool:
    """True for a dotted name that may be a class: ``torch.nn.Linear``."""
    return dotted.rpartition(".")[2].lstrip("_")[:1].isupper()


def annotates(outline: Outline, root: int, scope: int) -> bool:
    """True if an annotation is that of a parameter or a variable of a body."""
    node = outline.nodes[root]
    return node.slot == str(scope) or (node.body == scope and not node.slot)


def belongs(outline: Outline, root: int, klass: int) -> bool:
    """True if a statement in the body of a class, or in a method of it, is about its objects."""
    node = outline.nodes[root]
    if node.slot.startswith("c"):
        return node.slot == f"c{klass}"
    own = outline.bodies[node.body].owner == klass
    return own and (node.kind == Kind.KEPT or node.slot == ATTRIBUTE)


def decorated(
    decorator: Unit, linker: Linker, search: Search, is_use_of: Callable[[str, int, Unit], bool]
) -> Iterator[Unit]:
    """Yield the classes that a function decorates, as a registry's, or that what it returns does.

    The latter is so for ``@register("mse")``. ``is_use_of`` tells if an expression, by module and
    number, names a function.
    """
    maker = Unit(decorator.path, linker.body(decorator).outer)
    for unit in filter(lambda one: one.number > 0, (decorator, maker)):
        name = linker.body(unit).name
        for path in search(name, unit.path) or ():
            outline = linker.outline(path)
            for use in outline.by_word.get(name, ()):
                above = outline.nodes[use].parent
                if unit == maker and above >= 0:
                    is_called = outline.nodes[use].slot == FUNCTION
                    above = outline.nodes[above].parent if is_called else -1
                if above < 0 or outline.nodes[above].kind != Kind.DECORATED:
                    continue
                word = outline.nodes[above].word
                if word.startswith("c") and is_use_of(path, use, unit):
                    yield Unit(path, int(word[1:]), is_class=True)
