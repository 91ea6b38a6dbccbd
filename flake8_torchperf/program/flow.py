"""Where a body is run: its function or its objects, followed from where they are made.

A value is followed through names, attributes, containers, parameters, results and decorators, to
the calls, loops and ``with`` statements that run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.program.attribute_reads import AttributeReads
from flake8_torchperf.program.built_names import fits
from flake8_torchperf.program.given import (
    APPLIED,
    APPLYING_BASES,
    ASKED_FOR,
    ASKED_SECOND,
    ASKING,
    BINDING,
    CALLING_CONTAINERS,
    COLLATING,
    DATA_SLOTS,
    ENTRANCES,
    FILLING_CALLS,
    FINDING_METHODS,
    FUNCTIONS_TAKING,
    HOOK_RUNS,
    HOOKS_OF_ALL,
    ITEMS_OF,
    KEEPING,
    MAKING,
    MODULE_LISTS,
    OPERATED_ELSEWHERE,
    OPERATOR_METHODS,
    PASSING_ON,
    PROPERTIES,
    REMOTE,
    RUN_WHEN_CALLED,
    RUNNING_CALLS,
    RUNNING_CLASSES,
    RUNNING_ON,
)
from flake8_torchperf.program.held import MAX_MORE, Following, Held
from flake8_torchperf.program.hooks import Hooks
from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.objects import Objects
from flake8_torchperf.program.outlines.outline import (
    FORMATTED,
    FUNCTION,
    OWNER,
    STARRED,
    TESTED,
    VALUE,
    Kind,
    names_in,
)
from flake8_torchperf.program.runs import Run, Runs
from flake8_torchperf.program.uses import LOOKUP, Uses
from flake8_torchperf.project.file_index import is_test_path

if TYPE_CHECKING:
    from flake8_torchperf.program.linking import Search

# The most functions that return one another's results.
MAX_RETURNED = 12
# The most containers in containers that hold what is followed, and calls that pass a name on.
MAX_DEPTH = 3
# The conversion that a statement asks a value for, by its slot.
ASKED_BY = {TESTED: "bool", FORMATTED: "format"}


class Flow:
    """Follows bodies through a project."""

    def __init__(self, linker: Linker, search: Search) -> None:
        self._linker = linker
        self._objects = Objects(linker, search)
        self._reads = AttributeReads(linker, self._objects)
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
                uses = Uses(self._linker, self._objects, self._reads, self._search, body)
                known = self._known[body] = _Walk(self._linker, uses, self.runs).walked()
            finally:
                self._running.discard(body)
        return known


class _Walk(Following):
    """One walk from a body to the places that run it."""

    def walked(self) -> Runs:
        """Return the places that run the body, and why there may be others."""
        unit, body = self._unit, self._body
        if unit.number == 0:
            return Runs((), "")  # a module level runs once, where it is imported
        owner = Unit(unit.path, body.owner, is_class=True) if body.owner >= 0 else None
        self._decorated(unit, Held("called"))
        if owner is None:
            if body.name == "<lambda>":
                for number in self._linker.outline(unit.path).of(Kind.LAMBDA, str(unit.number)):
                    self._go(unit.path, number, Held("called"))
            else:
                self._name(unit.path, body.outer, body.name, Held("called"))
        elif body.name in APPLIED and self._is_applied(owner):
            self._objects(owner, body.name, Held("applied"))
            for path, number, sure in self._uses.of_method(owner, "apply"):
                if sure:  # ``cls.apply``
                    self._go(path, number, Held("called"))
        elif body.name in ENTRANCES:
            self._objects(owner, body.name, Held(ENTRANCES[body.name]))
            if body.name in RUN_WHEN_CALLED:
                self._method(owner, body.name, Held("called"))
        elif body.name in OPERATOR_METHODS:
            self._objects(owner, body.name, Held("operated"))
            if body.name in OPERATED_ELSEWHERE:
                self._open["a dict or a set may run it"] = None
        elif body.name.startswith("__") and body.name.endswith("__"):
            if body.name in ASKED_FOR:
                self._objects(owner, body.name, Held("converted"))
            self._open["Python runs it without its name"] = None
        elif body.runs in ("assigned", "deleted"):
            self._written(owner, body.name, Held(body.runs))
        else:
            is_read = body.runs == "read"
            self._method(owner, body.name, Held("read" if is_read else "called"))
            for number in self._uses.in_class(owner, body.name):
                self._go(unit.path, number, Held("to be read" if is_read else "called"))
        while self._waiting:
            if self._open:
                self._left = min(self._left, MAX_MORE)
            self._step_on(*self._waiting.pop())
        why = next(iter(self._open), "")
        places, handed = tuple(self._places.values()), tuple(self._handed)
        return Runs(places, why, handed, self._uses.doubted)

    def _is_applied(self, owner: Unit) -> bool:
        """True for a class whose methods torch runs where it is applied."""
        bases = (one.rpartition(".")[2] for one in self._linker.foreign_bases(owner))
        return not APPLYING_BASES.isdisjoint(bases)

    # One step of a value, at one place

    def _step_on(self, path: str, number: int, held: Held) -> None:
        """Follow a value one step; what a test does with it leads no program to the body."""
        before = len(self._open)
        self._step(path, number, held)
        if self._left >= 0 and is_test_path(path) and not is_test_path(self._unit.path):
            for reason in [*self._open][before:]:
                del self._open[reason]

    def _step(self, path: str, number: int, held: Held) -> None:
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
                if held.depth:
                    self._taken(
                        path, node.parent, outline.child(node.parent, ""), parent.word, held
                    )
                elif held.how == "indexed":
                    self._run(path, node.parent, held)
            case Kind.GROUP | Kind.ROUNDS:
                key = node.slot if parent.kind == Kind.GROUP else ""
                self._go(path, node.parent, held.within(key))
            case Kind.BUILT:
                self._converted(path, number, "format", held)
                if held.how.startswith("part ") and not held.depth:
                    part = held.how.removeprefix("part ")
                    if fits(parent.word, part, self._body.name):
                        self._go(path, node.parent, held._replace(how="named"))
            case Kind.OPERATION:
                if held.how == "operated" and not held.depth:
                    self._operated(path, node.parent, parent.word, held)
                elif parent.word == "Not":
                    self._converted(path, number, "bool", held)
            case Kind.EITHER:
                if parent.word == TESTED and number != outline.children[node.parent][-1]:
                    self._converted(path, number, "bool", held)
                self._go(path, node.parent, held)
            case Kind.PASSED:
                if parent.word:
                    self._name(path, parent.body, parent.word, held)
                self._go(path, node.parent, held)
            case _:
                self._kept(path, node.parent, node.slot, held)

    def _kept(self, path: str, root: int, slot: str, held: Held) -> None:
        """Follow a value from the statement or clause that it stands in."""
        outline = self._linker.outline(path)
        node = outline.nodes[root]
        less = held._replace(keys=held.keys[1:])
        match node.kind:
            case Kind.BOUND:
                self._name(path, node.body, node.word, held)
            case Kind.UNPACKED if held.depth:
                for name in names_in(node.word):
                    self._name(path, node.body, name, less)
            case Kind.ITERATED if held.depth:
                for name in names_in(node.word):
                    self._name(path, node.body, name, less)
            case Kind.ITERATED | Kind.ENTERED | Kind.UNPACKED if held.how == "iterated":
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
                self._kept_in(node.word, owner, path, held)
            case Kind.PUT if slot == VALUE:
                self._put(path, outline.child(root, OWNER), held.within(self._key(path, root)))
            case Kind.RETURNED:
                self._results(Unit(path, node.body), held)
            case Kind.YIELDED_FROM if held.how == "iterated" and not held.depth:
                self._run(path, root, held)
            case Kind.DECORATED if held.how == "called" and not held.depth:
                self._run(path, root, held)
            case Kind.DECORATED if held.how == "iterated" and not held.depth:
                self._wrapped(path, node.word, held)
            case Kind.DEFAULT:
                self._name(path, int(node.slot), node.word, held)
            case Kind.USED if node.slot in ASKED_BY:
                self._converted(path, root, ASKED_BY[node.slot], held)

    def _wrapped(self, path: str, word: str, held: Held) -> None:
        """Note the runs of a function, each of which enters a context that decorates it."""
        if not word.startswith("b"):
            return
        runs = self._runs(Unit(path, int(word[1:])))
        for run in runs.places:
            self._run(run.path, run.node, held._replace(is_sure=held.is_sure and run.is_sure))
        if runs.open:
            self._open[f"a function that it decorates: {runs.open}"] = None

    def _operated(self, path: str, number: int, operators: str, held: Held) -> None:
        """Note that an operation on an object runs its method, if one of the operators does."""
        if not set(operators.split(",")).isdisjoint(OPERATOR_METHODS[self._body.name]):
            self._run(path, number, held)

    def _converted(self, path: str, number: int, asked: str, held: Held) -> None:
        """Note that a conversion of an object runs its method, unless it asks for another one."""
        if held.how != "converted" or held.depth or asked not in ASKED_FOR[self._body.name]:
            return
        first = ASKED_SECOND.get(self._body.name, "")
        owner = Unit(self._unit.path, self._body.owner, is_class=True)
        if asked not in ASKED_FOR.get(first, ()) or self._linker.method(owner, first) is None:
            self._run(path, number, held)

    def _taken(self, path: str, number: int, at: int | None, key: str, held: Held) -> None:
        """Follow a value out of its container, unless the item of another key is taken.

        ``at`` is the expression of the key. Where nothing shows a key, each item counts as taken.
        """
        inside = held.keys[0]
        key = key or self._text_at(path, at)
        taken = Held(held.how, held.keys[1:], held.is_sure)
        if key in ("", inside) or not inside:
            for one in [taken] if key or not inside else self._by_key(path, at, inside, taken):
                self._go(path, number, one)

    def _results(self, body: Unit, held: Held) -> None:
        """Follow a value from where the body that returns it is run."""
        if held.via is not None and held.via[0] == body and self._linker.body(body).name == LOOKUP:
            _, read = held.via  # what `__getattr__` returns is the attribute
            self._go(read.path, read.node, held._replace(via=None))
            return
        runs = self._runs(body)
        for run in runs.places:
            if self._linker.outline(run.path).nodes[run.node].kind == Kind.DECORATED:
                if self._decorates(body, run):
                    self._rebound(run.path, run.node, held)
            else:
                self._go(run.path, run.node, held)
        if runs.open:
            self._open[f"a function that returns it: {runs.open}"] = None

    def _called(self, path: str, call: int, held: Held) -> None:
        """Follow the result of a call of the value, or note that the call runs it."""
        if held.how.startswith("made "):
            how = held.how.removeprefix("made ")
            if how == "constructed":
                self._run(path, call, held)
            else:
                self._go(path, call, Held(how, (), held.is_sure))
            return
        if held.how != "called" or held.depth:
            return
        if self._body.runs == "iterated":
            self._go(path, call, Held("iterated", (), held.is_sure))
        else:
            self._run(path, call, held)

    def _member(self, path: str, number: int, held: Held) -> None:
        """Follow a value whose attribute is read: ``handlers.values()``, ``model.to(device)``."""
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        if held.how == "made applied" and not held.depth and node.word == "apply":
            self._go(path, number, Held("called", (), held.is_sure))
        called = node.parent if node.slot == FUNCTION else None
        if called is None:
            return
        if node.word == REMOTE and not held.depth:
            self._called(path, called, held)
        if held.how.startswith("made ") and not held.depth:
            self._made_by_base(path, called, node.word, held)
        if held.depth and node.word in ITEMS_OF:
            if ITEMS_OF[node.word]:
                self._taken(path, called, outline.child(called, "0"), "", held)
            else:
                self._go(path, called, held)
        elif not held.depth and (held.how == f".{node.word}" or self._runs_on(node.word, held)):
            self._run(path, called, held)
        elif not held.depth and node.word in KEEPING and not held.is_name:
            self._go(path, called, held)

    def _runs_on(self, word: str, held: Held) -> bool:
        """True if a method of what a generator returned runs the generator on."""
        own = self._body.runs == "iterated" and self._body.name not in ENTRANCES
        return own and held.how == "iterated" and word in RUNNING_ON

    def _made_by_base(self, path: str, call: int, word: str, held: Held) -> None:
        """Follow an object that a class method of a base elsewhere makes: `from_pretrained`."""
        owner = Unit(self._unit.path, self._body.owner, is_class=True)
        how = held.how.removeprefix("made ")
        if word in MAKING and how != "constructed" and self._linker.method(owner, word) is None:
            self._go(path, call, Held(how, (), held.is_sure))

    def _argument(self, path: str, call: int, slot: str, held: Held) -> None:
        """Follow a value that is given to a call."""
        outline = self._linker.outline(path)
        called = outline.child(call, FUNCTION)
        if called is None:
            return
        called = self._called_there(path, called)
        found = self._linker.dotted(path, called)
        word = outline.nodes[called].word
        if found in (f"torch.{word}", f"numpy.{word}") and word not in FUNCTIONS_TAKING:
            return  # it computes, and runs nothing
        self._handed[Unit(path, outline.nodes[call].body)] = None
        if isinstance(found, Unit):
            if found.is_class:
                self._constructed(found, slot, held)
            else:
                bound = self._uses.is_bound(path, called, found)
                self._note_arguments(path, call, found)
                self._parameter(found, slot, self._passed(path, call, found, held), bound=bound)
            return
        if word in FINDING_METHODS:
            if held.how == "named" and slot == FINDING_METHODS[word]:
                sure = self._uses.is_method_of(path, self._object_of(path, call))
                self._go(path, call, Held("called", is_sure=sure, via=held.via))
            return
        self._converted(path, call, word, held)
        if held.how == "called" and (word in HOOKS_OF_ALL or word in HOOK_RUNS):
            self._hooked(path, call, word, held)
            return
        if outline.nodes[called].kind == Kind.ATTRIBUTE:
            holder = outline.child(called, OWNER)
            if word in FILLING_CALLS and slot != STARRED:
                self._put(path, holder, held.within(""))
                return
            methods = self._uses.methods(path, called)
            for method in methods:
                given = self._passed(path, call, method, held)
                self._note_arguments(path, call, method)
                self._parameter(method, slot, given, bound=True)
            if methods:
                return
        self._given_away(path, call, word, slot, held)

    def _object_of(self, path: str, call: int) -> int | None:
        """Return the object whose method a call finds by its name, if that is written there."""
        outline = self._linker.outline(path)
        called = outline.child(call, FUNCTION)
        if called is not None and outline.nodes[called].word == "getattr":
            return outline.child(call, "0")
        node = outline.nodes[call]  # a caller of methods, which may be called with the object
        return outline.child(node.parent, "0") if node.slot == FUNCTION else None

    def _called_there(self, path: str, called: int) -> int:
        """Return what a called expression calls in another process, or the expression itself."""
        outline = self._linker.outline(path)
        holder = outline.child(called, OWNER)
        if holder is None or outline.nodes[called].word != REMOTE:
            return called
        named = self._linker.dotted(path, holder)
        return called if isinstance(named, str) and named else holder

    def _passed(self, path: str, call: int, function: Unit, held: Held) -> Held:
        """Return the name of a method with the call that passes it to a function."""
        if not held.is_name:
            return held
        place: Run | None = self._place(path, call, held)
        above, calls = place, 0
        while above is not None:  # functions may pass the name on in a circle
            above, calls = above.through, calls + 1
        if place is None or calls > MAX_DEPTH:
            return held._replace(via=None)
        return held._replace(via=(function, place))

    def _hooked(self, path: str, call: int, word: str, held: Held) -> None:
        """Note that a hook runs where its object is called later, or a method of the object."""
        hooks = Hooks(self._linker, self._runs)
        found = (
            hooks.run_of_all(path, call, HOOKS_OF_ALL[word])
            if word in HOOKS_OF_ALL
            else hooks.run(path, call, HOOK_RUNS[word])
        )
        for place, number in found:
            self._run(place, number, held)
        if not found:
            self._open["it is a hook"] = None

    def _bound_to(self, path: str, call: int, held: Held) -> None:
        """Follow an object to the first parameter of the function that is made a method of it."""
        function = self._linker.outline(path).child(call, "0")
        found = None if function is None else self._linker.dotted(path, function)
        if isinstance(found, Unit) and not found.is_class:
            self._parameter(found, "0", held, bound=False)
        else:
            self._open[f"`{BINDING}` is given it"] = None

    def _given_away(self, path: str, call: int, word: str, slot: str, held: Held) -> None:
        """Follow a value that is given to code which is not read."""
        if held.is_name:
            return
        if word in PROPERTIES and held.how == "called":
            self._go(path, call, Held(PROPERTIES[word].get(slot, "called"), (), held.is_sure))
        elif word in PASSING_ON or (word in (BINDING, REMOTE) and slot == "0"):
            self._go(path, call, held)
        elif word == BINDING:
            self._bound_to(path, call, held)
        elif word in MODULE_LISTS and held.depth:
            self._go(path, call, held)  # it holds what the list or dict holds
        elif word in CALLING_CONTAINERS and held.how == "called":
            self._go(path, call, held._replace(keys=()))
            self._go(path, call, held._replace(keys=("",)))
        elif held.how == "iterated":
            self._run(path, call, held)
            self._go(path, call, held)
        elif word in RUNNING_CLASSES and held.how == "called":
            self._run(path, call, held)
            self._go(path, call, Held(f".{RUNNING_CLASSES[word]}", (), held.is_sure))
        elif self._is_run_on_data(path, call, slot, held):
            self._run(path, call, held)
        elif held.how == "called" and slot in COLLATING:
            given = self._linker.outline(path).child(call, slot)
            self._run(path, call if given is None else given, held)
        elif word in RUNNING_CALLS and held.how == "called":
            if self._body.runs == "iterated":
                self._go(path, call, Held("iterated"))
            self._run(path, call, held)
        elif word not in ASKING:
            self._open[f"`{word or 'a call'}` is given it"] = None

    def _is_run_on_data(self, path: str, call: int, slot: str, held: Held) -> bool:
        """True if a call gives a function to a data set, or a loader an object with items."""
        if held.how == "called":
            return self._linker.gives_to_data(path, call)
        return held.how == "indexed" and slot in DATA_SLOTS and self._linker.loads(path, call)
