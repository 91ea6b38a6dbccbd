"""The classes of the objects that expressions stand for, as far as a project shows them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from flake8_torchperf.program.derivations import Derivations
from flake8_torchperf.program.given import (
    ALL_ITEMS,
    HOLDING_CALLS,
    KEEPING,
    KEEPING_EACH,
    MODULE_CONTAINERS,
    ONE_ITEM,
    PARSED,
    PARSERS,
    PARSING,
    REMOTE,
    TRANSFORMING,
)
from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.object_values import (
    OF_UNKNOWN_CLASS,
    Itself,
    classes_of,
    is_own_namespace,
    looked_up,
    named_classes,
    named_in,
    own_classes,
)
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, VALUE, Kind
from flake8_torchperf.program.stated_classes import (
    Annotations,
    Classes,
    Factories,
    annotates,
    belongs,
    decorated,
    is_class_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flake8_torchperf.program.linking import Search
    from flake8_torchperf.program.object_values import Values
    from flake8_torchperf.program.outlines.outline import Body


class Passed(Protocol):
    """The arguments that calls give the parameters of functions."""

    def of(self, function: Unit, name: str) -> Iterable[tuple[str, int | None]]:
        """Return what each call gives a parameter, by module and number."""

    def are_open(self, function: Unit) -> bool:
        """True if calls that aren't seen may give a function its arguments."""


# Parameters and variables that hold classes.
_CLASS_NAMES = ("cls", "klass", "class_")
# How many names, attributes, parameters and results may lead to the class of an object.
MAX_STEPS = 6
MAX_STEPS_BETWEEN_MODULES = 12
# The most calls of a function whose arguments are looked at.
MAX_CALLS = 4
# The most entries of a container, and classes of one decorator, that are looked at.
MAX_ENTRIES = 40
# Expressions whose value may be an object.
_VALUES = (Kind.NAME, Kind.ATTRIBUTE, Kind.CALL, Kind.ITEM)
# Stands for a name in what is bound to it, as in ``model = model.to(device)``.
_ITSELF = "*"


class Objects:
    """Finds the classes of objects, from what is assigned, stated and given to parameters."""

    def __init__(self, linker: Linker, search: Search, arguments: Passed | None = None) -> None:
        """Find the classes by ``arguments`` of all calls, or by those in a function's own module.

        Who calls a method is found by the classes of objects, as each module shows them by itself.
        """
        self._linker = linker
        self._search = search
        self._annotations = Annotations(linker)
        self._factories = Factories(linker, search)
        self._arguments = arguments
        self._steps = MAX_STEPS if arguments is None else MAX_STEPS_BETWEEN_MODULES
        self._known: dict[tuple[str, int, bool], Classes] = {}
        self._given_by_calls: dict[tuple[Unit, str], tuple[tuple[str, int | None], ...]] = {}
        # The values of names, attributes and functions, however often they are bound or called.
        # The first part of a key is the scope of a name, the class of an attribute or the function,
        # whose name is "".
        self._derived: Derivations[Unit | str | Itself] = Derivations(_ITSELF)

    def classes(self, path: str, number: int, *, items: bool = False) -> Classes:
        """Return the classes that the value of an expression may have; with ``items``, its items.

        Classes outside the project come as their dotted names, and `OF_UNKNOWN_CLASS` where others
        are possible. Empty if nothing shows them.
        """
        known = self._known.get((path, number, items))
        if known is None:
            values = self.values(path, number, items=items)
            known = {one for one in values if not isinstance(one, Itself)}
            self._known[path, number, items] = known
        return known

    def values(self, path: str, number: int, *, items: bool = False) -> Values:
        """Return what `classes` does, and the functions and classes that the value may be."""
        return _but_itself(self._of(path, number, self._steps, items=items))

    def _of(self, path: str, number: int | None, steps: int, *, items: bool = False) -> Values:
        """Return what an expression stands for or, with ``items``, what it holds."""
        if number is None or self._derived.are_spent(steps):
            return set()
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        match node.kind:
            case Kind.NAME:
                return self._of_name(path, node.body, node.word, steps, items=items)
            case Kind.ATTRIBUTE:
                holders = self._of(path, outline.child(number, OWNER), steps - 1)
                if node.word == "__class__":
                    return set() if items else classes_of(holders)
                return self._of_attribute(holders, node.word, steps, items=items)
            case Kind.CALL:
                return self._of_call(path, number, steps, items=items)
            case Kind.ITEM if not items:
                holder = outline.child(number, OWNER)
                if node.word and is_own_namespace(outline, holder):
                    return named_in(self._linker, path, node.word)
                return self._of(path, holder, steps - 1, items=True)
            case Kind.EITHER | Kind.PASSED:
                return self._of_any(path, outline.children[number], steps - 1, items=items)
            case Kind.GROUP | Kind.ROUNDS if items:
                children = outline.children[number]
                found = self._of_any(path, children[:MAX_ENTRIES], steps - 1, items=False)
                more = found and len(children) > MAX_ENTRIES
                return found | {OF_UNKNOWN_CLASS} if more else found
            case Kind.LAMBDA if not items:
                return {Itself(Unit(path, int(node.word)))}
        return set()

    def _of_any(self, path: str, numbers: Iterable[int], steps: int, *, items: bool) -> Values:
        return {one for n in numbers for one in self._of(path, n, steps, items=items)}

    def _of_call(self, path: str, number: int, steps: int, *, items: bool) -> Values:
        outline = self._linker.outline(path)
        called = outline.child(number, FUNCTION)
        if called is None:
            return set()
        word = outline.nodes[called].word
        holder = outline.child(called, OWNER)
        if word in ONE_ITEM and holder is not None and not items:
            found = self._of(path, holder, steps - 1, items=True)
            if found:
                return found
        if items and word in ALL_ITEMS and holder is not None:
            return self._of(path, holder, steps - 1, items=True)
        if items and is_own_namespace(outline, number):
            return named_in(self._linker, path)
        if word == "type" and holder is None and not items:
            return classes_of(self._of(path, outline.child(number, "0"), steps - 1))
        if items and word == "defaultdict":
            return self._made(path, outline.child(number, "0"), steps)
        if word in TRANSFORMING and self._is_foreign(path, called):
            return self._of(path, outline.child(number, "0"), steps - 1, items=items)
        if word == PARSING and not PARSERS.isdisjoint(self._of(path, holder, steps - 1)):
            return set() if items else {PARSED}
        if items and word in MODULE_CONTAINERS:
            given = [one for one in outline.children[number] if one != called]
            one_by_one = self._of_any(path, given[:MAX_ENTRIES], steps - 1, items=False)
            return one_by_one or self._of_any(path, given[:1], steps - 1, items=True)
        if items and word in HOLDING_CALLS:
            return self._of(path, outline.child(number, "0"), steps - 1, items=True)
        if word == "getattr" and holder is None:
            return set() if items else looked_up(self._linker, path, number)
        made = self._made(path, called, steps, items=items)
        if not items:
            is_open = OF_UNKNOWN_CLASS in made
            named = self._factories.named(path, number, is_open=is_open)
            if named and (is_open or not made or not made.isdisjoint(named)):
                made = {*named, *map(Itself, named)}
        if word in KEEPING and not made:
            kept = self._of(path, holder, steps - 1, items=items)
            return {one for one in kept if not isinstance(one, Itself)}
        if word == REMOTE and not made and not items:
            return {*named_classes(self._of(path, holder, steps - 1))}
        return made

    def _is_foreign(self, path: str, called: int) -> bool:
        """True if an expression names a function that is not of the project."""
        found = self._linker.dotted(path, called)
        return isinstance(found, str) and found != ""

    def _made(self, path: str, called: int | None, steps: int, *, items: bool = False) -> Values:
        """Return what a call of an expression returns."""
        if called is None:
            return set()
        outline = self._linker.outline(path)
        node = outline.nodes[called]
        if node.word == "super":
            owner = self._linker.owner(path, node.body)
            return set() if owner is None else set(self._linker.lineage(owner)[1:])
        found = self._linker.dotted(path, called)
        if isinstance(found, Unit):
            named = self._linker.others(path, node.word) if node.kind == Kind.NAME else []
            ways = [found, *(one for one in named if isinstance(one, Unit))]
            return {one for way in ways for one in self._called(way, steps, items=items)}
        if found and self._linker.place(found) is None:
            return {found} if is_class_name(found) and not items else set()
        methods = self._methods(path, called, steps - 1)
        if methods:
            return {
                one for method in methods for one in self._returned(method, steps - 1, items=items)
            }
        values = self._of(path, called, steps)
        units = sorted(one.unit for one in values if isinstance(one, Itself))
        made = {one for unit in units for one in self._called(unit, steps - 1, items=items)}
        unknown = OF_UNKNOWN_CLASS in values or (
            not units and node.word.lower().endswith(_CLASS_NAMES)
        )
        return made | {OF_UNKNOWN_CLASS} if unknown and not items else made

    def _called(self, unit: Unit, steps: int, *, items: bool) -> Values:
        """Return what a call of a function or a class of the project returns."""
        if unit.is_class:
            return set() if items else {unit}
        return self._returned(unit, steps, items=items)

    def _returned(self, function: Unit, steps: int, *, items: bool) -> Values:
        outline = self._linker.outline(function.path)
        stated = outline.of(Kind.RESULT, str(function.number))
        if stated:
            found = {
                one
                for root in stated
                for one in self._annotations.classes(function.path, root, items=items)
            }
            if found:
                return {*found}
        find = partial(self._results, function, steps, items=items)
        return self._once((function, "", items), steps, find)

    def _results(self, function: Unit, steps: int, *, items: bool) -> Values:
        """Return what the `return` statements of a function return."""
        outline = self._linker.outline(function.path)
        roots = outline.results.get(function.number, ())
        return {
            one
            for root in roots
            for one in self._of(function.path, outline.child(root, VALUE), steps - 1, items=items)
        }

    def _of_name(self, path: str, body: int, name: str, steps: int, *, items: bool) -> Values:
        place = self._linker.named(path, body, name)
        if place is None:
            return set()
        if isinstance(place, Unit):
            others = (one for one in self._linker.others(path, name) if isinstance(one, Unit))
            return set() if items else {Itself(place), *map(Itself, others)}
        if isinstance(place, str):
            return self._imported(place, steps, items=items)
        return self._bound(path, place, steps, items=items)

    def _unpacked(self, path: str, root: int, target: str, steps: int, *, items: bool) -> Values:
        """Return what an assignment to several targets binds to one of them."""
        outline = self._linker.outline(path)
        targets = outline.nodes[root].word.split(",")
        if target not in targets:
            return set()  # it is part of a target
        value = outline.child(root, VALUE)
        return self._part(path, value, targets.index(target), steps, items=items)

    def _part(
        self, path: str, number: int | None, position: int, steps: int, *, items: bool
    ) -> Values:
        """Return what stands at a position of a tuple that an expression gives."""
        if number is None or self._derived.are_spent(steps):
            return set()
        outline = self._linker.outline(path)
        parts: list[tuple[str, int | None]]
        match outline.nodes[number].kind:
            case Kind.GROUP:
                return self._of(path, outline.child(number, str(position)), steps, items=items)
            case Kind.EITHER | Kind.PASSED:
                parts = [(path, one) for one in outline.children[number]]
            case Kind.CALL:
                called = outline.child(number, FUNCTION)
                if called is not None and outline.nodes[called].word in KEEPING_EACH:
                    given = outline.child(number, str(position))
                    return self._of(path, given, steps - 1, items=items)
                parts = [
                    (function.path, self._linker.outline(function.path).child(root, VALUE))
                    for function in self._functions(path, called, steps - 1)
                    for root in self._linker.outline(function.path).results.get(function.number, ())
                ]
            case _:
                return set()
        return {
            one
            for where, part in parts
            for one in self._part(where, part, position, steps - 1, items=items)
        }

    def _functions(self, path: str, called: int | None, steps: int) -> list[Unit]:
        """Return the functions and methods of the project that a called expression stands for."""
        if called is None:
            return []
        found = self._linker.dotted(path, called)
        if isinstance(found, Unit):
            return [] if found.is_class else [found]
        return self._methods(path, called, steps)

    def _methods(self, path: str, called: int, steps: int) -> list[Unit]:
        """Return the methods of the project that a called attribute of an object stands for."""
        outline = self._linker.outline(path)
        node = outline.nodes[called]
        if node.kind != Kind.ATTRIBUTE:
            return []
        holders = self._of(path, outline.child(called, OWNER), steps)
        methods = (self._linker.method(one, node.word) for one in own_classes(holders))
        return [one for one in methods if one is not None]

    def _imported(self, dotted: str, steps: int, *, items: bool) -> Values:
        """Return what an imported name stands for: what its module binds, or its dotted name."""
        place = self._linker.place(dotted)
        if place is not None and place[1]:
            found = self._bound(place[0], Variable(0, place[1]), steps, items=items)
            if found:
                return found
        return {dotted}  # a module or an object: its attributes are its own

    def _bound(self, path: str, variable: Variable, steps: int, *, items: bool) -> Values:
        find = partial(self._of_variable, path, *variable, steps, items=items)
        return self._once((Unit(path, variable.body), variable.name, items), steps, find)

    def _once(self, key: tuple[Unit, str, bool], steps: int, find: Callable[[], Values]) -> Values:
        """Return what a key stands for, but for what it is bound to that it holds itself."""
        return self._derived.of(key, steps, lambda: _but_itself(find()))

    def _of_variable(self, path: str, scope: int, name: str, steps: int, *, items: bool) -> Values:
        """Return what a body binds to a name, or puts into what it binds."""
        outline = self._linker.outline(path)
        holder = outline.bodies[scope]
        if holder.owner >= 0 and not holder.is_static and holder.positional[:1] == (name,):
            owner = Unit(path, holder.owner, is_class=True)
            return {owner, Itself(owner)} if name in _CLASS_NAMES else {owner}
        stated = [
            one
            for root in outline.of(Kind.ANNOTATED, name)
            if annotates(outline, root, scope)
            for one in self._annotations.classes(path, root, items=items)
        ]
        found: Values = set(stated)
        is_whole = True
        for root in outline.bound.get((scope, name), ()):
            value = outline.child(root, VALUE)
            kind = outline.nodes[root].kind
            bound: Values = set()
            if kind in (Kind.BOUND, Kind.ENTERED):
                bound = self._of(path, value, steps - 1, items=items)
            elif kind == Kind.ITERATED and not items:
                bound = self._of(path, value, steps - 1, items=True)
            elif kind == Kind.UNPACKED:
                bound = self._unpacked(path, root, name, steps - 1, items=items)
            if not bound and value is not None and outline.nodes[value].kind in _VALUES:
                is_whole = False
            found |= _but_itself(bound)
        for root in outline.put.get(name, ()) if items else ():
            body = outline.nodes[root].body
            if self._linker.named(path, body, name) == Variable(scope, name):
                found |= self._of(path, outline.child(root, VALUE), steps - 1)
        if not stated and name in (*holder.positional, *holder.named):
            given = self._given(path, scope, holder, name, steps, items=items)
            is_whole = is_whole and bool(given)
            found |= given
        return found if is_whole or not found else {*found, OF_UNKNOWN_CLASS}

    def _given(
        self, path: str, number: int, body: Body, name: str, steps: int, *, items: bool
    ) -> Values:
        """Return what the calls in its own module give a parameter, and what is decorated."""
        if self._arguments is not None:
            return self._passed(Unit(path, number), name, steps, self._arguments, items=items)
        outline = self._linker.outline(path)
        known_by = body.name
        if body.name == "__init__":
            known_by = outline.classes[body.owner].name
        method = body.owner >= 0 and not body.is_static
        position = body.positional.index(name) - method if name in body.positional else -1
        found: Values = set()
        uses = [
            one for one in outline.by_word.get(known_by, ()) if outline.nodes[one].slot == FUNCTION
        ]
        for use in uses[:MAX_CALLS]:
            node = outline.nodes[use]
            if node.body == number or (node.kind == Kind.ATTRIBUTE) != (
                method and body.name != "__init__"
            ):
                continue
            for slot in (str(position), name):
                argument = outline.child(node.parent, slot)
                found |= self._of(path, argument, steps - 1, items=items)
        if body.owner < 0 and position == 0 and not items:
            found |= self._decorated(Unit(path, number))
        return found

    def _passed(
        self, function: Unit, name: str, steps: int, arguments: Passed, *, items: bool
    ) -> Values:
        """Return what all calls give a parameter, and what the function decorates."""
        found: Values = set()
        asked = function, name
        if asked not in self._given_by_calls:
            self._given_by_calls[asked] = tuple(arguments.of(function, name))
        for path, number in self._given_by_calls[asked]:
            given = self._of(path, number, steps - 1, items=items)
            found |= given
            if not given and (number is None or not self._is_none(path, number)):
                found.add(OF_UNKNOWN_CLASS)
        body = self._linker.body(function)
        if body.owner < 0 and body.positional[:1] == (name,) and not items:
            found |= self._decorated(function)
        return {*found, OF_UNKNOWN_CLASS} if found and arguments.are_open(function) else found

    def _is_none(self, path: str, number: int) -> bool:
        node = self._linker.outline(path).nodes[number]
        return (node.kind, node.word) == (Kind.LITERAL, "None")

    def _decorated(self, decorator: Unit) -> Values:
        """Return the classes of the project that a function decorates."""
        found: Values = set()
        for one in decorated(decorator, self._linker, self._search, self._is_use_of):
            found.add(Itself(one))
            if len(found) >= MAX_ENTRIES:
                return {*found, OF_UNKNOWN_CLASS}
        return found

    def _is_use_of(self, path: str, use: int, function: Unit) -> bool:
        """True if an expression names a function, or a method of an object that has it."""
        if self._linker.dotted(path, use) == function:
            return True
        outline = self._linker.outline(path)
        holder = outline.child(use, OWNER)
        if holder is None or self._linker.body(function).owner < 0:
            return False
        owners = own_classes(self._derived.apart(partial(self._of, path, holder, MAX_STEPS)))
        return any(self._linker.method(one, outline.nodes[use].word) == function for one in owners)

    def _of_attribute(self, holders: Values, name: str, steps: int, *, items: bool) -> Values:
        found: Values = set()
        for holder in holders:
            if isinstance(holder, str) and holder != OF_UNKNOWN_CLASS:
                found |= self._imported(f"{holder}.{name}", steps, items=items)
        for one in sorted({*own_classes(holders), *named_classes(holders)}):
            for klass in self._linker.lineage(one):
                found |= self._kept_in(klass, name, steps, items=items)
        return found

    def _kept_in(self, klass: Unit, name: str, steps: int, *, items: bool) -> Values:
        """Return what one class keeps in an attribute, which may be bound to what it holds."""
        find = partial(self._of_kept, klass, name, steps, items=items)
        return self._once((klass, name, items), steps, find)

    def _of_kept(self, klass: Unit, name: str, steps: int, *, items: bool) -> Values:
        """Return what one class states of an attribute, binds to it, or puts into it."""
        path = klass.path
        outline = self._linker.outline(path)
        found: Values = set()
        for root in outline.of(Kind.ANNOTATED, name):
            if belongs(outline, root, klass.number):
                found |= self._annotations.classes(path, root, items=items)
        for root in outline.of(Kind.KEPT, name):
            if belongs(outline, root, klass.number):
                found |= self._of(path, outline.child(root, VALUE), steps - 1, items=items)
        for root in outline.unpacked.get(name, ()):
            if self._linker.owner(path, outline.nodes[root].body) == klass:
                found |= self._unpacked(path, root, f".{name}", steps - 1, items=items)
        for root in outline.put.get(name, ()) if items else ():
            if self._linker.owner(path, outline.nodes[root].body) == klass:
                found |= self._of(path, outline.child(root, VALUE), steps - 1)
        return found


def _but_itself(values: Values) -> Values:
    """Return the values without what stands for a name in what is bound to it."""
    return {one for one in values if not (isinstance(one, str) and one.startswith(_ITSELF))}
