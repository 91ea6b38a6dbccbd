"""The literal values that a name or an attribute may have, followed to where they are written.

A value is followed through assignments, constants of modules, fields and attributes of objects, and
parameters to the arguments of the calls that lead to their function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flake8_torchperf.program.given import (
    CLICK_SLOTS,
    FIELD_CALLS,
    LITERAL_CASTS,
    ONE_ITEM,
    PARSED,
    TENSOR_COPIES,
    TEXT_METHODS,
    UNCALLING_BASES,
)
from flake8_torchperf.program.linking import Linker, Unit, Variable
from flake8_torchperf.program.object_values import OF_UNKNOWN_CLASS
from flake8_torchperf.program.objects import Objects
from flake8_torchperf.program.origins.comparisons import SOMETHING, applied, compared, read
from flake8_torchperf.program.origins.makers import ENVIRONMENT_CALLS, Makers
from flake8_torchperf.program.origins.passed_arguments import PassedArguments
from flake8_torchperf.program.outlines.outline import (
    COMPARING,
    CONTAINS,
    FUNCTION,
    OWNER,
    STARRED,
    VALUE,
    Kind,
)
from flake8_torchperf.project.option_values import IN_SECTION, OF_COMMAND_LINE, OF_ITEM

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flake8_torchperf.program.linking import Search
    from flake8_torchperf.program.origins.comparisons import Values
    from flake8_torchperf.program.outlines.nodes import Node
    from flake8_torchperf.program.runs import Run, Runs
    from flake8_torchperf.project.resolver import Project

# The most names, attributes and parameters on the way from a test to a literal: a program that
# hands a setting on more often wraps it in an object.
MAX_HOPS = 16
# The most names, attributes and parameters that are looked at for one test.
MAX_QUESTIONS = 200
ONLY_SOMETHING = frozenset((SOMETHING,))


class Literals:
    """Follows values through a project; None stands for a value that is not known."""

    def __init__(
        self,
        linker: Linker,
        search: Search,
        runs: Callable[[Unit], Runs],
        project: Project,
        is_alive: Callable[[Unit], bool],
    ) -> None:
        self.linker = linker
        self.objects = Objects(linker, search)
        self.makers = Makers(linker, self.objects, search, project, is_alive)
        self.arguments = PassedArguments(linker, self.objects, self.makers, runs)
        # Follows the arguments of calls too, in whichever module.
        self.passed = Objects(linker, search, self.arguments)
        self.runs = runs
        self.project = project
        # By place, and whether all places that run the function around it count.
        self._known: dict[tuple[str, int, bool], Values] = {}

    def at(self, path: str, number: int, counts: Callable[[Run], bool] | None = None) -> Values:
        """Return the values of an expression; None if there may be others.

        ``counts`` tells which of the places that run the function around it count; all without.
        """
        asked = path, number, counts is None
        if asked not in self._known:
            self._known[asked] = _Walk(self, counts).of(path, number)
        return self._known[asked]

    def of_item(self, key: str) -> Values:
        """Return the values of an item of a dict of settings; None if there may be others."""
        return _Walk(self, None).option(f"{OF_ITEM}{key}")

    def takes_another(self, run: Run, function: Unit) -> bool:
        """True if a place calls an entry of a dict whose key is never that of a function."""
        return _Walk(self, None).takes_another(run, function)


class _Walk:
    """One walk from an expression to the literals that are its values."""

    def __init__(self, literals: Literals, counts: Callable[[Run], bool] | None) -> None:
        self._linker = literals.linker
        self._objects = literals.objects
        self._passed = literals.passed
        self._makers = literals.makers
        self._arguments = literals.arguments
        self._runs = literals.runs
        self._project = literals.project
        self._counts = counts
        self._asked = 0
        # The names and attributes under way: one that comes back to itself has no further values.
        self._open: set[object] = set()

    def of(self, path: str, number: int | None) -> Values:
        """Return the values of an expression."""
        if number is None:
            return None
        outline = self._linker.outline(path)
        node = outline.nodes[number]
        children = outline.children[number]
        match node.kind:
            case Kind.LITERAL:
                return read(node.word)
            case Kind.TEXT:
                return frozenset((node.word,))
            case Kind.EITHER if children:
                return self._any(path, self._led_to(path, number, children))
            case Kind.PASSED if children:
                return self._any(path, children)
            case Kind.OPERATION if node.word in COMPARING:
                right = outline.child(number, "1")
                contains = node.word in CONTAINS
                two = self._items(path, right) if contains else self.of(path, right)
                return compared(node.word, self.of(path, outline.child(number, "0")), two)
            case Kind.NAME:
                return self._named(path, node)
            case Kind.ATTRIBUTE:
                return self._member(path, number)
            case Kind.CALL:
                return self._called(path, number)
            case Kind.ITEM if node.word.isidentifier():
                return self.option(f"{OF_ITEM}{node.word}")
            case Kind.OPERATION | Kind.GROUP | Kind.ROUNDS | Kind.LAMBDA | Kind.BUILT:
                return ONLY_SOMETHING
        return None

    def _any(self, path: str, numbers: Iterable[int | None]) -> Values:
        """Return the values of several expressions together."""
        found: frozenset[object] = frozenset()
        for number in numbers:
            more = self.of(path, number)
            if more is None:
                return None
            found |= more
        return found

    def _led_to(self, path: str, number: int, branches: Sequence[int]) -> Sequence[int]:
        """Return those branches of a conditional expression to which its test may lead."""
        outline = self._linker.outline(path)
        for root in outline.of(Kind.USED, str(number)):
            found = self.of(path, outline.child(root, VALUE))
            if found and SOMETHING not in found and len(set(map(bool, found))) == 1:
                return branches[:1] if any(found) else branches[1:]
        return branches

    def _items(self, path: str, number: int | None) -> Values:
        """Return the values in a container that is written out."""
        outline = self._linker.outline(path)
        if number is None or outline.nodes[number].kind != Kind.GROUP:
            return None
        texts = [outline.nodes[one] for one in outline.children[number]]
        if not texts or any(one.kind != Kind.TEXT for one in texts):
            return None
        return frozenset(one.word for one in texts)

    def _once(self, asked: object, answer: Callable[[], Values]) -> Values:
        """Return an answer; nothing for a question that leads back to itself."""
        if asked in self._open:
            return frozenset()
        self._asked += 1
        if len(self._open) >= MAX_HOPS or self._asked > MAX_QUESTIONS:
            return None
        self._open.add(asked)
        try:
            return answer()
        finally:
            self._open.discard(asked)

    # Names

    def _named(self, path: str, node: Node) -> Values:
        found = self._linker.named(path, node.body, node.word)
        if isinstance(found, Variable):
            return self._once((path, found), lambda: self._variable(path, found))
        if isinstance(found, str):
            return self._constant(found)
        return None

    def _constant(self, dotted: str) -> Values:
        """Return the values of a constant of another module."""
        found = self._linker.place(dotted)
        if found is None or not found[1]:
            return None
        path, name = found
        return self._once(found, lambda: self._variable(path, Variable(0, name)))

    def _variable(self, path: str, variable: Variable) -> Values:
        outline = self._linker.outline(path)
        scope, name = variable
        if outline.of(Kind.CHANGED, name) or outline.of(Kind.PASSED, name):
            return None
        if name in outline.imports or (scope == 0 and self._makers.runs_texts(path)):
            return None
        roots = outline.bound.get(variable, ())
        if any(outline.nodes[root].kind != Kind.BOUND for root in roots):
            return None
        found = self._any(path, [outline.child(root, VALUE) for root in roots])
        body = outline.bodies[scope]
        if name in (*body.positional, *body.named):
            given = self._parameter(Unit(path, scope), name)
            return None if given is None or found is None else given | found
        if scope == 0 and found is not None:
            return self._written_elsewhere(path, name, found)
        return found if roots else None

    def _written_elsewhere(self, path: str, name: str, found: frozenset[object]) -> Values:
        """Return the values of a constant, those that other modules assign included."""
        if self._makers.is_public(path, name):
            return None
        home = self._linker.module(path).name
        for other in self._makers.modules(name, path) or (None,):
            if other is None:
                return None
            outline = self._linker.outline(other)
            if self._makers.sets_by_name(outline, name):
                return None
            for root in outline.of(Kind.KEPT, name):
                holder = outline.child(root, OWNER)
                if holder is not None and self._linker.dotted(other, holder) == home:
                    more = self.of(other, outline.child(root, VALUE))
                    if more is None:
                        return None
                    found |= more
        return found

    # Parameters

    def _parameter(self, function: Unit, name: str) -> Values:
        """Return the values that the calls of a function give a parameter."""
        body = self._linker.body(function)
        # Set-up code calls constructors, so all of their calls count.
        counts = None if body.name == "__init__" else self._counts
        if body.owner >= 0 and not body.is_static and body.positional[:1] == (name,):
            return None
        if self._makers.is_called_elsewhere(function):
            return None
        told = self._of_command_line(function, name)
        if told is not None:
            return told
        if self._runs(function).open:
            return None
        found: frozenset[object] = frozenset()
        arguments = [*self._arguments.of(function, name, counts)]
        for path, number in arguments:
            more = self._by(counts, path, number)
            if more is None:
                return None
            found |= more
        return found if arguments else None

    def _by(self, counts: Callable[[Run], bool] | None, path: str, number: int | None) -> Values:
        """Return the values of an expression where some places that run its function count."""
        before, self._counts = self._counts, counts
        try:
            return self.of(path, number)
        finally:
            self._counts = before

    def _of_command_line(self, function: Unit, name: str) -> Values:
        """Return the default of an option that a decorator of click gives a function."""
        outline = self._linker.outline(function.path)
        dashed = f"--{name.replace('_', '-')}"
        for root in outline.of(Kind.DECORATED, f"b{function.number}"):
            call = outline.child(root, VALUE)
            called = None if call is None else outline.child(call, FUNCTION)
            if called is None or self._linker.dotted(function.path, called) != "click.option":
                continue
            given = {outline.nodes[one].slot: one for one in outline.children[call or 0]}
            text = outline.nodes[given["0"]].word if "0" in given else ""
            if text.partition("/")[0] not in (dashed, f"--{name}") or "1" in given:
                continue
            if not given.keys() <= CLICK_SLOTS or self._is_given_arguments(function):
                return None
            if self._project.is_in_settings(dashed.removeprefix("--")):
                return None
            if "default" in given:
                return self.of(function.path, given["default"])
            return frozenset((False if "is_flag" in given or "/" in text else None,))
        return None

    def _is_given_arguments(self, function: Unit) -> bool:
        """True if a call of a function gives it arguments."""
        return any(
            len(self._linker.outline(run.path).children[run.node]) != 1
            for run in self._runs(function).outside_tests
            if self._linker.outline(run.path).nodes[run.node].kind == Kind.CALL
        )

    # Attributes

    def _member(self, path: str, number: int) -> Values:
        """Return the values of an attribute of an object, a class or a module."""
        outline = self._linker.outline(path)
        name = outline.nodes[number].word
        holder = outline.child(number, OWNER)
        if holder is None:
            return None
        dotted = self._linker.dotted(path, number)
        if isinstance(dotted, str) and dotted and self._linker.place(dotted) is not None:
            return self._constant(dotted)
        above = self._linker.dotted(path, holder)
        known = {above} if isinstance(above, Unit) else self._objects.classes(path, holder)
        owners = sorted(one for one in known if isinstance(one, Unit) and one.is_class)
        if len(owners) == len(known) == 1:
            owner = owners[0]
            named = owner == above
            found = self._once((owner, name), lambda: self._attribute(owner, name, of_class=named))
            if found is not None:
                return found
        if self._is_own_object(path, holder):
            return None
        if outline.nodes[holder].kind == Kind.ATTRIBUTE:
            in_section = self.option(f"{outline.nodes[holder].word}{IN_SECTION}{name}")
            if in_section is not None:
                return in_section
        is_parsed = self._passed.classes(path, holder) - {OF_UNKNOWN_CLASS} == {PARSED}
        return self.option(f"{OF_COMMAND_LINE}{name}" if is_parsed else name)

    def option(self, name: str) -> Values:
        """Return the values that texts and settings give an option of a name; None if open."""
        given = self._project.option_values(name)
        return given.values if given.whole and given.values else None

    def _is_own_object(self, path: str, holder: int) -> bool:
        """True for ``self``: the attributes of a class are its own, whatever their names."""
        outline = self._linker.outline(path)
        node = outline.nodes[holder]
        found = self._linker.named(path, node.body, node.word) if node.kind == Kind.NAME else None
        if not isinstance(found, Variable):
            return False
        body = outline.bodies[found.body]
        return body.owner >= 0 and body.positional[:1] == (found.name,)

    def _attribute(self, owner: Unit, name: str, *, of_class: bool) -> Values:
        """Return the values that an attribute has in the objects of a class, or in the class."""
        paths = self._makers.modules(name, owner.path, is_attribute=True)
        is_method = self._linker.method(owner, name) is not None
        if not paths or is_method or self._makers.is_written_by_name(owner):
            return None
        found: frozenset[object] = frozenset()
        is_field = False
        for path in paths:
            outline = self._linker.outline(path)
            if outline.of(Kind.CHANGED, name) or self._makers.sets_by_name(outline, name):
                return None
            for root in outline.of(Kind.KEPT, name):
                if not self._makers.may_be_of(path, root, owner):
                    continue
                is_field = is_field or outline.nodes[root].slot != ""
                more = self.of(path, outline.child(root, VALUE))
                if more is None:
                    return None
                found |= more
        if is_field and not of_class and self._linker.method(owner, "__init__") is None:
            return self._field(owner, name, paths, found)
        public = self._makers.is_public(owner.path, self._linker.klass(owner).name)
        return None if is_field and public else found or None

    def _field(
        self, owner: Unit, name: str, paths: tuple[str, ...], assigned: frozenset[object]
    ) -> Values:
        """Return the values of a field, from what is assigned and what makes the objects.

        ``assigned`` holds the default. None unless every use of the class shows what it gives.
        """
        bases = [one.rpartition(".")[2] for one in self._linker.foreign_bases(owner)]
        if not UNCALLING_BASES.issuperset(bases) or self._makers.is_given_away(name, paths):
            return None
        found: frozenset[object] = frozenset()
        calls = self._makers.constructions(owner)
        for path, call in calls or ():
            outline = self._linker.outline(path)
            slots = {outline.nodes[one].slot for one in outline.children[call]}
            if slots & {STARRED, "0"}:
                return None
            more = self.of(path, outline.child(call, name)) if name in slots else assigned
            if not more:
                return None
            found |= more
        return found or None

    # Entries of a dict

    def takes_another(self, run: Run, function: Unit) -> bool:
        """True if a place calls an entry of a dict whose key is never that of a function."""
        outline = self._linker.outline(run.path)
        entry = outline.child(run.node, FUNCTION)
        holder = None if entry is None else outline.child(entry, OWNER)
        if entry is None or holder is None or outline.nodes[entry].kind != Kind.ITEM:
            return False
        word = outline.nodes[entry].word
        asked = frozenset((word,)) if word else self.of(run.path, outline.child(entry, ""))
        keys = self._makers.keys(run.path, holder, function)
        return bool(asked and keys) and keys.isdisjoint(asked or ())

    # Calls

    def _called(self, path: str, call: int) -> Values:
        """Return the values of what a call returns."""
        outline = self._linker.outline(path)
        called = outline.child(call, FUNCTION)
        if called is None:
            return None
        word = outline.nodes[called].word
        found = self._linker.dotted(path, called)
        first, second = outline.child(call, "0"), outline.child(call, "1")
        if isinstance(found, Unit) and found.is_class:
            return ONLY_SOMETHING
        if isinstance(found, Unit):
            return self._once(found, lambda: self._results(found))
        if found in ENVIRONMENT_CALLS:
            return self._variable_of_environment(path, call)
        if found in FIELD_CALLS:
            return self.of(path, outline.child(call, "default"))
        if found in LITERAL_CASTS and second is None:
            return applied(LITERAL_CASTS[found], self.of(path, first))
        if found == "getattr" and second is not None:
            node = outline.nodes[second]
            return self.option(node.word) if node.kind == Kind.TEXT else None
        if word in ONE_ITEM and first is not None and outline.nodes[first].kind == Kind.TEXT:
            return self.option(f"{OF_ITEM}{outline.nodes[first].word}")
        computed = word != "load" and found in (f"torch.{word}", f"numpy.{word}")
        if computed or (word in TENSOR_COPIES and not found):
            return ONLY_SOMETHING
        if word in TEXT_METHODS and first is None:
            return applied(TEXT_METHODS[word], self.of(path, outline.child(called, OWNER)))
        return None

    def _results(self, function: Unit) -> Values:
        """Return the values that a function returns, None for its end included."""
        outline = self._linker.outline(function.path)
        roots = outline.results.get(function.number, ())
        if not roots or self._linker.body(function).runs != "called":
            return None
        if outline.of(Kind.DECORATED, f"b{function.number}"):
            return None
        found = self._any(function.path, [outline.child(root, VALUE) for root in roots])
        return None if found is None else found | {None}

    def _variable_of_environment(self, path: str, call: int) -> Values:
        """Return the default of a variable of the environment, unless the project may set it."""
        outline = self._linker.outline(path)
        key, default = outline.child(call, "0"), outline.child(call, "1")
        word = (
            "" if key is None or outline.nodes[key].kind != Kind.TEXT else outline.nodes[key].word
        )
        if not word or self._project.is_in_settings(word):
            return None
        for other in self._makers.modules(word, path) or ("",):
            if not other or self._makers.may_set(other, word):
                return None
        if default is None:
            slots = {outline.nodes[one].slot for one in outline.children[call]}
            return None if len(slots) > 2 or STARRED in slots else frozenset((None,))
        return self.of(path, default)
