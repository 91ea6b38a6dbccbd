"""Where a body is run: its function or its objects, followed from where they are made.

A value is followed through names, attributes, containers, parameters, results and decorators, to
the calls, loops and ``with`` statements that run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.program.given import (
    ASKING,
    ENTRANCES,
    FILLING_CALLS,
    HOOK_RUNS,
    ITEMS_OF,
    KEEPING,
    PASSING_ON,
    PLAIN_DECORATORS,
    RUNNING_CALLS,
    UNCALLING_BASES,
)
from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.objects import Objects
from flake8_torchperf.program.outline import FUNCTION, OWNER, STARRED, VALUE, Kind
from flake8_torchperf.program.runs import Run, Runs
from flake8_torchperf.program.uses import Uses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flake8_torchperf.program.uses import Search

# The most places that are looked at for one body; it may be run elsewhere if there are more.
MAX_PLACES = 3000
# The most functions that return one another's results.
MAX_RETURNED = 12
# The most containers in containers that hold what is followed.
MAX_DEPTH = 3


class _Held(NamedTuple):
    """A value on its way: the use that runs it, and the number of containers around it.

    ``how`` is "called", "iterated", "indexed", "read" for a property, or "named" for the name of a
    method. For a class, "made called" and so on: its objects are used so.
    """

    how: str
    depth: int = 0
    is_sure: bool = True


class Flow:
    """Follows bodies through a project."""

    def __init__(self, linker: Linker, search: Search) -> None:
        self._linker = linker
        self._objects = Objects(linker, search)
        self._search = search
        self._known: dict[Unit, Runs] = {}
        self._running: set[Unit] = set()

    def runs(self, body: Unit) -> Runs:
        """Return the places that run a body."""
        known = self._known.get(body)
        if known is None:
            if body in self._running:
                return Runs((), "")  # a function that hands itself on
            if len(self._running) > MAX_RETURNED:
                return Runs((), "too many functions return it")
            self._running.add(body)
            try:
                uses = Uses(self._linker, self._objects, self._search, body)
                known = self._known[body] = _Walk(self._linker, uses, self.runs).walked()
            finally:
                self._running.discard(body)
        return known


class _Walk:
    """One walk from a body to the places that run it."""

    def __init__(self, linker: Linker, uses: Uses, runs: Callable[[Unit], Runs]) -> None:
        self._linker = linker
        self._uses = uses
        self._runs = runs
        self._unit = uses.body
        self._body = linker.body(uses.body)
        self._open = uses.opened
        self._places: dict[tuple[str, int, int, int], Run] = {}
        self._handed: dict[Unit, None] = {}
        self._seen: set[object] = set()
        self._waiting: list[tuple[str, int, _Held]] = []
        self._left = MAX_PLACES

    def walked(self) -> Runs:
        """Return the places that run the body, and why there may be others."""
        unit, body = self._unit, self._body
        if unit.number == 0:
            return Runs((), "")  # a module level runs once, where it is imported
        owner = Unit(unit.path, body.owner, is_class=True) if body.owner >= 0 else None
        self._decorated(unit)
        if owner is None:
            if body.name == "<lambda>":
                for number in self._linker.outline(unit.path).of(Kind.LAMBDA, str(unit.number)):
                    self._go(unit.path, number, _Held("called"))
            else:
                self._name(unit.path, body.outer, body.name, _Held("called"))
        elif body.name in ENTRANCES:
            self._objects(owner, body.name, _Held(ENTRANCES[body.name]))
            if body.name in ("forward", "__call__"):
                self._method(owner, body.name, _Held("called"))
        elif body.name.startswith("__") and body.name.endswith("__"):
            self._open["Python runs it without its name"] = None
        else:
            self._method(owner, body.name, _Held("called" if body.runs != "read" else "read"))
        while self._waiting:
            self._step(*self._waiting.pop())
        why = next(iter(self._open), "")
        return Runs(tuple(self._places.values()), why, tuple(self._handed))

    # Where a value is held

    def _decorated(self, unit: Unit) -> None:
        """Follow a function into its decorators."""
        outline = self._linker.outline(unit.path)
        for root in outline.of(Kind.DECORATED, f"b{unit.number}"):
            value = outline.child(root, VALUE)
            if value is None:
                continue
            called = value
            if outline.nodes[value].kind == Kind.CALL:
                function = outline.child(value, FUNCTION)
                called = value if function is None else function
            found = self._linker.dotted(unit.path, called)
            last = outline.nodes[called].word
            if isinstance(found, Unit) and not found.is_class:
                inner = [found] if called == value else self._given_back(found)
                for one in inner:
                    self._parameter(one, "0", _Held("called"), bound=False)
            elif last not in PLAIN_DECORATORS and not str(found).startswith("torch."):
                self._open[f"`{last}` decorates it"] = None

    def _given_back(self, function: Unit) -> Iterable[Unit]:
        """Return the functions in a function that it returns."""
        outline = self._linker.outline(function.path)
        for root in outline.results.get(function.number, ()):
            value = outline.child(root, VALUE)
            found = None if value is None else self._linker.dotted(function.path, value)
            if isinstance(found, Unit) and not found.is_class:
                yield found

    def _name(self, path: str, body: int, name: str, held: _Held) -> None:
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

    def _is_own_name(self, path: str, name: str) -> bool:
        """True if a name at module level is that of the body itself, or a private one."""
        return name.startswith("_") or (path == self._unit.path and name == self._body.name)

    def _method(self, owner: Unit, name: str, held: _Held) -> None:
        """Follow the uses of a method: on objects of its class, of those below and above it."""
        if not self._is_new(("method", owner, name, held)):
            return
        for path, number, sure in self._uses.of_method(owner, name):
            self._go(path, number, held._replace(is_sure=sure and held.is_sure))
        for path in self._uses.near(owner, name):
            for number in self._linker.outline(path).of(Kind.TEXT, name):
                self._go(path, number, _Held("named", held.depth, is_sure=False))
        for base in self._linker.foreign_bases(owner):
            last = base.rpartition(".")[2]
            if last not in UNCALLING_BASES:
                self._open[f"`{last}`, a class above it, may call it"] = None

    def _objects(self, klass: Unit, method: str, held: _Held) -> None:
        """Follow the objects of a class, and of those below it that inherit a method."""
        if not self._is_new(("objects", klass, held)):
            return
        made = _Held(f"made {held.how}")
        name = self._linker.klass(klass).name
        for path in self._uses.modules(name, klass.path):
            there = self._linker.outline(path)
            for number in there.by_word.get(name, ()):
                if self._linker.dotted(path, number) != klass:
                    continue
                root = there.statement(number)
                if there.nodes[root].kind == Kind.BASE:
                    below = Unit(path, int(there.nodes[root].word), is_class=True)
                    if below != klass and self._linker.method(below, method) == self._unit:
                        self._objects(below, method, held)
                else:
                    self._go(path, number, made)

    def _attribute(self, name: str, owner: Unit | None, path: str, held: _Held) -> None:
        """Follow the uses of an attribute that holds the value."""
        if not self._is_new(("attribute", name, owner, held)):
            return
        for other in self._uses.modules(name, path):
            outline = self._linker.outline(other)
            for number in outline.by_word.get(name, ()):
                if outline.nodes[number].kind != Kind.ATTRIBUTE:
                    continue
                if owner is None or self._uses.may_hold(other, number, owner):
                    self._go(other, number, held)

    def _is_new(self, asked: object) -> bool:
        if asked in self._seen:
            return False
        self._seen.add(asked)
        return True

    # What becomes of a value at one place

    def _go(self, path: str, number: int, held: _Held) -> None:
        """Follow a value from an expression that holds it, once what waits before is done."""
        if self._is_new((path, number, held)):
            self._waiting.append((path, number, held))

    def _step(self, path: str, number: int, held: _Held) -> None:
        """Follow a value from the expression that holds it to what that stands in."""
        self._left -= 1
        if self._left < 0 or held.depth > MAX_DEPTH:
            self._open["it is handed on too often"] = None
            return
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        if held.how == "read":
            self._run(path, number, held)
            return
        parent = outline.nodes[node.parent]
        match parent.kind:
            case Kind.CALL if node.slot == FUNCTION:
                self._called(path, node.parent, held)
            case Kind.CALL:
                self._argument(path, node.parent, node.slot, held)
            case Kind.ATTRIBUTE:
                self._member(path, node.parent, held)
            case Kind.ITEM if node.slot == OWNER:
                if held.depth:  # one of several
                    self._go(path, node.parent, _Held(held.how, held.depth - 1, is_sure=False))
                elif held.how == "indexed":
                    self._run(path, node.parent, held)
            case Kind.GROUP | Kind.ROUNDS:
                self._go(path, node.parent, held._replace(depth=held.depth + 1))
            case Kind.EITHER | Kind.PASSED:
                if parent.word:
                    self._name(path, parent.body, parent.word, held)
                self._go(path, node.parent, held)
            case _:
                self._kept(path, node.parent, node.slot, held)

    def _kept(self, path: str, root: int, slot: str, held: _Held) -> None:
        """Follow a value from the statement or clause that it stands in."""
        outline = self._linker.outline(path)
        node = outline.nodes[root]
        less = held._replace(depth=max(held.depth - 1, 0))
        match node.kind:
            case Kind.BOUND:
                self._name(path, node.body, node.word, held)
            case Kind.UNPACKED if held.depth:
                for name in node.word.split(","):
                    self._name(path, node.body, name, less)
            case Kind.ITERATED if held.depth:
                for name in node.word.split(","):
                    self._name(path, node.body, name, less)
            case Kind.ITERATED | Kind.ENTERED if held.how == "iterated":
                self._run(path, root, held)
            case Kind.ITERATED if held.how == "indexed":
                self._run(path, root, held)
            case Kind.ENTERED:
                if node.word:
                    self._name(path, node.body, node.word, held)
            case Kind.KEPT if slot == VALUE:
                owner = self._linker.owner(path, node.body)
                if node.slot:
                    owner = Unit(path, int(node.slot[1:]), is_class=True)
                self._attribute(node.word, owner, path, held)
            case Kind.PUT if slot == VALUE:
                self._put(path, outline.child(root, OWNER), held)
            case Kind.RETURNED:
                self._results(Unit(path, node.body), held)
            case Kind.YIELDED_FROM if held.how == "iterated" and not held.depth:
                self._run(path, root, held)
            case Kind.DECORATED if held.how == "called" and not held.depth:
                self._run(path, root, held)
            case Kind.DEFAULT:
                self._name(path, int(node.slot), node.word, held)

    def _rebound(self, path: str, root: int, held: _Held) -> None:
        """Follow what a decorator returns, which the name of the decorated function then holds."""
        outline = self._linker.outline(path)
        word = outline.nodes[root].word
        if word.startswith("b"):
            body = outline.bodies[int(word[1:])]
            if body.owner >= 0:
                self._method(Unit(path, body.owner, is_class=True), body.name, held)
            else:
                self._name(path, body.outer, body.name, held)
        else:
            self._open["a decorator of a class returns it"] = None

    def _put(self, path: str, holder: int | None, held: _Held) -> None:
        """Follow a value into the container that an expression names."""
        if holder is None:
            return
        outline = self._linker.outline(path)
        node = outline.nodes[holder]
        more = held._replace(depth=held.depth + 1)
        if node.kind == Kind.NAME:
            found = self._linker.named(path, node.body, node.word)
            if isinstance(found, Variable):
                self._name(path, *found, more)
            elif isinstance(found, str):
                self._open[f"`{node.word}` of another module holds it"] = None
        elif node.kind == Kind.ATTRIBUTE:
            self._attribute(node.word, self._linker.owner(path, node.body), path, more)
        elif node.kind == Kind.ITEM:
            self._put(path, outline.child(holder, OWNER), more)

    def _results(self, body: Unit, held: _Held) -> None:
        """Follow a value from where the body that returns it is run."""
        runs = self._runs(body)
        for run in runs.places:
            if self._linker.outline(run.path).nodes[run.node].kind == Kind.DECORATED:
                self._rebound(run.path, run.node, held)
            else:
                self._go(run.path, run.node, held)
        if runs.open:
            self._open[f"a function that returns it: {runs.open}"] = None

    def _called(self, path: str, call: int, held: _Held) -> None:
        """Follow the result of a call of the value, or note that the call runs it."""
        if held.how.startswith("made "):
            how = held.how.removeprefix("made ")
            if how == "constructed":
                self._run(path, call, held)
            else:
                self._go(path, call, _Held(how, 0, held.is_sure))
            return
        if held.how != "called" or held.depth:
            return
        if self._body.runs == "iterated":
            self._go(path, call, _Held("iterated", 0, held.is_sure))
        else:
            self._run(path, call, held)

    def _run(self, path: str, number: int, held: _Held) -> None:
        node = self._linker.outline(path).nodes[number]
        key = (path, node.body, node.line, node.column)
        known = self._places.get(key)
        if known is None or (held.is_sure and not known.is_sure):
            self._places[key] = Run(
                path, node.body, node.line, node.column, number, is_sure=held.is_sure
            )

    def _member(self, path: str, number: int, held: _Held) -> None:
        """Follow a value whose attribute is read: ``handlers.values()``, ``model.to(device)``."""
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        called = node.parent if node.slot == FUNCTION else None
        if called is None:
            return
        if held.depth and node.word in ITEMS_OF:
            taken = ITEMS_OF[node.word]
            sure = held.is_sure and not taken
            self._go(path, called, _Held(held.how, held.depth - taken, is_sure=sure))
        elif not held.depth and node.word in KEEPING and held.how != "named":
            self._go(path, called, held)

    def _argument(self, path: str, call: int, slot: str, held: _Held) -> None:
        """Follow a value that is given to a call."""
        outline = self._linker.outline(path)
        called = outline.child(call, FUNCTION)
        if called is None:
            return
        self._handed[Unit(path, outline.nodes[call].body)] = None
        found = self._linker.dotted(path, called)
        word = outline.nodes[called].word
        if isinstance(found, Unit):
            if found.is_class:
                self._constructed(found, slot, held)
            else:
                self._parameter(found, slot, held, bound=self._uses.is_bound(path, called, found))
            return
        if word == "getattr":
            if held.how == "named" and slot == "1":
                self._go(path, call, _Held("called", 0, is_sure=False))
            return
        if outline.nodes[called].kind == Kind.ATTRIBUTE:
            holder = outline.child(called, OWNER)
            if word in FILLING_CALLS and slot != STARRED:
                self._put(path, holder, held)
                return
            if word in HOOK_RUNS and held.how == "called":
                self._hooked(path, call, HOOK_RUNS[word], held)
                return
            methods = self._uses.methods(path, called)
            for method in methods:
                self._parameter(method, slot, held, bound=True)
            if methods:
                return
        self._given_away(path, call, word, held)

    def _hooked(self, path: str, call: int, method: str, held: _Held) -> None:
        """Note that a hook runs where its object is called later, or a method of the object."""
        outline = self._linker.outline(path)
        function = outline.child(call, FUNCTION)
        holder = None if function is None else outline.child(function, OWNER)
        word = "" if holder is None else outline.nodes[holder].word
        at = outline.nodes[call]
        found = False
        for number in outline.by_word.get(method or word, ()):
            used = outline.nodes[number]
            later = used.body == at.body and used.line > at.line and used.slot == FUNCTION
            owner = outline.child(number, OWNER)
            same = owner is not None and outline.nodes[owner].word == word
            if later and (not method or same or method == "backward"):
                found = True
                self._run(path, used.parent, held)
        if not found:
            self._open["it is a hook"] = None

    def _given_away(self, path: str, call: int, word: str, held: _Held) -> None:
        """Follow a value that is given to code which is not read."""
        if held.how == "named":
            return
        if word in PASSING_ON:
            self._go(path, call, held)
        elif held.how == "iterated":
            self._run(path, call, held)
            self._go(path, call, held)
        elif word in RUNNING_CALLS and held.how == "called":
            if self._body.runs == "iterated":
                self._go(path, call, _Held("iterated"))
            self._run(path, call, held)
        elif word not in ASKING:
            self._open[f"`{word or 'a call'}` is given it"] = None

    def _parameter(self, function: Unit, slot: str, held: _Held, *, bound: bool) -> None:
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
                more = held._replace(depth=held.depth + 1)
                self._name(function.path, function.number, first, more)
        elif slot in body.positional or slot in body.named:
            self._name(function.path, function.number, slot, held)
        elif keywords:
            more = held._replace(depth=held.depth + 1)
            self._name(function.path, function.number, keywords, more)

    def _constructed(self, klass: Unit, slot: str, held: _Held) -> None:
        """Follow a value that is given to a class: to its constructor, or to a field of it."""
        made = self._linker.method(klass, "__init__")
        if made is not None:
            self._parameter(made, slot, held, bound=True)
        elif not slot.isdigit() and slot != STARRED:
            self._attribute(slot, klass, klass.path, held)
        else:
            self._open["a field of a class holds it"] = None
