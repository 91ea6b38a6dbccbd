"""Where a followed value is held: names, attributes, parameters, containers and decorators."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.program.built_names import NameParts, missing
from flake8_torchperf.program.given import (
    BUILT_IN,
    CALLED_BY_BASES,
    DISPATCHING,
    IMPORTING_CALLS,
    ITEMS_OF,
    LOADERS,
    OF_DATA_PACKAGES,
    PLAIN_DECORATORS,
    RUNNERS,
    RUNNING_PACKAGES,
    STARTED,
    STARTING_BASES,
    UNCALLING_BASES,
)
from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.outlines.outline import FUNCTION, KEY, OWNER, STARRED, VALUE, Kind
from flake8_torchperf.program.runs import Run, Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flake8_torchperf.program.uses import Uses

# The most places that are looked at for one body; it may be run elsewhere if there are more.
MAX_PLACES = 3000
# The most further places once it may be run elsewhere anyway: a value that a field of unknown
# objects holds is followed into code that has nothing to do with it.
MAX_MORE = 400


class Held(NamedTuple):
    """A value on its way: the use that runs it, and the containers around it.

    ``how`` is "called", "iterated", "indexed", "read" for an attribute that is a property, or
    "named" for the name of a method, or "part " with what stands for the star in one that is put
    together. A property on its way to an attribute is "to be read", "to be
    assigned" or "to be deleted". For a class, "made called" and so on: its objects are used so.
    ".step" and so on is for an object whose method of this name runs the body. ``keys`` has one
    literal key for each container, the outermost first; "" where nothing shows the key. ``via`` is
    the function that a name was passed to, and the call that passed it.
    """

    how: str
    keys: tuple[str, ...] = ()
    is_sure: bool = True
    via: tuple[Unit, Run] | None = None

    @property
    def depth(self) -> int:
        """The number of containers around the value."""
        return len(self.keys)

    @property
    def is_name(self) -> bool:
        """True for the name of a method, or a part of one."""
        return self.how == "named" or self.how.startswith("part ")

    def within(self, key: str) -> Held:
        """Return the value in one container more; a position may change, so it is no key."""
        return self._replace(keys=("" if key.isdigit() or key == STARRED else key, *self.keys))


class Following:
    """The state of one walk from a body, and the steps to what holds the value next."""

    def __init__(self, linker: Linker, uses: Uses, runs: Callable[[Unit], Runs]) -> None:
        self._linker = linker
        self._uses = uses
        self._runs = runs
        self._unit = uses.body
        self._body = linker.body(uses.body)
        self._open = uses.opened
        self._places: dict[Run, Run] = {}
        self._handed: dict[Unit, None] = {}
        self._seen: set[object] = set()
        self._waiting: list[tuple[str, int, Held]] = []
        self._left = MAX_PLACES
        # The decorators of the body with the places where they decorate it, and what these give.
        self._decorators: dict[Unit, set[tuple[str, int]]] = {}
        self._parts = NameParts(linker, runs)
        self._texts: dict[tuple[str, Variable], str] = {}

    def _decorated(self, unit: Unit, held: Held) -> None:
        """Follow a function or a class into its decorators."""
        outline = self._linker.outline(unit.path)
        word = f"{'c' if unit.is_class else 'b'}{unit.number}"
        for root in outline.of(Kind.DECORATED, word):
            value = outline.child(root, VALUE)
            if value is None:
                continue
            called = value
            if outline.nodes[value].kind == Kind.CALL:
                function = outline.child(value, FUNCTION)
                called = value if function is None else function
            last = outline.nodes[called].word
            if last == "register" and self._dispatched(unit.path, called, held):
                continue
            decorators = self._decorating(unit.path, called)
            for found in decorators:
                inner = [found] if called == value else [*self._given_back(found)]
                if called != value:
                    self._note_arguments(unit.path, value, found)
                bound = called == value and self._uses.is_bound(unit.path, called, found)
                for one in inner:
                    self._decorators.setdefault(one, set()).add((unit.path, root))
                    self._parameter(one, "0", held, bound=bound)
            whole = str(self._linker.dotted(unit.path, called))
            if not decorators and last not in PLAIN_DECORATORS and not whole.startswith("torch."):
                self._open[f"`{last}` decorates {'its class' if unit.is_class else 'it'}"] = None

    def _decorating(self, path: str, called: int) -> list[Unit]:
        """Return the functions of the project that an expression before a definition names."""
        found = self._linker.dotted(path, called)
        if isinstance(found, Unit):
            return [] if found.is_class else [found]
        if self._linker.outline(path).nodes[called].kind != Kind.ATTRIBUTE:
            return []
        return self._uses.methods(path, called, sure=True)

    def _dispatched(self, path: str, register: int, held: Held) -> bool:
        """Follow a function that another dispatches to by the type of an argument.

        False if the ``register`` of a decorator is not that of such a function.
        """
        outline = self._linker.outline(path)
        holder = outline.child(register, OWNER)
        if holder is None:
            return False
        found = self._linker.dotted(path, holder)
        own = Unit(path, self._body.owner, is_class=True) if self._body.owner >= 0 else None
        if not found and own is not None:
            found = self._linker.method(own, outline.nodes[holder].word) or ""
        if not isinstance(found, Unit) or found.is_class or not self._dispatches(found):
            return False
        body = self._linker.body(found)
        if body.owner >= 0:
            self._method(Unit(found.path, body.owner, is_class=True), body.name, held)
        else:
            self._name(found.path, body.outer, body.name, held)
        return True

    def _dispatches(self, function: Unit) -> bool:
        """True for a function that `functools.singledispatch` or its like decorates."""
        outline = self._linker.outline(function.path)
        values = (
            outline.child(root, VALUE) for root in outline.of(Kind.DECORATED, f"b{function.number}")
        )
        return any(
            value is not None and outline.nodes[value].word in DISPATCHING for value in values
        )

    def _note_arguments(self, path: str, call: int, function: Unit) -> None:
        """Note the texts that a call which is given the body, or decorates it, gives as well."""
        outline = self._linker.outline(path)
        body = self._linker.body(function)
        called = outline.child(call, FUNCTION)
        bound = called is not None and self._uses.is_bound(path, called, function)
        for number in outline.children[call]:
            node = outline.nodes[number]
            name = node.slot
            if name.isdigit() and int(name) + bound < len(body.positional):
                name = body.positional[int(name) + bound]
            place = function.path, Variable(function.number, name)
            if node.kind == Kind.TEXT and self._texts.setdefault(place, node.word) != node.word:
                self._texts[place] = ""

    def _key(self, path: str, root: int) -> str:
        """Return the key under which an assignment puts the value; "" if nothing shows it."""
        outline = self._linker.outline(path)
        return outline.nodes[root].word or self._text_at(path, outline.child(root, KEY))

    def _text_at(self, path: str, number: int | None) -> str:
        """Return the text that an expression is, or that a call gives its name; "" if not known."""
        if number is None:
            return ""
        node = self._linker.outline(path).nodes[number]
        if node.kind == Kind.NAME:
            found = self._linker.named(path, node.body, node.word)
            return self._texts.get((path, found), "") if isinstance(found, Variable) else ""
        return node.word if node.kind == Kind.TEXT else ""

    def _by_key(self, path: str, at: int | None, key: str, held: Held) -> Iterator[Held]:
        """Yield what a key takes that a parameter holds, for each call that gives it this key.

        Once if other calls may do so.
        """
        node = None if at is None else self._linker.outline(path).nodes[at]
        is_name = node is not None and node.kind == Kind.NAME
        found = self._linker.named(path, node.body, node.word) if node and is_name else None
        texts = self._parts.given(path, found) if isinstance(found, Variable) else None
        if texts is None or not isinstance(found, Variable):
            yield held
            return
        for run, text in texts:
            if text == key:
                yield held._replace(via=(Unit(path, found.body), run))

    def _decorates(self, decorator: Unit, run: Run) -> bool:
        """True if the value may be what a decorator returned where it decorates a function.

        What the body itself was given to as a decorator returns it in its own place only.
        """
        own = self._decorators.get(decorator)
        return own is None or (run.path, run.node) in own

    def _given_back(self, function: Unit) -> Iterable[Unit]:
        """Return the functions in a function that it returns."""
        outline = self._linker.outline(function.path)
        for root in outline.results.get(function.number, ()):
            value = outline.child(root, VALUE)
            found = None if value is None else self._linker.dotted(function.path, value)
            if isinstance(found, Unit) and not found.is_class:
                yield found

    def _name(self, path: str, body: int, name: str, held: Held) -> None:
        """Follow the uses of a name that is bound in a body."""
        if not self._is_new(("name", path, body, name, held)):
            return
        used = False
        for other, number in self._uses.of_name(path, body, name):
            used = True
            self._go(other, number, held)
        if body:
            return
        if not used and not self._is_own_name(path, name):
            self._open[f"`{name}` holds it, which nothing reads here"] = None
        elif not used and held == Held("called") and self._linker.is_looked_up(self._unit):
            self._found_by_name(path)

    def _found_by_name(self, path: str) -> None:
        """Follow a function from the calls that find one in a module by names made at run time."""
        for other, call, sure in self._uses.found_in_modules(self._unit, self._body.name):
            self._go(other, call, Held("called", is_sure=sure))
        for word in LOADERS:
            for other in self._uses.anywhere(word, path):
                outline = self._linker.outline(other)
                kinds = {outline.nodes[one].kind for one in outline.by_word.get(word, ())}
                if Kind.NAME in kinds or (kinds and word not in BUILT_IN):
                    self._open[f"`{word}` may find it"] = None
        for word in IMPORTING_CALLS:
            for other in self._uses.anywhere(word, path):
                outline = self._linker.outline(other)
                for number in outline.by_word.get(word, ()):
                    imported = outline.nodes[number].parent
                    above = -1 if imported < 0 else outline.nodes[imported].parent
                    called = None if above < 0 else outline.child(above, FUNCTION)
                    if called is not None and outline.nodes[called].word == "getattr":
                        self._go(other, above, Held("called", is_sure=False))
                    else:
                        self._open[f"what `{word}` gives may find it"] = None

    def _is_own_name(self, path: str, name: str) -> bool:
        """True if a name at module level is that of the body itself, or a private one."""
        return name.startswith("_") or (path == self._unit.path and name == self._body.name)

    def _method(self, owner: Unit, name: str, held: Held) -> None:
        """Follow the uses of a method: on objects of its class, of those below and above it."""
        if not self._is_new(("method", owner, name, held)):
            return
        for path, number, sure in self._uses.of_method(owner, name):
            self._go(path, number, held._replace(is_sure=sure and held.is_sure))
        for path in self._uses.naming(owner, name):
            for number in self._linker.outline(path).of(Kind.TEXT, name):
                self._go(path, number, Held("named", held.keys, is_sure=False))
        self._put_together(owner, name, held)
        for path, number, lookup in self._uses.lacking(owner, name):
            read = Held("named", held.keys, is_sure=False)
            via = (lookup, self._place(path, number, read))
            self._parameter(lookup, "0", read._replace(via=via), bound=True)
        for base in self._linker.foreign_bases(owner):
            last = base.rpartition(".")[2]
            if last in STARTING_BASES:
                if name in STARTED:
                    self._method(owner, STARTED[name], held)
            elif base.startswith(OF_DATA_PACKAGES):
                continue  # it calls the methods that it has itself, in workers of the loader
            elif self._may_call(last, name, owner.path):
                self._open[f"`{last}`, a class above it, may call it"] = None

    def _put_together(self, owner: Unit, name: str, held: Held) -> None:
        """Follow the names put together at run time that may be that of a method.

        Where literals alone are put into them, those that give the name.
        """
        for path in self._uses.building(name, owner.path):
            outline = self._linker.outline(path)
            for number in outline.built:
                part = missing(outline.nodes[number].word, name)
                if part is None:
                    continue
                if not part or not self._parts.are_shown(path, outline.child(number, "0")):
                    self._go(path, number, Held("named", held.keys, is_sure=False))
                    continue
                for other in self._uses.naming(owner, part):
                    for text in self._linker.outline(other).of(Kind.TEXT, part):
                        self._go(other, text, Held(f"part {part}", held.keys, is_sure=False))

    def _may_call(self, base: str, name: str, path: str) -> bool:
        """True if a base of another project may call a method, as far as is known of the base."""
        if base not in CALLED_BY_BASES:
            return base not in UNCALLING_BASES
        runners = RUNNERS.get(base, ())
        if not name.startswith(CALLED_BY_BASES[base]):
            return False
        return not runners or any(self._is_named(one, path) for one in runners)

    def _is_named(self, runner: str, path: str) -> bool:
        """True if a module uses a class of a framework that runs the classes derived from its own.

        A module of the project may use it under a name of its own, as ``pl.Trainer``.
        """
        for other in self._uses.modules(runner, path):
            for number in self._linker.outline(other).by_word.get(runner, ()):
                found = self._linker.dotted(other, number)
                if isinstance(found, str) and found.partition(".")[0] in RUNNING_PACKAGES:
                    return True
        return False

    def _objects(self, klass: Unit, method: str, held: Held) -> None:
        """Follow the objects of a class, and of those below it that inherit a method."""
        if not self._is_new(("objects", klass, held)):
            return
        made = Held(f"made {held.how}")
        self._decorated(klass, made)
        name = self._linker.klass(klass).name
        used = bool(self._linker.outline(klass.path).of(Kind.DECORATED, f"c{klass.number}"))
        for path in self._uses.modules(name, klass.path):
            there = self._linker.outline(path)
            for number in there.by_word.get(name, ()):
                if not self._linker.may_be(path, number, klass):
                    if path != klass.path:
                        self._uses.doubt(self._linker.dotted(path, number), klass.path, name)
                    continue
                root = there.statement(number)
                if there.nodes[root].kind == Kind.BASE:
                    below = Unit(path, int(there.nodes[root].word), is_class=True)
                    if below != klass and self._linker.method(below, method) == self._unit:
                        self._objects(below, method, held)
                else:
                    used = True
                    self._go(path, number, made)
        if not used and self._linker.is_looked_up(klass):
            found = list(self._uses.found_in_modules(klass, name))
            for path, call, sure in found:
                self._go(path, call, made._replace(is_sure=sure))
            if not any(sure for _, _, sure in found):
                self._open["an object of its class may be made by a name"] = None

    def _attribute(self, name: str, owner: Unit | None, path: str, held: Held) -> None:
        """Follow the uses of an attribute that holds the value."""
        if not self._is_new(("attribute", name, owner, held)):
            return
        used = False
        for setter in self._uses.setters(name, owner, path):
            used = True
            self._parameter(setter, "0", held, bound=True)
        for other in self._uses.reading(name, path):
            outline = self._linker.outline(other)
            for number in outline.by_word.get(name, ()):
                if outline.nodes[number].kind != Kind.ATTRIBUTE:
                    continue
                if owner is None or self._uses.may_hold(other, number, owner):
                    used = True
                    self._go(other, number, held)
        if not used:
            self._open[f"`.{name}` holds it, which nothing reads here"] = None

    def _kept_in(self, name: str, owner: Unit | None, path: str, held: Held) -> None:
        """Follow a value that an attribute holds, or what is done to the property that it is."""
        when = held.how.removeprefix("to be ")
        if when == held.how or owner is None:
            self._attribute(name, owner, path, held)
        elif when == "read":
            self._attribute(name, owner, path, Held(when, (), held.is_sure))
        else:
            self._written(owner, name, Held(when, (), held.is_sure))

    def _written(self, owner: Unit, name: str, held: Held) -> None:
        """Note the places that assign to an attribute, whose property runs the body then."""
        if held.how == "deleted":
            self._open["`del` runs it"] = None
            return
        for path, number, sure in self._uses.assigned(owner, name):
            self._run(path, number, held._replace(is_sure=sure and held.is_sure))

    def _is_new(self, asked: object) -> bool:
        if asked in self._seen:
            return False
        self._seen.add(asked)
        return True

    def _rebound(self, path: str, root: int, held: Held) -> None:
        """Follow what a decorator returns, which the name of the decorated function then holds."""
        outline = self._linker.outline(path)
        word = outline.nodes[root].word
        if word.startswith("b"):
            body = outline.bodies[int(word[1:])]
            if body.owner >= 0:
                self._method(Unit(path, body.owner, is_class=True), body.name, held)
            else:
                self._name(path, body.outer, body.name, held)
        elif not held.how.startswith("made "):  # the uses of the class are followed anyway
            self._open["a decorator of a class returns it"] = None

    def _put(self, path: str, holder: int | None, held: Held) -> None:
        """Follow a container, into which a value was put, to what an expression names."""
        if holder is None:
            return
        outline = self._linker.outline(path)
        node = outline.nodes[holder]
        if node.kind == Kind.NAME:
            found = self._linker.named(path, node.body, node.word)
            if isinstance(found, Variable):
                self._name(path, *found, held)
            elif isinstance(found, str):
                self._open[f"`{node.word}` of another module holds it"] = None
        elif node.kind == Kind.ATTRIBUTE:
            self._attribute(node.word, self._linker.owner(path, node.body), path, held)
        elif node.kind == Kind.ITEM:
            key = node.word or self._text_at(path, outline.child(holder, ""))
            self._put(path, outline.child(holder, OWNER), held.within(key))
        elif node.kind == Kind.CALL:
            called = outline.child(holder, FUNCTION)
            if called is not None and ITEMS_OF.get(outline.nodes[called].word):
                key = self._text_at(path, outline.child(holder, "0"))
                self._put(path, outline.child(called, OWNER), held.within(key))

    def _parameter(self, function: Unit, slot: str, held: Held, *, bound: bool) -> None:
        """Follow a value into the parameter that an argument fills."""
        body = self._linker.body(function)
        first, keywords = body.rest
        if slot == STARRED:
            return
        if slot.isdigit():
            position = int(slot) + (bound and not body.is_static)
            if position < len(body.positional):
                self._name(function.path, function.number, body.positional[position], held)
            elif first:
                self._name(function.path, function.number, first, held.within(""))
        elif slot in body.positional or slot in body.named:
            self._name(function.path, function.number, slot, held)
        elif keywords:
            self._name(function.path, function.number, keywords, held.within(slot))

    def _constructed(self, klass: Unit, slot: str, held: Held) -> None:
        """Follow a value that is given to a class: to its constructor, or to a field of it."""
        made = self._linker.method(klass, "__init__")
        if made is not None:
            self._parameter(made, slot, held, bound=True)
        elif not slot.isdigit() and slot != STARRED:
            self._attribute(slot, klass, klass.path, held)
        else:
            self._open["a field of a class holds it"] = None

    def _go(self, path: str, number: int, held: Held) -> None:
        """Follow a value from an expression that holds it, once what waits before is done."""
        if self._is_new((path, number, held)):
            self._waiting.append((path, number, held))

    def _run(self, path: str, number: int, held: Held) -> None:
        """Note a place that runs the body."""
        place = self._place(path, number, held)
        known = self._places.get(place._replace(is_sure=True))
        if known is None or (held.is_sure and not known.is_sure):
            self._places[place._replace(is_sure=True)] = place

    def _place(self, path: str, number: int, held: Held) -> Run:
        """Return a place, with the call that alone leads there if the value came by its name."""
        node = self._linker.outline(path).nodes[number]
        inside = held.via is not None and held.via[0] in self._around(path, node.body)
        through = held.via[1] if held.via is not None and inside else None
        return Run(path, node.body, node.line, node.column, number, held.is_sure, through)

    def _around(self, path: str, body: int) -> Iterator[Unit]:
        """Yield a body and those around it, whose names it sees."""
        outline = self._linker.outline(path)
        while body > 0:
            yield Unit(path, body)
            body = outline.bodies[body].outer
