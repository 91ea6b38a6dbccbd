"""The calls that make objects of classes, call functions or set attributes out of sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.program.given import ASKING
from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, STARRED, VALUE, Kind
from flake8_torchperf.project.file_index import is_test_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.linking import Search
    from flake8_torchperf.program.objects import Objects
    from flake8_torchperf.program.outlines.outline import Outline
    from flake8_torchperf.project.resolver import Project

# The most uses of one class, and calls of one function, whose arguments are looked at.
MAX_CALLS = 60
# Calls that read a variable of the environment, with the default as their second argument.
ENVIRONMENT_CALLS = frozenset(("os.environ.get", "os.getenv"))
# Names by which code sets attributes whose names are made at run time.
DYNAMIC = ("setattr", "__dict__", "__setattr__", "vars")
# Calls that set an attribute whose name they are given.
SETTING_CALLS = frozenset((*DYNAMIC, "register_buffer", "register_parameter", "register_module"))
# Statements and clauses in which the name of a class makes no object.
NAMING = frozenset((Kind.BASE, Kind.ANNOTATED, Kind.RESULT))


class Makers:
    """Finds what makes objects, and what may give values that no call shows."""

    def __init__(
        self,
        linker: Linker,
        objects: Objects,
        search: Search,
        project: Project,
        is_alive: Callable[[Unit], bool],
    ) -> None:
        self._linker = linker
        self._is_alive = is_alive
        self._objects = objects
        self._search = search
        self._project = project
        self._classes_below: dict[Unit, list[Unit]] = {}

    def sets_by_name(self, outline: Outline, name: str) -> bool:
        """True if a module sets what has a name by a string: ``setattr``, ``globals()[...]``."""
        for number in outline.of(Kind.TEXT, name):
            node = outline.nodes[number]
            called = outline.child(node.parent, FUNCTION)
            if called is not None and outline.nodes[called].word in SETTING_CALLS:
                return True
        owners = (outline.child(root, OWNER) for root in outline.of(Kind.PUT, name))
        return any(one is not None and outline.nodes[one].kind == Kind.CALL for one in owners)

    def runs_texts(self, path: str) -> bool:
        """True if a module may bind its names out of sight: it runs a text, or uses ``globals``."""
        outline = self._linker.outline(path)
        return any(word in outline.by_word for word in ("exec", "globals"))

    def modules(self, word: str, path: str, *, is_attribute: bool = False) -> tuple[str, ...]:
        """Return the modules, tests excepted, that say a word; none if they are too many."""
        found = self._search(word, path, is_attribute=is_attribute)
        if found is None:
            return ()
        every = found if path in found else (path, *found)
        return tuple(one for one in every if one == path or not is_test_path(one))

    def from_below(self, owner: Unit) -> Iterator[tuple[str, int]]:
        """Yield the calls of a constructor in those of the classes below, which replace it."""
        for below in self.below(owner):
            outline = self._linker.outline(below.path)
            if "__init__" not in self._linker.klass(below).methods or not self._is_alive(below):
                continue
            for number in outline.by_word.get("__init__", ()):
                node = outline.nodes[number]
                if node.slot == FUNCTION and self._linker.owner(below.path, node.body) == below:
                    yield below.path, node.parent

    def below(self, owner: Unit) -> list[Unit]:
        """Return the classes of the project that derive from a class, through others too."""
        if owner not in self._classes_below:
            self._classes_below[owner] = self._derived(owner)
        return self._classes_below[owner]

    def _derived(self, owner: Unit) -> list[Unit]:
        found: list[Unit] = []
        waiting = [owner]
        while waiting and len(found) < MAX_CALLS:
            one = waiting.pop()
            for path, number in self._uses_of(one):
                outline = self._linker.outline(path)
                root = outline.nodes[outline.statement(number)]
                if root.kind == Kind.BASE:
                    below = Unit(path, int(root.word), is_class=True)
                    if below not in found and below != owner:
                        found.append(below)
                        waiting.append(below)
        return found

    def _uses_of(self, owner: Unit) -> Iterator[tuple[str, int]]:
        """Yield the places that name a class, as path and number."""
        name = self._linker.klass(owner).name
        for path in self.modules(name, owner.path):
            outline = self._linker.outline(path)
            words = {name, *outline.imported.get(name, ())}
            for word in sorted(words):
                for number in outline.by_word.get(word, ()):
                    if self._linker.dotted(path, number) == owner:
                        yield path, number

    def is_called_elsewhere(self, function: Unit) -> bool:
        """True if a file of settings may name a function, or another project may call it.

        Who makes objects by the name of their class calls no private method of theirs.
        """
        body = self._linker.body(function)
        if body.outer > 0:
            return False
        names = [body.name]
        if body.owner >= 0 and not _is_private(body.name):
            owner = Unit(function.path, body.owner, is_class=True)
            names.append(self._linker.klass(owner).name)
            if self._linker.has_registry(owner):
                return True
        if self.is_public(function.path, *names) or self._project.is_in_settings(names[-1]):
            return True
        paths = self.modules(names[-1], function.path)
        return not paths or any(self._says(path, names[-1]) for path in paths)

    def _says(self, path: str, name: str) -> bool:
        """True if a module names a function or a class by a string, other than in ``__all__``."""
        outline = self._linker.outline(path)
        roots = map(outline.statement, outline.of(Kind.TEXT, name))
        return any(outline.nodes[root].word != "__all__" for root in roots)

    def is_public(self, path: str, *names: str) -> bool:
        """True if another project may use what a module names: it is public, in a distribution."""
        if any(map(_is_private, names)) or not self._linker.module(path).package:
            return False
        return self._project.in_distribution

    def is_written_by_name(self, owner: Unit) -> bool:
        """True if attributes of a class whose names are made at run time may be set."""
        for one in self._linker.lineage(owner):
            outline = self._linker.outline(one.path)
            for word in DYNAMIC:
                for number in outline.by_word.get(word, ()):
                    if self._linker.owner(one.path, outline.nodes[number].body) == one:
                        return True
        paths = self.modules("setattr", owner.path)
        return not paths or any(self._sets_any(path, owner) for path in paths)

    def _sets_any(self, path: str, owner: Unit) -> bool:
        """True if a module sets attributes with names made at run time, maybe of a class."""
        outline = self._linker.outline(path)
        for number in outline.by_word.get("setattr", ()):
            call = outline.nodes[number].parent
            key, holder = outline.child(call, "1"), outline.child(call, "0")
            if key is None or holder is None or outline.nodes[key].kind == Kind.TEXT:
                continue
            known = self._objects.classes(path, holder)
            units = [one for one in known if isinstance(one, Unit)]
            says = self._linker.klass(owner).name in outline.by_word
            if any(self._are_related(one, owner) for one in units) or (says and not known):
                return True
        return False

    def may_be_of(self, path: str, root: int, owner: Unit) -> bool:
        """True if an assignment to an attribute may be one to an object of a class."""
        outline = self._linker.outline(path)
        node = outline.nodes[root]
        if node.slot:
            klass = Unit(path, int(node.slot[1:]), is_class=True)
            return self._are_related(klass, owner)
        holder = outline.child(root, OWNER)
        if holder is None:
            return True
        above = self._linker.dotted(path, holder)
        known = {above} if isinstance(above, Unit) else self._objects.classes(path, holder)
        return not known or any(
            isinstance(one, Unit) and one.is_class and self._are_related(one, owner)
            for one in known
        )

    def _are_related(self, one: Unit, other: Unit) -> bool:
        return one in self._linker.lineage(other) or other in self._linker.lineage(one)

    def is_given_away(self, name: str, paths: tuple[str, ...]) -> bool:
        """True if code that is not read is given a keyword: ``replace(options, watch=True)``."""
        for path in paths:
            outline = self._linker.outline(path)
            for number in outline.by_slot.get(name, ()):
                node = outline.nodes[number]
                if node.parent < 0:
                    continue
                called = outline.child(node.parent, FUNCTION)
                if called is not None and not isinstance(self._linker.dotted(path, called), Unit):
                    return True
        return False

    def constructions(self, owner: Unit) -> list[tuple[str, int]] | None:
        """Return the calls that make objects of a class or of one below it; None if open."""
        found: list[tuple[str, int]] = []
        for klass in (owner, *self.below(owner)):
            public = self.is_public(klass.path, self._linker.klass(klass).name)
            if public or self._linker.has_registry(klass):
                return None
            for path, number in self._uses_of(klass):
                outline = self._linker.outline(path)
                node = outline.nodes[number]
                if node.slot == FUNCTION:
                    if self._is_alive(Unit(path, node.body)):
                        found.append((path, node.parent))
                elif not self._only_names(path, number):
                    return None
        return found if len(found) <= MAX_CALLS else None

    def _only_names(self, path: str, number: int) -> bool:
        """True if a use of a class makes no object: an annotation, a base, ``isinstance``."""
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        if outline.nodes[outline.statement(number)].kind in NAMING:
            return True
        parent = outline.nodes[node.parent]
        called = outline.child(node.parent, FUNCTION)
        asks = called is not None and outline.nodes[called].word in ASKING
        return asks or (parent.kind == Kind.ATTRIBUTE and parent.slot != FUNCTION)

    def keys(self, path: str, holder: int, function: Unit) -> frozenset[object]:
        """Return the keys of a function in a dict that is written out; none if it may change."""
        node = self._linker.outline(path).nodes[holder]
        place = self._linker.dotted(path, holder)
        named = self._linker.named(path, node.body, node.word) if node.kind == Kind.NAME else None
        found = self._linker.place(place) if isinstance(place, str) and place else None
        if isinstance(named, Variable):
            home, variable = path, named
        elif found is not None:
            home, variable = found[0], Variable(0, found[1])
        else:
            return frozenset()
        outline = self._linker.outline(home)
        roots = outline.bound.get(variable, ())
        group = outline.child(roots[0], VALUE) if len(roots) == 1 else None
        if group is None or outline.nodes[group].kind != Kind.GROUP:
            return frozenset()
        slots = {
            outline.nodes[one].slot
            for one in outline.children[group]
            if self._linker.dotted(home, one) == function
        }
        is_put = any(
            variable.name in self._linker.outline(one).put
            for one in self.modules(variable.name, home) or (home,)
        )
        return frozenset() if is_put or not slots.isdisjoint(("", STARRED)) else frozenset(slots)

    def may_set(self, path: str, word: str) -> bool:
        """True if a module may set a variable of the environment: it says its name otherwise."""
        outline = self._linker.outline(path)
        if outline.of(Kind.PUT, word) or word in outline.by_slot:
            return True
        for number in outline.of(Kind.TEXT, word):
            called = outline.child(outline.nodes[number].parent, FUNCTION)
            if called is None or self._linker.dotted(path, called) not in ENVIRONMENT_CALLS:
                return True
        return False


def _is_private(name: str) -> bool:
    """True for a name that only code of its own project uses."""
    return name.startswith("_") and not name.endswith("__")
