"""The classes that annotations state, and those that a function or a registry decorates."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.program.given import INSTANTIATING
from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.outlines.outline import ATTRIBUTE, FUNCTION, OWNER, VALUE, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.linking import Search
    from flake8_torchperf.program.outlines.outline import Outline

# Classes of the project, and the dotted names of others.
Classes: TypeAlias = "set[Unit | str]"
# Annotations of one object, whose arguments are its classes.
WRAPPING = ("Optional", "Final", "ClassVar", "Annotated", "Union")
# The most classes that a name may select.
MAX_NAMED = 40


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


class Factories:
    """Finds the classes of the objects that a call makes by their names at run time.

    These names select one of the classes in a registry, or of those in a file of settings.
    """

    def __init__(self, linker: Linker, search: Search) -> None:
        self._linker = linker
        self._search = search
        # The classes in registries, by the variables that hold these.
        self._registries: dict[tuple[str, str], list[Unit]] = {}

    def named(self, path: str, call: int, *, is_open: bool) -> list[Unit]:
        """Return the classes in the registry or the section of settings that a call is given.

        A registry is called itself, or given: ``LOSSES.build(cfg)``, ``build(cfg, LOSSES)``.
        Settings say more where the class ``is_open``. Empty if there are none, or too many.
        """
        outline = self._linker.outline(path)
        called, first = outline.child(call, FUNCTION), outline.child(call, "0")
        asked = [one for one in outline.children[call] if one != called]
        holder = None if called is None else outline.child(called, OWNER)
        asked += [] if holder is None else [holder]
        found = [one for number in asked for one in self._in_registry(path, number)]
        loads = called is not None and outline.nodes[called].word == INSTANTIATING
        if not found and first is not None and (loads or is_open):
            node = outline.nodes[first]
            found = self._linker.in_settings("" if node.kind == Kind.NAME else node.word)
        return found if len(found) <= MAX_NAMED else []

    def _in_registry(self, path: str, number: int) -> list[Unit]:
        """Return the classes in the registry that an expression names."""
        kept = _kept_at(self._linker, path, number)
        if kept is None:
            return []
        if kept not in self._registries:
            found = _registered(self._linker, self._search, *kept)
            self._registries[kept] = list(dict.fromkeys(found))
        return self._registries[kept]


def _kept_at(linker: Linker, path: str, number: int) -> tuple[str, str] | None:
    """Return the module and the variable of its level that an expression names, if it does."""
    node = linker.outline(path).nodes[number]
    found = linker.named(path, node.body, node.word) if node.kind == Kind.NAME else None
    if isinstance(found, Variable):
        return None if found.body else (path, found.name)
    is_elsewhere = found is None or isinstance(found, str)
    place = linker.place_at(path, number) if is_elsewhere else None
    return place if place is not None and place[1] else None


def _registered(linker: Linker, search: Search, home: str, name: str) -> Iterator[Unit]:
    """Yield the classes that a variable of a module level decorates, or that its calls are given.

    As ``@LOSSES.register("mse")`` and ``LOSSES.register("mse", Mse)``. The variable holds an object
    of a class.
    """
    bound = linker.outline(home).bound.get((0, name), ())
    made = [linker.outline(home).child(root, VALUE) for root in bound]
    if not any(one is not None and _makes_object(linker, home, one) for one in made):
        return
    for path in search(name, home) or ():
        outline = linker.outline(path)
        words = {name, *outline.imported.get(name, ())} if path != home else {name}
        for use in [one for word in sorted(words) for one in outline.by_word.get(word, ())]:
            above = outline.nodes[use].parent
            if above < 0 or outline.nodes[use].slot != OWNER:
                continue
            if _kept_at(linker, path, use) != (home, name):
                continue
            while above >= 0 and outline.nodes[above].kind in (Kind.ATTRIBUTE, Kind.CALL):
                given = (linker.dotted(path, one) for one in outline.children[above])
                yield from (one for one in given if isinstance(one, Unit) and one.is_class)
                above = outline.nodes[above].parent
            word = outline.nodes[above].word if above >= 0 else ""
            if word.startswith("c") and outline.nodes[above].kind == Kind.DECORATED:
                yield Unit(path, int(word[1:]), is_class=True)


def _makes_object(linker: Linker, path: str, number: int) -> bool:
    """True if an expression calls a class."""
    called = linker.outline(path).child(number, FUNCTION)
    found = "" if called is None else linker.dotted(path, called)
    return found.is_class if isinstance(found, Unit) else is_class_name(found)
