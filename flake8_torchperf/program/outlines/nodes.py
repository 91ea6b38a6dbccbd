"""The nodes of an outline in columns, and tables that find them: a few bytes for each node.

A node as an object takes 150 bytes, and each table that lists it 8 more and its share of a key. Of
all nodes, few are ever looked at: each is made when it is asked for.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Key = TypeVar("Key")
# The fields of a `Node`, in its order.
Row: TypeAlias = "tuple[int, str, int, str, int, int, int]"
_TYPE_CODES = "bhiq"


class Node(NamedTuple):
    """One node: its kind and word, the number of its parent, its slot there, its body, its place.

    ``line`` and ``column`` are as the ast counts them.
    """

    kind: int
    word: str
    parent: int
    slot: str
    body: int
    line: int
    column: int


def packed(numbers: Sequence[int]) -> array[int]:
    """Return numbers in an array of the smallest type that holds all of them.

    Raises TypeError for anything else and ValueError for a number of more than 64 bits.
    """
    for code in _TYPE_CODES:
        try:
            # An array takes three times as long to read the numbers itself.
            return array(code, struct.pack(f"{len(numbers)}{code}", *numbers))
        except struct.error:
            continue
    if any(not isinstance(one, int) for one in numbers):
        raise TypeError("not all are whole numbers")
    raise ValueError(f"no number of 64 bits: {max(numbers, key=abs)}")


class NodeColumns(Sequence[Node]):
    """Nodes in columns, for each field one.

    ``vocabulary`` lists words in order, each once. The code of a word is its place there; the
    columns ``words`` and ``slots`` hold codes.
    """

    __slots__ = (
        "bodies", "columns", "kinds", "lines", "parents", "slots", "vocabulary", "words",
    )  # fmt: skip

    def __init__(self, vocabulary: Iterable[str], columns: Sequence[Sequence[int]]) -> None:
        # The same words stand in many modules.
        self.vocabulary = tuple(map(sys.intern, vocabulary))
        kinds, words, parents, slots, bodies, lines, places = map(packed, columns)
        self.kinds, self.words, self.parents, self.slots = kinds, words, parents, slots
        self.bodies, self.lines, self.columns = bodies, lines, places

    @overload
    def __getitem__(self, number: int) -> Node: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Node]: ...
    def __getitem__(self, number: int | slice) -> Node | Sequence[Node]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        fields = (
            self.kinds[number],
            self.vocabulary[self.words[number]],
            self.parents[number],
            self.vocabulary[self.slots[number]],
            self.bodies[number],
            self.lines[number],
            self.columns[number],
        )
        return tuple.__new__(Node, fields)  # `Node` would call Python code to do the same

    def __len__(self) -> int:
        return len(self.kinds)

    def code(self, word: str) -> int:
        """Return the code of a word, or -1."""
        at = bisect_left(self.vocabulary, word)
        return at if self.vocabulary[at : at + 1] == (word,) else -1

    def word(self, number: int) -> str:
        """Return the word of a node."""
        return self.vocabulary[self.words[number]]

    def slot(self, number: int) -> str:
        """Return the slot of a node."""
        return self.vocabulary[self.slots[number]]

    def as_data(self) -> list[Any]:
        """Return the nodes as JSON can hold them."""
        return [self.vocabulary, [one.tolist() for one in self._columns()]]

    def _columns(self) -> tuple[array[int], ...]:
        return (
            self.kinds, self.words, self.parents, self.slots, self.bodies, self.lines, self.columns,
        )  # fmt: skip

    def check(self) -> None:
        """Raise ValueError unless each column has all nodes, and each code and parent exists."""
        count = len(self)
        codes = (self.words, self.slots)
        if (
            any(len(one) != count for one in self._columns())
            or any(not 0 <= code < len(self.vocabulary) for one in codes for code in set(one))
            or any(not -1 <= parent < count for parent in set(self.parents))
            or list(self.vocabulary) != sorted(set(self.vocabulary))
        ):
            raise ValueError("columns that don't fit each other")


def nodes_of(rows: Sequence[Row], names: Iterable[str]) -> NodeColumns:
    """Return nodes by their rows; ``names`` are further words that tables are asked for."""
    if not rows:
        return NodeColumns((), [()] * len(Node._fields))
    kinds, words, parents, slots, bodies, lines, columns = zip(*rows, strict=True)
    vocabulary = sorted({*words, *slots, *names})
    code = {word: number for number, word in enumerate(vocabulary)}
    coded = [list(map(code.__getitem__, column)) for column in (words, slots)]
    return NodeColumns(vocabulary, (kinds, coded[0], parents, coded[1], bodies, lines, columns))


class Children:
    """The children of each node, in the order of the text: none for one without, and for -1."""

    __slots__ = ("_numbers", "_starts")

    def __init__(self, parents: Sequence[int]) -> None:
        counts = [0] * (len(parents) + 1)
        for parent in parents:
            counts[parent] += 1
        roots = counts.pop()  # the last, because their parent is -1
        order = sorted(range(len(parents)), key=parents.__getitem__)
        self._numbers = packed(order[roots:])
        self._starts = packed([0, *accumulate(counts)])

    def __getitem__(self, number: int) -> Sequence[int]:
        if number < 0:
            return ()
        return self._numbers[self._starts[number] : self._starts[number + 1]]


class Groups(Generic[Key]):
    """The numbers of nodes by a key, in order. No question is for all nodes: it has no `iter`.

    ``codes`` are those of the keys of ``numbers``, in the same order; ``code`` returns the code of
    a key, which is negative if no node can have it.
    """

    __slots__ = ("_code", "_codes", "_numbers", "_starts")

    def __init__(
        self, codes: Sequence[int], numbers: Sequence[int], code: Callable[[Key], int]
    ) -> None:
        order = sorted(range(len(codes)), key=codes.__getitem__)
        counts = Counter(codes)
        known = sorted(counts)
        self._numbers = packed([numbers[one] for one in order])
        self._codes = packed(known)
        self._starts = packed([0, *accumulate(map(counts.__getitem__, known))])
        self._code = code

    def get(self, key: Key, default: Sequence[int] = ()) -> Sequence[int]:
        """Return the numbers of the nodes with a key; ``default`` without any."""
        code = self._code(key)
        at = bisect_left(self._codes, code)
        if at == len(self._codes) or self._codes[at] != code:
            return default
        return self._numbers[self._starts[at] : self._starts[at + 1]]

    def __getitem__(self, key: Key) -> Sequence[int]:
        found = self.get(key)
        if not found:
            raise KeyError(key)
        return found

    def __contains__(self, key: Key) -> bool:
        return bool(self.get(key))
