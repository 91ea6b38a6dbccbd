"""The outline of one module: its bodies, its classes, and where its values go.

An outline is a pure function of a text. It holds no node of the ast, so it can be kept on disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from flake8_torchperf.program.outlines.nodes import Children, Groups, NodeColumns, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Key = TypeVar("Key")
Value = TypeVar("Value")
# The level, the module and the name of an import; "" for a whole module.
Source: TypeAlias = "tuple[int, str, str]"

# The parent of a node that is a root, and the body around a module level.
NONE = -1
EMPTY_COLUMNS = nodes_of((), ())


class Kind(IntEnum):
    """The kind of a node: first expressions, then the statements and clauses they stand in."""

    NAME = 0  # ``word`` is the name
    ATTRIBUTE = 1  # ``word`` is the attribute, the child is its owner
    CALL = 2  # the child in slot FUNCTION is called; other slots are positions and keywords
    ITEM = 3  # ``word`` is a literal key, the child is the container
    GROUP = 4  # a list, tuple, set or dict; slots are positions and literal keys
    EITHER = 5  # one of its children: ``a if t else b``, ``a or b``, of the word TESTED
    LAMBDA = 6  # ``slot`` says where it stands, ``word`` is the number of its body
    TEXT = 7  # ``word`` is a literal string
    PASSED = 8  # the value of its child: ``await x``, ``*x``, ``x := y``
    ROUNDS = 9  # a comprehension; the child is what each round gives
    OPERATION = 10  # ``word`` lists the operators by their names in the ast; slots are positions
    LITERAL = 11  # ``word`` is the text of a number, True, False or None, outside containers
    OTHER = 12  # an argument, or one of several values, of which nothing else is known
    BUILT = 13  # a text put together: ``word`` has a star for each child, as ``on_*``
    BOUND = 20  # an assignment to a name
    KEPT = 21  # an assignment to an attribute; slots VALUE and OWNER
    PUT = 22  # an assignment to an item; slots VALUE, OWNER and KEY, ``word`` is a literal key
    UNPACKED = 23  # an assignment to several targets, which ``word`` lists (see `names_in`)
    ITERATED = 24  # the iterable of a loop, whose names ``word`` lists; the place is in the loop
    ENTERED = 25  # the context of a ``with``; ``word`` is the name it binds
    RETURNED = 26
    YIELDED = 27
    YIELDED_FROM = 28
    DECORATED = 29  # a decorator; ``word`` is the number of the body or of the class
    DEFAULT = 30  # the default of the parameter ``word``; ``slot`` is the number of the body
    ANNOTATED = 31  # the annotation of the name ``word``; of a parameter, ``slot`` is the body
    BASE = 32  # a base of a class, whose number ``word`` is
    RESULT = 33  # the annotation of what the body ``word`` returns
    USED = 34  # any other use; the slot says if it is tested or becomes a text (see TESTED)
    CHANGED = 35  # ``word`` is bound to what no node shows, or declared global or nonlocal


# Two in three nodes are names, attributes and calls, the first kinds.
LAST_OF_MOST: Final = Kind.CALL
# Slots of the children of nodes.
FUNCTION, VALUE, OWNER, STARRED, KEY = "()", "=", ".", "*", "[]"
# The slot of the annotation of an attribute of an object.
ATTRIBUTE = "a"
# Slots of a USED: the test of a branch or a loop, and a part of an f-string. The word
# of the test of a conditional expression is the number of that.
TESTED, FORMATTED = "test", "text"
# Words of an OPERATION that is a test: one comparison, or ``not``. Their constants are nodes, too.
CONTAINS = ("In", "NotIn")
COMPARING = frozenset((
    "Eq", "NotEq", "Is", "IsNot", "Lt", "LtE", "Gt", "GtE", *CONTAINS, "Not",
))  # fmt: skip


class Body(NamedTuple):
    """A piece of code that runs as one: a module level, a function or a lambda.

    ``outer`` is the number of the body around it, ``owner`` that of the class whose method it is.
    ``runs`` says when: "called", "iterated" for a generator; of a property, "read", "assigned" or
    "deleted". ``positional`` names the parameters that a position may fill, ``named`` those that
    only a keyword fills.
    """

    name: str
    qualname: str
    line: int
    outer: int
    owner: int
    runs: str
    positional: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    rest: tuple[str, str] = ("", "")
    is_static: bool = False


class Class(NamedTuple):
    """A class: its name, its place, the body it stands in, and the bodies of its methods."""

    name: str
    qualname: str
    line: int
    body: int
    methods: dict[str, int]


def _listed(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the second parts of pairs by the first, in order."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    for key, values in found.items():
        found[key] = values[:]  # without the room that a list has for more: a third of it
    return found


@dataclass(frozen=True, eq=False)
class Outline:
    """The bodies, classes, imports and nodes of a module.

    ``imports`` maps the names that imports bind anywhere in the module to the level, the module and
    the name that they import ("" for a whole module); ``again`` lists what further imports bind to
    the same name, as in the branches of an option. ``stars`` lists the modules of star imports with
    their level.

    Those who use an outline find nodes by its tables, and from a node only what stands in the same
    statement: `asked.py` records what was looked up, and what the statements there say. They
    compare the lines of two statements only by `is_below`.
    """

    bodies: Sequence[Body] = ()
    classes: Sequence[Class] = ()
    nodes: NodeColumns = EMPTY_COLUMNS
    imports: Mapping[str, Source] = field(default_factory=dict)
    stars: tuple[tuple[int, str], ...] = ()
    again: tuple[tuple[str, Source], ...] = ()

    @cached_property
    def children(self) -> Children:
        """The children of each node, in the order of the text."""
        return Children(self.nodes.parents)

    @cached_property
    def by_word(self) -> Groups[str]:
        """The names and attributes that are read, by their words."""
        last, words = int(Kind.ATTRIBUTE), self.nodes.words
        read = [n for n, kind in enumerate(self.nodes.kinds) if kind <= last]
        return Groups([words[n] for n in read], read, self.nodes.code)

    @cached_property
    def by_word_inside(self) -> Groups[tuple[int, str]]:
        """The names that are read in functions, by the outermost function and the name."""
        bodies, words, size = self.nodes.bodies, self.nodes.words, len(self.nodes.vocabulary)
        read = [n for n in self._of_kind(Kind.NAME) if bodies[n]]
        around = [self.outermost(number) for number in range(len(self.bodies))]
        codes = [around[bodies[n]] * size + words[n] for n in read]
        return Groups(codes, read, self._code)

    def outermost(self, body: int) -> int:
        """Return the function or lambda at the module level around a body, or in a class there."""
        while self.bodies[body].outer > 0:
            body = self.bodies[body].outer
        return body

    @cached_property
    def bound(self) -> Groups[tuple[int, str]]:
        """The statements that bind a name in a body, by the body and the name."""
        nodes, vocabulary = self.nodes, self.nodes.vocabulary
        bodies, words = nodes.bodies, nodes.words
        codes: list[int] = []
        numbers: list[int] = []
        for n in [n for n, kind in enumerate(nodes.kinds) if kind in BINDING_KINDS]:
            if vocabulary[words[n]].isidentifier():  # one name, of most
                codes.append(bodies[n] * len(vocabulary) + words[n])
                numbers.append(n)
            else:
                names = names_in(vocabulary[words[n]])
                codes += [self._code((bodies[n], name)) for name in names]
                numbers += [n] * len(names)
        return Groups(codes, numbers, self._code)

    @cached_property
    def unpacked(self) -> Mapping[str, list[int]]:
        """The assignments to several targets, by each attribute among these."""
        return _listed(
            (place[1:], n)
            for n in self._of_kind(Kind.UNPACKED)
            for place in self.nodes.word(n).split(",")
            if place.startswith(".")
        )

    @cached_property
    def put(self) -> Groups[str]:
        """The assignments to items, by the name or attribute whose items they are."""
        owners = [(self.child(n, OWNER), n) for n in self._of_kind(Kind.PUT)]
        found = [(self.nodes.words[owner], n) for owner, n in owners if owner is not None]
        codes, numbers = [code for code, _ in found], [n for _, n in found]
        return Groups(codes, numbers, self.nodes.code)

    @cached_property
    def by_slot(self) -> Groups[str]:
        """The nodes by their slots."""
        return Groups(self.nodes.slots, range(len(self.nodes)), self.nodes.code)

    def _code(self, key: tuple[int, str]) -> int:
        """Return the code of a number and a word; a negative one if no node has the word."""
        word = self.nodes.code(key[1])
        return word if word < 0 else key[0] * len(self.nodes.vocabulary) + word

    def _of_kind(self, wanted: Kind) -> list[int]:
        return [n for n, kind in enumerate(self.nodes.kinds) if kind == wanted]

    @cached_property
    def imported(self) -> Mapping[str, list[str]]:
        """The names that imports bind to something of another module, by its name there."""
        return _listed((what, name) for name, (_, _, what) in self.imports.items())

    @cached_property
    def imported_again(self) -> Mapping[str, list[str]]:
        """The names that further imports bind, by the name in the other module."""
        return _listed((what, name) for name, (_, _, what) in self.again)

    @cached_property
    def other_sources(self) -> Mapping[str, list[Source]]:
        """The sources of further imports, by the names that they bind."""
        return _listed(self.again)

    @cached_property
    def methods(self) -> Mapping[str, list[int]]:
        """The methods of all classes, by their names."""
        return _listed(pair for one in self.classes for pair in one.methods.items())

    @cached_property
    def results(self) -> Groups[int]:
        """The nodes of the kind RETURNED of each body."""
        returned = self._of_kind(Kind.RETURNED)
        return Groups([self.nodes.bodies[n] for n in returned], returned, int)

    @cached_property
    def defaults(self) -> Mapping[int, list[str]]:
        """The parameters of each body that have a default."""
        of = self._of_kind(Kind.DEFAULT)
        return _listed((int(self.nodes.slot(n)), self.nodes.word(n)) for n in of)

    @cached_property
    def defined(self) -> Mapping[tuple[int, str], list[int]]:
        """The functions and lambdas defined in a body, by that body and their name."""
        return _listed(
            ((body.outer, body.name), n)
            for n, body in enumerate(self.bodies)
            if body.owner < 0 and body.outer >= 0
        )

    @cached_property
    def by_qualname(self) -> Mapping[str, list[int]]:
        """The bodies by their qualified name."""
        return _listed((body.qualname, n) for n, body in enumerate(self.bodies))

    @cached_property
    def class_named(self) -> Mapping[tuple[int, str], int]:
        """The classes by the body they stand in and by their name."""
        return {(one.body, one.name): number for number, one in enumerate(self.classes)}

    def of(self, kind: Kind, word: str) -> Sequence[int]:
        """Return the nodes of a kind with a word; raises ValueError for a kind of most nodes."""
        if kind <= LAST_OF_MOST:
            raise ValueError(f"not in the table: {kind!r}")
        return self.by_kind.get((kind, word), ())

    @cached_property
    def by_kind(self) -> Groups[tuple[int, str]]:
        """The nodes by their kind and word, without the names, attributes and calls."""
        size, words, last = len(self.nodes.vocabulary), self.nodes.words, int(LAST_OF_MOST)
        found = [(n, kind) for n, kind in enumerate(self.nodes.kinds) if kind > last]
        codes = [kind * size + words[n] for n, kind in found]
        return Groups(codes, [n for n, _ in found], self._code)

    @cached_property
    def lambdas(self) -> list[int]:
        """The nodes of the kind LAMBDA."""
        return self._of_kind(Kind.LAMBDA)

    @cached_property
    def built(self) -> list[int]:
        """The nodes of the kind BUILT."""
        return self._of_kind(Kind.BUILT)

    def is_below(self, number: int, other: int) -> bool:
        """True if a node stands in a later line of the same body than another."""
        bodies, lines = self.nodes.bodies, self.nodes.lines
        return bodies[number] == bodies[other] and lines[number] > lines[other]

    @cached_property
    def statements(self) -> dict[int, tuple[str, Sequence[int]]]:
        """Words of statements and the nodes in them, as `asked.py` finds them, by their roots."""
        return {}

    @cached_property
    def answers(self) -> dict[str, str]:
        """The answers to the questions of `asked.py` so far."""
        return {}

    def child(self, number: int, slot: str) -> int | None:
        """Return the child of a node in a slot, if it has one."""
        slots, vocabulary = self.nodes.slots, self.nodes.vocabulary
        for one in self.children[number]:
            if vocabulary[slots[one]] == slot:
                return one
        return None

    def statement(self, number: int) -> int:
        """Return the statement or clause that an expression stands in."""
        parents = self.nodes.parents
        while parents[number] >= 0:
            number = parents[number]
        return number


def names_in(word: str) -> list[str]:
    """Return the names that the word of an assignment or a loop lists.

    Names of one position stand next to each other, and attributes have a dot in front.
    """
    return [one for one in word.replace(",", " ").split() if not one.startswith(".")]


BINDING_KINDS = frozenset((Kind.BOUND, Kind.UNPACKED, Kind.ITERATED, Kind.ENTERED))


def as_data(outline: Outline) -> list[Any]:
    """Return an outline as JSON can hold it."""
    return [
        [list(one) for one in outline.bodies],
        [list(one) for one in outline.classes],
        outline.nodes.as_data(),
        {name: list(one) for name, one in outline.imports.items()},
        [list(one) for one in outline.stars],
        [[name, *source] for name, source in outline.again],
    ]


def from_data(data: Sequence[Any]) -> Outline:
    """Return the outline that `as_data` turned into JSON. Raises TypeError or ValueError."""
    bodies, classes, (words, columns), imports, stars, again = data
    nodes = NodeColumns(words, columns)
    nodes.check()
    return Outline(
        tuple(_body(one) for one in bodies),
        tuple(Class(*one) for one in classes),
        nodes,
        {name: (level, module, what) for name, (level, module, what) in imports.items()},
        tuple((level, module) for level, module in stars),
        tuple((name, (level, module, what)) for name, level, module, what in again),
    )


def _body(data: Sequence[Any]) -> Body:
    name, qualname, line, outer, owner, runs, positional, named, rest, is_static = data
    first, second = rest
    return Body(
        name, qualname, line, outer, owner, runs,
        tuple(positional), tuple(named), (first, second), bool(is_static),
    )  # fmt: skip
