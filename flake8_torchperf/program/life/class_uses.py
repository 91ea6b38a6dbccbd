"""The uses of a class by which objects of it may be made."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, VALUE, Kind
from flake8_torchperf.project.file_index import is_test_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.program.life.demonstrations import Demonstrations
    from flake8_torchperf.program.linking import Search
    from flake8_torchperf.program.outlines.outline import Outline

# Statements and clauses in which the name of a class makes no object.
TYPE_HINTS = frozenset((Kind.ANNOTATED, Kind.RESULT))
# Calls that ask if an object belongs to a class.
CLASS_TESTS = frozenset(("isinstance", "issubclass"))


class ClassUses:
    """Finds what may make objects of a class, in the outlines of a project."""

    def __init__(self, linker: Linker, search: Search, shown: Demonstrations) -> None:
        self._linker = linker
        self._shown = shown
        self._search = search

    def makers(self, klass: Unit) -> Iterator[Unit | None]:
        """Yield the bodies and classes that may make objects of a class; None for what surely runs.

        A module level surely runs, and so does what is not found in a text that is not Python.
        """
        name = self._linker.klass(klass).name
        found = self._search(name, klass.path, is_attribute=True)
        if found is None:
            yield None
            return
        until = self._shadowed_at(klass)
        paths = dict.fromkeys((klass.path, *found) if until is None else (klass.path,))
        for path in paths:
            outline = self._linker.outline(path)
            if not outline.bodies:
                yield None
            if not outline.bodies or is_test_path(path):
                continue
            if until is not None:
                yield from self._between(klass, until)
                continue
            for number in self._uses(path, outline, klass, name):
                yield self._maker(path, outline, number, klass)

    def is_one_of_two(self, klass: Unit) -> bool:
        """True if a later class has the name of a class, which then stands for that one."""
        own = self._linker.klass(klass)
        named = self._linker.outline(klass.path).class_named
        return named.get((own.body, own.name), klass.number) != klass.number

    def _shadowed_at(self, klass: Unit) -> int | None:
        """Return the line where the module level defines another class of the same name for good.

        None if it does not: a definition in a branch may not be run.
        """
        outline = self._linker.outline(klass.path)
        own = self._linker.klass(klass)
        if not self.is_one_of_two(klass) or own.body:
            return None
        last = outline.class_named[own.body, own.name]
        lines = self._linker.text(klass.path).splitlines()
        following = [
            one.line
            for one in outline.classes[klass.number + 1 : last + 1]
            if (one.body, one.name) == (own.body, own.name)
            and lines[one.line - 1].startswith(b"class ")
        ]
        return following[0] if following else None

    def _between(self, klass: Unit, until: int) -> Iterator[Unit | None]:
        """Yield None if the module level uses a class before another takes its name."""
        outline = self._linker.outline(klass.path)
        own = self._linker.klass(klass)
        for number in outline.by_word.get(own.name, ()):
            node = outline.nodes[number]
            if node.body == own.body and own.line < node.line < until:
                maker = self._maker(klass.path, outline, number, klass)
                if maker != klass:
                    yield maker

    def _uses(self, path: str, outline: Outline, klass: Unit, name: str) -> Iterator[int]:
        """Yield the nodes of a module that use a class, or say its name in a text."""
        words = {name}
        words.update(outline.imported.get(name, ()), outline.imported_again.get(name, ()))
        for word in sorted(words):
            for number in outline.by_word.get(word, ()):
                if self._may_mean(path, outline, number, klass) and not _only_asks(outline, number):
                    yield number
        for number in outline.of(Kind.TEXT, name):
            if not _is_export(outline, number) and not _is_compared(outline, number):
                yield number

    def _may_mean(self, path: str, outline: Outline, number: int, klass: Unit) -> bool:
        """True unless a name or an attribute stands for something else than a class."""
        node = outline.nodes[number]
        found = self._linker.dotted(path, number)
        if node.kind == Kind.NAME:
            others = [found, *self._linker.others(path, node.word)]
            if node.word in outline.imports:
                others.append(self._linker.imported(path, node.word))
            return any(one == klass or self._is_unclear(one, klass) for one in others)
        return found in (klass, "") or self._is_unclear(found, klass)

    def _is_unclear(self, found: Unit | str, klass: Unit) -> bool:
        """True for a dotted name that was not found but may be that of a class.

        Nothing binds its name, or it ends in the name of the module, or of its folder, and the name
        of the class: the folder that its import starts from may not be where it was looked for.
        """
        if isinstance(found, Unit) or not found:
            return False
        module, _, last = found.rpartition(".")
        near = os.path.splitext(klass.path)[0].split(os.sep)[-2:]
        if last != self._linker.klass(klass).name:
            return False
        return not module or re.split(r"[.:]", module)[-1] in near

    def _maker(self, path: str, outline: Outline, number: int, klass: Unit) -> Unit | None:
        """Return the body or the class that makes objects of a class, if one place does.

        The class itself if the place makes none, None if it surely runs.
        """
        root = outline.nodes[outline.statement(number)]
        if root.kind in TYPE_HINTS:
            return klass
        if root.kind == Kind.BASE:
            return Unit(path, int(root.word), is_class=True)
        if root.kind == Kind.KEPT and root.slot.startswith("c"):
            return Unit(path, int(root.slot[1:]), is_class=True)
        node = outline.nodes[number]
        if node.body:
            return Unit(path, node.body)
        return klass if self._shown.holds(path, node.line) else None


def _only_asks(outline: Outline, number: int) -> bool:
    """True for a class that ``isinstance`` asks for, or one of several."""
    node = outline.nodes[number]
    while node.parent >= 0 and outline.nodes[node.parent].kind in (Kind.GROUP, Kind.EITHER):
        node = outline.nodes[node.parent]
    called = None if node.parent < 0 else outline.child(node.parent, FUNCTION)
    return called is not None and node.slot == "1" and outline.nodes[called].word in CLASS_TESTS


def _is_compared(outline: Outline, number: int) -> bool:
    """True for a text that is compared with another, or one of several."""
    node = outline.nodes[number]
    while node.parent >= 0 and outline.nodes[node.parent].kind == Kind.GROUP:
        node = outline.nodes[node.parent]
    return node.parent >= 0 and outline.nodes[node.parent].kind == Kind.OPERATION


def _is_export(outline: Outline, number: int) -> bool:
    """True for a text that stands in ``__all__``."""
    root = outline.statement(number)
    if outline.nodes[root].word == "__all__":
        return True
    for slot in (VALUE, FUNCTION, OWNER):
        child = outline.child(root, slot)
        if child is None:
            return False
        root = child
    return outline.nodes[root].word == "__all__"
