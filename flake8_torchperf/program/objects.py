"""The classes of the objects that expressions stand for, as far as a project shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.outline import ATTRIBUTE, FUNCTION, OWNER, VALUE, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.program.outline import Body, Outline

# Classes of the project, and the dotted names of others.
Classes: TypeAlias = "set[Unit | str]"
# How many names, attributes, parameters and results may lead to the class of an object.
MAX_STEPS = 6
# The most calls of a function whose arguments are looked at.
MAX_CALLS = 4
# Annotations of one object, whose arguments are its classes.
WRAPPING = ("Optional", "Final", "ClassVar", "Annotated", "Union")
# Calls that return a container of what is in the one they are given.
HOLDING_CALLS = (
    "dict",
    "list",
    "tuple",
    "set",
    "OrderedDict",
    "deque",
    "sorted",
    "enumerate",
    "zip",
)
# Methods of containers that return one item, and those that return the items.
ONE_ITEM, ALL_ITEMS = ("get", "pop", "setdefault", "popleft"), ("values", "items", "copy")


class Objects:
    """Finds the classes of objects, from what is assigned, stated and given to parameters."""

    def __init__(self, linker: Linker) -> None:
        self._linker = linker
        self._known: dict[tuple[str, int], Classes] = {}
        # The names that one question came to: each is looked up once, however often it is bound.
        self._names: dict[tuple[str, int, str, bool], Classes] = {}
        self._reads: dict[tuple[str, str], dict[Unit | None, list[int]]] = {}

    def reads(self, path: str, name: str, owner: Unit) -> list[int]:
        """Return the reads of an attribute in a module that may be of an object of a class.

        They are read of an object of the class, of one below or above it, or of an unknown one.
        """
        known = self._reads.get((path, name))
        if known is None:
            known = self._reads[path, name] = self._sorted(path, name)
        above = self._linker.lineage(owner)[1:]
        found = {*known.get(None, ()), *known.get(owner, ())}
        for base in above:
            found.update(known.get(_itself(base), ()))
        return sorted(found)

    def _sorted(self, path: str, name: str) -> dict[Unit | None, list[int]]:
        """Return the reads of an attribute by the classes that they may be of.

        Each is listed under the class of its object and those above it; under the class itself
        once more, with the complement of its number, and under None if its class is unknown.
        """
        found: dict[Unit | None, list[int]] = {}
        outline = self._linker.outline(path)
        for number in outline.by_word.get(name, ()):
            if outline.nodes[number].kind != Kind.ATTRIBUTE:
                continue
            holder = outline.child(number, OWNER)
            named = "" if holder is None else self._linker.dotted(path, holder)
            held: Classes = {named} if isinstance(named, Unit) else set()
            units = _own(held or (set() if holder is None else self.classes(path, holder)))
            keys: set[Unit | None] = {one for unit in units for one in self._linker.lineage(unit)}
            keys.update(map(_itself, units))
            for key in keys or {None}:
                found.setdefault(key, []).append(number)
        return found

    def classes(self, path: str, number: int) -> Classes:
        """Return the classes that the value of an expression may have.

        Classes outside the project come as their dotted names. Empty if nothing shows them.
        """
        known = self._known.get((path, number))
        if known is None:
            self._names.clear()
            known = self._known[path, number] = self._of(path, number, MAX_STEPS)
        return known

    def _of(self, path: str, number: int | None, steps: int, *, items: bool = False) -> Classes:
        """Return the classes of an object or, with ``items``, of those that it holds."""
        if steps <= 0 or number is None:
            return set()
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        children = outline.children.get(number, ())
        match node.kind:
            case Kind.NAME:
                return self._of_name(path, node.body, node.word, steps, items=items)
            case Kind.ATTRIBUTE:
                holders = self._of(path, outline.child(number, OWNER), steps - 1)
                return self._of_attribute(holders, node.word, steps, items=items)
            case Kind.CALL:
                return self._of_call(path, number, steps, items=items)
            case Kind.ITEM if not items:
                return self._of(path, outline.child(number, OWNER), steps - 1, items=True)
            case Kind.EITHER | Kind.PASSED:
                return self._of_any(path, children, steps - 1, items=items)
            case Kind.GROUP | Kind.ROUNDS if items:
                return self._of_any(path, children[:MAX_CALLS], steps - 1, items=False)
        return set()

    def _of_any(self, path: str, numbers: Iterable[int], steps: int, *, items: bool) -> Classes:
        return {one for n in numbers for one in self._of(path, n, steps, items=items)}

    def _of_call(self, path: str, number: int, steps: int, *, items: bool) -> Classes:
        outline = self._linker.outline(path)
        called = outline.child(number, FUNCTION)
        if called is None:
            return set()
        word = outline.nodes[called].word
        holder = outline.child(called, OWNER)
        if word in ONE_ITEM and holder is not None and not items:
            return self._of(path, holder, steps - 1, items=True)
        if items and word in ALL_ITEMS and holder is not None:
            return self._of(path, holder, steps - 1, items=True)
        if items and word == "defaultdict":
            return self._made(path, outline.child(number, "0"), steps)
        if items and word in HOLDING_CALLS:
            return self._of(path, outline.child(number, "0"), steps - 1, items=True)
        return self._made(path, called, steps, items=items)

    def _made(self, path: str, called: int | None, steps: int, *, items: bool = False) -> Classes:
        """Return the classes of what a call of an expression returns."""
        if called is None:
            return set()
        outline = self._linker.outline(path)
        node = outline.nodes[called]
        if node.word == "super":
            owner = self._linker.owner(path, node.body)
            return set() if owner is None else set(self._linker.lineage(owner)[1:])
        if node.kind == Kind.LAMBDA:
            return self._returned(Unit(path, int(node.word)), steps, items=items)
        found = self._linker.dotted(path, called)
        if isinstance(found, Unit):
            if found.is_class:
                return set() if items else {found}
            return self._returned(found, steps, items=items)
        if found:
            return {found} if _is_class_name(found) and not items else set()
        if node.kind != Kind.ATTRIBUTE:
            return set()
        holders = self._of(path, outline.child(called, OWNER), steps - 1)
        methods = [self._linker.method(one, node.word) for one in _own(holders)]
        return {
            one
            for method in methods
            if method is not None
            for one in self._returned(method, steps - 1, items=items)
        }

    def _returned(self, function: Unit, steps: int, *, items: bool) -> Classes:
        outline = self._linker.outline(function.path)
        stated = outline.of(Kind.RESULT, str(function.number))
        if stated:
            return {
                one for root in stated for one in self._stated(function.path, root, items=items)
            }
        values = (outline.child(root, VALUE) for root in outline.results.get(function.number, ()))
        return {
            one
            for value in values
            for one in self._of(function.path, value, steps - 1, items=items)
        }

    def _of_name(self, path: str, body: int, name: str, steps: int, *, items: bool) -> Classes:
        place = self._linker.named(path, body, name)
        if isinstance(place, Unit) or place is None:
            return set()
        if isinstance(place, str):
            return {place}  # a module or an object that is imported: its attributes are its own
        scope, name = place
        key = path, scope, name, items
        if key not in self._names:
            self._names[key] = set()  # for a name that is bound to what it holds
            self._names[key] = self._of_variable(path, scope, name, steps, items=items)
        return self._names[key]

    def _of_variable(self, path: str, scope: int, name: str, steps: int, *, items: bool) -> Classes:
        """Return the classes of what a body binds to a name."""
        outline = self._linker.outline(path)
        holder = outline.bodies[scope]
        if holder.owner >= 0 and not holder.is_static and holder.positional[:1] == (name,):
            return {Unit(path, holder.owner, is_class=True)}
        stated = [
            one
            for root in outline.of(Kind.ANNOTATED, name)
            if _annotates(outline, root, scope)
            for one in self._stated(path, root, items=items)
        ]
        found: Classes = set(stated)
        for root in outline.bound.get((scope, name), ()):
            value = outline.child(root, VALUE)
            kind = outline.nodes[root].kind
            if kind in (Kind.BOUND, Kind.ENTERED):
                found |= self._of(path, value, steps - 1, items=items)
            elif kind == Kind.ITERATED and not items:
                found |= self._of(path, value, steps - 1, items=True)
        for root in outline.put.get(name, ()) if items else ():
            if outline.nodes[root].body == scope:
                found |= self._of(path, outline.child(root, VALUE), steps - 1)
        if not found and name in (*holder.positional, *holder.named):
            found = self._given(path, scope, holder, name, steps, items=items)
        return found

    def _given(
        self, path: str, number: int, body: Body, name: str, steps: int, *, items: bool
    ) -> Classes:
        """Return the classes of what the calls in its own module give a parameter."""
        outline = self._linker.outline(path)
        known_by = body.name
        if body.name == "__init__":
            known_by = outline.classes[body.owner].name
        method = body.owner >= 0 and not body.is_static
        position = body.positional.index(name) - method if name in body.positional else -1
        found: Classes = set()
        uses = [one for one in outline.by_word.get(known_by, ()) if _is_called(outline, one)]
        for use in uses[:MAX_CALLS]:
            node = outline.nodes[use]
            if node.body == number or (node.kind == Kind.ATTRIBUTE) != (
                method and body.name != "__init__"
            ):
                continue
            for slot in (str(position), name):
                argument = outline.child(node.parent, slot)
                found |= self._of(path, argument, steps - 1, items=items)
        return found

    def _of_attribute(self, holders: Classes, name: str, steps: int, *, items: bool) -> Classes:
        found: Classes = {f"{one}.{name}" for one in holders if isinstance(one, str)}
        for holder in _own(holders):
            for klass in self._linker.lineage(holder):
                found |= self._kept_in(klass, name, steps, items=items)
        return found

    def _kept_in(self, klass: Unit, name: str, steps: int, *, items: bool) -> Classes:
        """Return the classes of what one class keeps in an attribute."""
        path = klass.path
        outline = self._linker.outline(path)
        found: Classes = set()
        for root in outline.of(Kind.ANNOTATED, name):
            if _belongs(outline, root, klass.number):
                found |= self._stated(path, root, items=items)
        for root in outline.of(Kind.KEPT, name):
            if _belongs(outline, root, klass.number):
                found |= self._of(path, outline.child(root, VALUE), steps - 1, items=items)
        for root in outline.put.get(name, ()) if items else ():
            if outline.bodies[outline.nodes[root].body].owner == klass.number:
                found |= self._of(path, outline.child(root, VALUE), steps - 1)
        return found

    def _stated(self, path: str, root: int, *, items: bool = False) -> Classes:
        """Return the classes that an annotation names, those of optional ones included."""
        outline = self._linker.outline(path)
        found: Classes = set()
        waiting = [(one, items) for one in outline.children.get(root, ())]
        while waiting:
            number, inner = waiting.pop()
            node = outline.nodes[number]
            below = outline.children.get(number, ())
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
                    waiting += [(one, False) for one in self._last(outline, arguments[-1])]
            elif not inner:
                found |= set(self._class(path, number))
        return found

    def _last(self, outline: Outline, number: int) -> Iterator[int]:
        """Yield the last argument of an annotation, which is the class of the values."""
        if outline.nodes[number].kind == Kind.GROUP:
            yield from outline.children.get(number, ())[-1:]
        else:
            yield number

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
        elif isinstance(found, str) and _is_class_name(found):
            yield found


def _itself(unit: Unit) -> Unit:
    """Return the key of the reads of an object whose class is this one, and none below it."""
    return unit._replace(number=~unit.number)


def _own(classes: Classes) -> list[Unit]:
    """Return those of the classes that are of the project, in order."""
    return sorted(one for one in classes if isinstance(one, Unit))


def _is_called(outline: Outline, number: int) -> bool:
    return outline.nodes[number].slot == FUNCTION


def _annotates(outline: Outline, root: int, scope: int) -> bool:
    """True if an annotation is that of a parameter or a variable of a body."""
    node = outline.nodes[root]
    return node.slot == str(scope) or (node.body == scope and not node.slot)


def _belongs(outline: Outline, root: int, klass: int) -> bool:
    """True if a statement in the body of a class, or in a method of it, is about its objects."""
    node = outline.nodes[root]
    if node.slot.startswith("c"):
        return node.slot == f"c{klass}"
    own = outline.bodies[node.body].owner == klass
    return own and (node.kind == Kind.KEPT or node.slot == ATTRIBUTE)


def _is_class_name(dotted: str) -> bool:
    """True for a dotted name that may be a class: ``torch.nn.Linear``."""
    return dotted.rpartition(".")[2].lstrip("_")[:1].isupper()
