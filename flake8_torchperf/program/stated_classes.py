"""The classes that annotations state."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.outlines.outline import ATTRIBUTE, OWNER, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

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
