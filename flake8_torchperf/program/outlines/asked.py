"""The questions about the outline of another module that one file's findings depend on.

Whoever follows values looks names up in the tables of an outline, and reads the statements that
stand there. Each look-up is a question, and its answer is what these statements say. So a changed
body concerns only those who came to a statement that changed: an answer holds no line of the
file, only the order of the lines in a statement. The order of statements is a question of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

from flake8_torchperf.digest import digest_of
from flake8_torchperf.program.outlines.nodes import Groups, packed
from flake8_torchperf.program.outlines.outline import Kind, Outline
from flake8_torchperf.project.answers import OUTLINED
from flake8_torchperf.project.texts.text_search import signs_of_training

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.outlines.outline import Body, Class, Source

    Ask = Callable[[str], None]

Key = TypeVar("Key")
Value = TypeVar("Value")
Row = TypeVar("Row", bound=tuple[Any, ...])
# Asks for all of a table.
EVERY = "*"
# Asks if a module has a main block, and for its signs of training.
MAIN, TRAINING = "main", "training"
# Asks for all statements of a body, in the order of their lines.
ORDER = "order"
# The question for the dotted names of a module and of its package.
NAME = f"{OUTLINED}name"
_MAIN_BLOCK = re.compile(rb"^if\s+\(?__name__\s*==", re.MULTILINE)
# Tables whose entries are numbers of nodes; the entries of others hold all that is learned.
_OF_NODES = (
    "by_word", "by_word_inside", "by_kind", "by_slot", "bound", "unpacked", "put", "results",
)  # fmt: skip
_LOOKED_UP_IN = (
    *_OF_NODES, "imported", "imported_again", "other_sources", "defaults", "defined",
    "by_qualname", "class_named", "methods",
)  # fmt: skip


def question(table: str, key: str = EVERY) -> str:
    """Return the question for an entry of a table, or for something else about a module."""
    return f"{OUTLINED}{table} {key}"


def answer(outline: Outline, asked: str, text: Callable[[], bytes]) -> str:
    """Return the answer to a question about a module but for its name; ``text`` returns its text.

    The answer to each question is found once for an outline.
    """
    known = outline.answers
    if asked not in known:
        table, _, key = asked.removeprefix(OUTLINED).partition(" ")
        if table == MAIN:
            known[asked] = str(has_main_block(text()))
        elif table == TRAINING:
            known[asked] = repr(signs_of_training(text()))
        else:
            known[asked] = digest_of(_said(outline, table, key))
    return known[asked]


def answer_of_name(name: str, package: str, checked: Mapping[str, str]) -> str:
    """Return the answer to the question for the names of a module and of its package."""
    return digest_of([name, package, *checked])


def has_main_block(text: bytes) -> bool:
    """True if a module does something where it is `__main__`."""
    return _MAIN_BLOCK.search(text) is not None


def _said(outline: Outline, table: str, key: str) -> Iterator[str]:
    """Yield what an entry of a table says; nothing without the entry."""
    if table == ORDER:
        bodies = enumerate(outline.nodes.bodies)
        yield from _rows(outline, [number for number, body in bodies if body == int(key)])
        return
    entries = getattr(outline, table)
    if table in ("bodies", "classes"):
        numbers = range(len(entries)) if key == EVERY else [int(key)]
        for number in numbers:
            if number < len(entries):
                yield repr(entries[number]._replace(line=0))
        return
    if isinstance(entries, (Mapping, Groups)) and key != EVERY:
        entries = entries.get(_key(table, key))
    if table in _OF_NODES or table in ("lambdas", "built"):
        for number in entries or ():
            yield from _place(outline, number)
    elif entries is not None:
        yield repr(entries)


def _key(table: str, key: str) -> object:
    """Return the key of a table that a question names."""
    if table in ("results", "defaults"):
        return int(key)
    if table in ("by_kind", "by_word_inside", "bound", "defined", "class_named"):
        number, _, name = key.partition(" ")
        return int(number), name
    return key


def _text(key: object) -> str:
    return f"{int(key[0])} {key[1]}" if isinstance(key, tuple) else str(key)


def _place(outline: Outline, number: int) -> Iterator[str]:
    """Yield a statement and which part of it a node is."""
    root = outline.statement(number)
    parts = outline.statements.get(root)
    if parts is None:
        members = _members(outline, root)
        parts = outline.statements[root] = (
            digest_of(_rows(outline, members)),
            packed(members),
        )
    yield parts[0]
    yield str(parts[1].index(number))


def _members(outline: Outline, root: int) -> list[int]:
    """Return a statement's nodes, in an order that is the same for the same text."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += reversed(outline.children[one])
        if outline.nodes.kinds[one] == Kind.EITHER:
            waiting += reversed(outline.of(Kind.USED, str(one)))  # the test that decides
    return found


def _rows(outline: Outline, members: list[int]) -> Iterator[str]:
    """Yield each node as text: numbers of nodes, and lines, become those among these nodes."""
    within = {number: position for position, number in enumerate(members)}
    lines = sorted({outline.nodes.lines[number] for number in members})
    order = {line: position for position, line in enumerate(lines)}
    for number in members:
        node = outline.nodes[number]
        word = node.word
        if node.kind == Kind.USED and word:
            word = str(within.get(int(word), ""))
        parent, line = within.get(node.parent, -1), order[node.line]
        yield repr((int(node.kind), word, parent, node.slot, node.body, line, node.column))


class _Table(Mapping[Key, Value]):
    """A table of an outline; each look-up is a question."""

    def __init__(self, name: str, outline: Outline, ask: Ask) -> None:
        self._name = name
        self._outline = outline
        self._ask = ask
        self._asked: set[object] = set()

    @cached_property
    def _table(self) -> Mapping[Key, Value]:
        table: Mapping[Key, Value] = getattr(self._outline, self._name)
        return table

    def _note(self, key: object) -> None:
        if key not in self._asked:
            self._asked.add(key)
            self._ask(question(self._name, _text(key)))

    def __getitem__(self, key: Key) -> Value:
        self._note(key)
        return self._table[key]

    def __contains__(self, key: object) -> bool:
        self._note(key)
        return key in self._table

    def get(self, key: Key, default: Any = None) -> Any:
        """Return the entry of a key, as `dict.get` does."""
        self._note(key)
        return self._table.get(key, default)

    def __iter__(self) -> Iterator[Key]:
        if self._name in _OF_NODES:
            raise TypeError(self._name)  # no question is for all nodes
        self._note(EVERY)
        return iter(self._table)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Rows(Sequence[Row]):
    """The bodies or the classes of an outline; each that is looked at is a question."""

    def __init__(self, name: str, rows: Sequence[Row], ask: Ask) -> None:
        self._name = name
        self._rows = rows
        self._ask = ask
        self._asked: set[object] = set()

    def _note(self, key: object) -> None:
        if key not in self._asked:
            self._asked.add(key)
            self._ask(question(self._name, str(key)))

    @overload
    def __getitem__(self, number: int) -> Row: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Row]: ...
    def __getitem__(self, number: int | slice) -> Row | Sequence[Row]:
        self._note(number if isinstance(number, int) else EVERY)
        return self._rows[number]

    def __iter__(self) -> Iterator[Row]:
        self._note(EVERY)
        return iter(self._rows)

    def __len__(self) -> int:
        self._note(EVERY)
        return len(self._rows)

    def __bool__(self) -> bool:
        return bool(self._rows)  # each module has a body, and one without can't be asked


class AskedOutline(Outline):
    """An outline whose tables ask for what is looked up in them."""

    _plain: Outline
    ask: Ask

    def __init__(self, outline: Outline, ask: Ask) -> None:
        bodies: Sequence[Body] = _Rows("bodies", outline.bodies, ask)
        classes: Sequence[Class] = _Rows("classes", outline.classes, ask)
        imports: Mapping[str, Source] = _Table("imports", outline, ask)
        super().__init__(bodies, classes, outline.nodes, imports, outline.stars, outline.again)
        # Where an instance has an attribute of this name, a `cached_property` is not asked.
        held = self.__dict__
        held.update({name: _Table(name, outline, ask) for name in _LOOKED_UP_IN})
        held["children"] = outline.children
        held["_plain"], held["ask"] = outline, ask
        ask(question("stars"))

    def of(self, kind: Kind, word: str) -> Sequence[int]:
        """Return the nodes of a kind with a word; the test of a branch belongs to its statement."""
        return self._plain.of(kind, word) if kind == Kind.USED else super().of(kind, word)

    def is_below(self, number: int, other: int) -> bool:
        """True if a node stands in a later line of the same body than another."""
        if self.nodes.bodies[number] == self.nodes.bodies[other]:
            self.ask(question(ORDER, str(self.nodes.bodies[number])))
        return super().is_below(number, other)

    @cached_property
    def lambdas(self) -> list[int]:
        """The nodes of the kind LAMBDA."""
        self.ask(question("lambdas"))
        return self._plain.lambdas

    @cached_property
    def built(self) -> list[int]:
        """The nodes of the kind BUILT."""
        self.ask(question("built"))
        return self._plain.built
