"""The uses of names, methods and attributes in a project, by what they may stand for."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.object_values import OF_UNKNOWN_CLASS, own_classes
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, STARRED, Kind
from flake8_torchperf.project.texts.looked_up import BUILDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.program.attribute_reads import AttributeReads
    from flake8_torchperf.program.linking import Search
    from flake8_torchperf.program.objects import Objects
    from flake8_torchperf.program.outlines.outline import Outline

CONTAINER_METHODS = frozenset(
    name for kind in (list, dict, set) for name in vars(kind) if not name.startswith("_")
)
# The method that Python runs with the name of an attribute which an object lacks.
LOOKUP = "__getattr__"


class Uses:
    """Finds uses for the walk from one body; ``opened`` says why there may be others."""

    def __init__(
        self, linker: Linker, objects: Objects, reads: AttributeReads, search: Search, body: Unit
    ) -> None:
        self._linker = linker
        self._objects = objects
        self._reads = reads
        self._search = search
        self.body = body
        self.opened: dict[str, None] = {}
        # True once a read of an unknown object is taken for one of another object.
        self.doubted = False

    def modules(self, word: str, path: str) -> tuple[str, ...]:
        """Return the modules that may use what a module binds under a name, that one included."""
        found = self._search(word, path)
        if found is None:
            self.opened[f"too many modules hold `{word}`"] = None
            return (path,)
        return found if path in found else (path, *found)

    def anywhere(self, word: str, path: str) -> tuple[str, ...]:
        """Return the modules of the project that hold a word, whatever they import."""
        found = self._search(word, path, is_attribute=True)
        if found is None:
            self.opened[f"too many modules hold `{word}`"] = None
        return found or ()

    def reading(self, name: str, path: str) -> tuple[str, ...]:
        """Return the modules that may read what a module keeps in an attribute."""
        return self.modules(f".{name}", path)

    def of_name(self, path: str, body: int, name: str) -> Iterator[tuple[str, int]]:
        """Yield the uses of what a body binds under a name, as path and number.

        Other modules import the names of a module level, some under another name.
        """
        target = Variable(body, name)
        for other, number in self._named_alike(path, body, name):
            if self._stands_for(other, number, path, target):
                yield other, number

    def _named_alike(self, path: str, body: int, name: str) -> Iterator[tuple[str, int]]:
        """Yield the reads of a name where it may stand for what a body binds."""
        if body:
            outline = self._linker.outline(path)
            for number in outline.by_word_inside.get((outline.outermost(body), name), ()):
                yield path, number
            return
        for other in self.modules(name, path):
            outline = self._linker.outline(other)
            words = {name}
            if other != path:
                words.update(outline.imported.get(name, ()), outline.imported_again.get(name, ()))
            for word in sorted(words):
                for number in outline.by_word.get(word, ()):
                    yield other, number

    def _stands_for(self, path: str, number: int, home: str, target: Variable) -> bool:
        """True if a name or a dotted name stands for what the module ``home`` binds."""
        node = self._linker.outline(path).nodes[number]
        found = (
            self._linker.named(path, node.body, node.word)
            if node.kind == Kind.NAME
            else self._linker.dotted(path, number)
        )
        if isinstance(found, Variable):
            return path == home and found == target
        others = self._linker.others(path, node.word) if node.kind == Kind.NAME else ()
        return any(self._is_bound_there(one, path, home, target) for one in (found, *others))

    def _is_bound_there(
        self, found: Unit | str | None, path: str, home: str, target: Variable
    ) -> bool:
        """True if what is found by a name is what the module ``home`` binds."""
        if isinstance(found, Unit):
            if found.is_class or found.path != home:
                return False
            body = self._linker.body(found)
            return (body.outer, body.name) == target and body.owner < 0
        if path != home and found == f"{self._linker.module(home).name}.{target.name}":
            return True
        self.doubt(found, home, target.name)
        return False

    def doubt(self, found: Unit | str | None, home: str, name: str) -> None:
        """Note a dotted name that was not found, if it may stand for what a module binds.

        It ends in the name of the module, or of its folder, and the bound name: the folder that its
        import starts from may not be the one where it was looked for.
        """
        if isinstance(found, str) and found:
            module, _, last = found.rpartition(".")
            near = os.path.splitext(home)[0].split(os.sep)[-2:]
            if last == name and re.split(r"[.:]", module)[-1] in near:
                self.doubted = True

    def near(self, owner: Unit, name: str) -> tuple[str, ...]:
        """Return the modules that may use a method: those that read an attribute of its name.

        If too many do, those that hold the name of its class.
        """
        found = self._search(f".{name}", owner.path, is_attribute=True)
        if found is None:
            self.opened[f"too many modules read `.{name}`"] = None
            klass = self._linker.klass(owner).name
            return self.modules(klass, owner.path)
        return found if owner.path in found else (owner.path, *found)

    def naming(self, owner: Unit, name: str) -> tuple[str, ...]:
        """Return the modules that may name a method by a text."""
        return self.anywhere(f'"{name}"', owner.path)

    def building(self, name: str, path: str) -> tuple[str, ...]:
        """Return the modules that may put the name of a method together, and look it up."""
        return self.anywhere(f"{BUILDING}{name}", path)

    def found_in_modules(self, unit: Unit, name: str) -> Iterator[tuple[str, int, bool]]:
        """Yield the calls of `getattr` that find a function or class in a module, with its path.

        The name is made at run time; True comes with each if a file of settings says it.
        """
        said = self._linker.project.is_in_settings(name)
        for path in self.anywhere("getattr", unit.path):
            outline = self._linker.outline(path)
            for use in outline.by_word.get("getattr", ()):
                call = outline.nodes[use].parent
                is_called = outline.nodes[use].slot == FUNCTION
                module, at = (outline.child(call, slot) if is_called else None for slot in "01")
                if module is None or at is None or outline.nodes[at].kind == Kind.TEXT:
                    continue
                place = self._linker.place_at(path, module)
                there = place[0] if place is not None and not place[1] else ""
                if there and self._linker.named(there, 0, name) == unit:
                    yield path, call, said

    def of_method(self, owner: Unit, name: str) -> Iterator[tuple[str, int, bool]]:
        """Yield the reads that may be of a method of a class, as path and number.

        True comes with a read that is for certain; a method that is read of an unknown object is
        meant if it is the only one of its name.
        """
        defining = self._search(f"def {name}", owner.path) or ()
        for path in self.near(owner, name):
            for number in self._reads.of(path, name, owner):
                sure = self._is_of(path, number, owner)
                if sure is False:
                    sure = self._may_mean(path, number, is_only=len(defining) == 1)
                    self.doubted = self.doubted or sure is None
                if sure is not None:
                    yield path, number, sure

    def _is_of(self, path: str, number: int, owner: Unit) -> bool | None:
        """True if an attribute is read of an object of a class, of one above or below it.

        None if it is not; False if nothing shows what is read.
        """
        outline = self._linker.outline(path)
        holder = outline.child(number, OWNER)
        if holder is None:
            return False
        word = outline.nodes[number].word
        called = outline.child(holder, FUNCTION)
        if called is not None and outline.nodes[called].word == "super":
            return self._is_of_super(path, outline.nodes[number].body, word, owner)
        named = self._linker.dotted(path, holder)
        if isinstance(named, Unit):
            found: set[Unit | str] = {named}
        else:
            found = self._objects.classes(path, holder)
        if not found:
            return False
        units = [one for one in found if isinstance(one, Unit)]
        if not units:
            return None if all(map(self._is_foreign, found)) else False
        for one in units:
            method = self._linker.method(one, word)
            if owner in self._linker.lineage(one):
                if method == self.body or method is None or self.body.number == 0:
                    return True
            elif one in self._linker.lineage(owner):
                return True  # an object of a class below may be meant
            elif self._linker.fits(owner, one):
                return True
            elif method is None and self._linker.foreign_bases(one):
                return False
        return False if OF_UNKNOWN_CLASS in found else None

    def is_method_of(self, path: str, number: int | None) -> bool:
        """True if an expression stands for an object whose method of its name the body is.

        If nothing shows the object, the method is meant if it is the only one of its name.
        """
        if self._linker.body(self.body).owner < 0:
            return False
        name = self._linker.body(self.body).name
        found = set() if number is None else self._objects.classes(path, number)
        if not found:
            defining = self._search(f"def {name}", self.body.path) or ()
            methods = (self._linker.outline(one).methods.get(name, ()) for one in defining)
            return sum(map(len, methods)) == 1
        classes = own_classes(found)
        return any(self._linker.method(one, name) == self.body for one in classes)

    def _is_of_super(self, path: str, body: int, word: str, owner: Unit) -> bool | None:
        """True if ``super().word`` in a body may be a method of a class; None if it is not.

        It is that of a class above the one around the body, or of one beside it that a class
        derives from as well.
        """
        around = self._linker.owner(path, body)
        if around is None:
            return False
        for one in self._linker.lineage(around)[1:]:
            if self._linker.method(one, word) == self.body or self.body.number == 0:
                return True
        if owner in self._linker.lineage(around):
            return None
        name = self._linker.klass(owner).name
        beside = (
            Unit(other, number, is_class=True)
            for other in self.modules(name, owner.path)
            for number in range(len(self._linker.outline(other).classes))
        )
        both = {around, owner}
        return True if any(both.issubset(self._linker.lineage(one)) for one in beside) else None

    def _may_mean(self, path: str, number: int, *, is_only: bool) -> bool | None:
        """True if a method that is read of an unknown object is the only one of its name.

        None if the call gives other arguments than it takes, or those of a list, a dict or a set.
        """
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        if node.slot != FUNCTION:
            return is_only
        given = [outline.nodes[one].slot for one in outline.children[node.parent]]
        given.remove(FUNCTION)
        if STARRED in given:
            return is_only
        most = 2 if node.word == "insert" else 1
        of_container = node.word in CONTAINER_METHODS and len(given) <= most
        if of_container and not self._is_made(path, outline.child(number, OWNER)):
            return None
        return is_only if self._fits(given) else None

    def _is_made(self, path: str, holder: int | None) -> bool:
        """True if an expression stands for an object of a class, though nothing shows which."""
        return holder is not None and OF_UNKNOWN_CLASS in self._objects.classes(path, holder)

    def _fits(self, given: list[str]) -> bool:
        """True if a call of the method on an object may give arguments in these slots."""
        outline = self._linker.outline(self.body.path)
        body = self._linker.body(self.body)
        takes = [*body.positional[0 if body.is_static else 1 :], *body.named]
        needed = len(takes) - len(outline.defaults.get(self.body.number, ()))
        return needed <= len(given) and (any(body.rest) or len(given) <= len(takes))

    def _is_foreign(self, name: Unit | str) -> bool:
        """True for a dotted name of another project."""
        return isinstance(name, str) and name != OF_UNKNOWN_CLASS and not self._linker.is_own(name)

    def setters(self, name: str, owner: Unit | None, path: str) -> Iterator[Unit]:
        """Yield the setters of a property that an assignment to an attribute may run.

        ``owner`` is the class of the object; None if it is not known.
        """
        for other in self._search(f"def {name}", path, is_attribute=True) or ():
            outline = self._linker.outline(other)
            for root in outline.by_word.get("setter", ()):
                word = outline.nodes[outline.statement(root)].word
                number = int(word[1:]) if word[:1] == "b" else 0
                body = outline.bodies[number]
                klass = Unit(other, body.owner, is_class=True)
                if body.name != name or body.owner < 0:
                    continue
                if owner is None or klass in self._linker.lineage(owner):
                    yield Unit(other, number)

    def lacking(self, owner: Unit, name: str) -> Iterator[tuple[str, int, Unit]]:
        """Yield the reads of an attribute of objects that have no method of this name.

        Each with the ``__getattr__`` of the object's class, to which Python passes the name.
        """
        defining = self._search(f"def {LOOKUP}", owner.path, is_attribute=True)
        if defining is not None and not any(
            self._linker.outline(one).methods.get(LOOKUP) for one in defining
        ):
            return
        for path in self.near(owner, name):
            outline = self._linker.outline(path)
            for number in outline.by_word.get(name, ()):
                holder = outline.child(number, OWNER)
                if holder is None:
                    continue
                for one in own_classes(self._objects.classes(path, holder)):
                    lookup = self._linker.method(one, LOOKUP)
                    if lookup is not None and self._linker.method(one, name) is None:
                        yield path, number, lookup

    def assigned(self, owner: Unit, name: str) -> Iterator[tuple[str, int, bool]]:
        """Yield the assignments to an attribute that may be one of an object of a class.

        True comes with one that is for certain.
        """
        for path in self.near(owner, name):
            outline = self._linker.outline(path)
            augmented = (one for one in outline.by_word.get(name, ()) if _is_changed(outline, one))
            given = (one for one in outline.of(Kind.TEXT, name) if _is_set(outline, one))
            for number in (*outline.of(Kind.KEPT, name), *augmented, *given):
                holder = _set_on(outline, number)
                if holder is not None and self._may_be_of(path, holder, owner):
                    yield path, number, bool(own_classes(self._objects.classes(path, holder)))
            for number in outline.unpacked.get(name, ()):
                yield path, number, False

    def in_class(self, owner: Unit, name: str) -> Iterator[int]:
        """Yield the uses of a method's plain name in the body of its class."""
        outline = self._linker.outline(owner.path)
        around = self._linker.klass(owner).body
        for number in outline.by_word.get(name, ()):
            node = outline.nodes[number]
            if node.kind != Kind.NAME or node.body != around:
                continue
            root = outline.nodes[outline.statement(number)]
            if root.kind == Kind.KEPT and root.slot:
                inside = root.slot == f"c{owner.number}"
            elif root.kind == Kind.DECORATED and root.word.startswith("b"):
                inside = outline.bodies[int(root.word[1:])].owner == owner.number
            elif root.kind == Kind.DEFAULT:
                inside = outline.bodies[int(root.slot)].owner == owner.number
            else:
                inside = self._linker.named(owner.path, around, name) is None
            if inside:
                yield number

    def may_hold(self, path: str, number: int, owner: Unit) -> bool:
        """True if the owner of an attribute may be an object of a class, or of one around it."""
        holder = self._linker.outline(path).child(number, OWNER)
        return holder is None or self._may_be_of(path, holder, owner)

    def _may_be_of(self, path: str, holder: int, owner: Unit) -> bool:
        """True if an expression may stand for an object of a class, or of one around it."""
        found = self._objects.classes(path, holder)
        units = [one for one in found if isinstance(one, Unit)]
        if not units:
            return not found or not all(map(self._is_foreign, found))
        return any(
            owner in self._linker.lineage(one) or one in self._linker.lineage(owner)
            for one in units
        )

    def methods(self, path: str, called: int, *, sure: bool = False) -> list[Unit]:
        """Return the methods of the project that a call of an attribute may run.

        With ``sure``, only those of the classes that the object is shown to have.
        """
        outline = self._linker.outline(path)
        holder = outline.child(called, OWNER)
        word = outline.nodes[called].word
        found = set() if holder is None else self._objects.classes(path, holder)
        units = [one for one in found if isinstance(one, Unit)]
        methods = [self._linker.method(one, word) for one in units]
        if any(map(self._linker.is_protocol, units)):
            methods = []
        known = [one for one in methods if one is not None]
        if known or sure or (found and all(map(self._is_foreign, found))):
            return known
        paths = self._search(f"def {word}", path) or ()
        return [
            Unit(other, number)
            for other in paths
            for number in self._linker.outline(other).methods.get(word, ())
        ]

    def is_bound(self, path: str, called: int, function: Unit) -> bool:
        """True if a call of a method gives its first parameter no argument of its own."""
        body = self._linker.body(function)
        if body.owner < 0 or body.is_static:
            return False
        holder = self._linker.outline(path).child(called, OWNER)
        owner = None if holder is None else self._linker.dotted(path, holder)
        return not isinstance(owner, Unit)


def _is_changed(outline: Outline, number: int) -> bool:
    """True for an attribute that an augmented assignment changes, as ``x.total += 1``."""
    node = outline.nodes[number]
    above = None if node.parent < 0 else outline.nodes[node.parent]
    return above is not None and above.kind == Kind.OPERATION and above.word.endswith("=")


def _is_set(outline: Outline, number: int) -> bool:
    """True for a text that a call of `setattr` is given for the name of an attribute."""
    node = outline.nodes[number]
    called = None if node.parent < 0 else outline.child(node.parent, FUNCTION)
    return called is not None and node.slot == "1" and outline.nodes[called].word == "setattr"


def _set_on(outline: Outline, number: int) -> int | None:
    """Return the object whose attribute an assignment or a call of `setattr` sets."""
    is_text = outline.nodes[number].kind == Kind.TEXT
    return (
        outline.child(outline.nodes[number].parent, "0")
        if is_text
        else outline.child(number, OWNER)
    )
