"""The parts of other files that one file's findings depend on, with their digests.

A module can be queried for a definition by name, for the rest of its module level, for a word, or
whole. A folder can be queried for the modules that hold a word. An answer holds no line numbers.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flake8_torchperf.digest import digest, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from flake8_torchperf.project.option_values import Given

    # A module's text without its definitions, and these with their names.
    Cut = Callable[[str], tuple[str, Iterable[tuple[str, str]]]]

# Separates a path and the part of it that is queried; no path holds it.
PART = "\0"
# The parts of a module: all of it, the code outside definitions, a definition, a word in it.
ALL, REST, NAMED, SAYS = "*", "-", "def ", "says "
# The parts of a folder: the modules that hold a word, and the modules that may call it.
THAT_SAY, THAT_CALL = "say ", "call "
# Asks a folder if one of its modules trains a model.
TRAINS = "trains "
# Asks a folder if one of its modules is a program.
IS_PROGRAM = "started"
# Asks a folder if its modules may find a class of a module without its name.
CLASS_FOUND = "found "
# Asks a folder if its modules, settings or notebooks may find something of a module by its name.
LOOKED_UP = "looked up "
# Asks a folder if its modules name something other than to define it.
SHOWN = "shown "
# Asks a folder for the values that its modules give an option.
OPTION = "option "
# Asks for what an entry of a table in the outline of a module says (`program/asked.py`).
OUTLINED = "outline "
# Ends the path of a folder in a query for the modules below it that may hold a function that must
# not wait.
PROMISES = "*promises"
# Ends the path of a folder in a query for all modules below it, up to `MAX_NAMED` bytes.
WHOLE = "*whole"

_QUOTES = re.compile(r"\"\"\"|'''")
# A line without code.
_NO_CODE = re.compile(r"^[ \t]*(?:#.*)?\n", re.MULTILINE)

# The tables in which queries are recorded, innermost last.
_NOTED: list[dict[str, str] | None] = [None]


@contextmanager
def noting(reads: dict[str, str] | None) -> Iterator[None]:
    """Record in ``reads`` the parts of modules that are queried in this context, with digests."""
    _NOTED.append(reads)
    try:
        yield
    finally:
        _NOTED.pop()


def record(reads: Mapping[str, str]) -> None:
    """Record queries that were answered before, in the innermost context of `noting`."""
    noted = _NOTED[-1]
    if noted is not None:
        noted.update(reads)


class Parts:
    """The parts of a module that may be queried; ``cut`` returns its definitions with texts."""

    def __init__(self, path: str, text: str, cut: Cut) -> None:
        self._path = path
        self._text = text
        self._cut = cut
        self._named: dict[str, str] | None = None
        self._rest = ""
        # The table that recorded the last query, and the parts recorded in it.
        self._reads: dict[str, str] | None = None
        self._asked: set[str] = set()

    def ask(self, part: str) -> None:
        """Record a query if a context of `noting` is open."""
        reads = _NOTED[-1]
        if reads is None:
            return
        if reads is not self._reads:
            self._reads, self._asked = reads, set()
        if part not in self._asked:
            self._asked.add(part)
            reads[f"{self._path}{PART}{part}"] = self.answer(part)

    def answer(self, part: str) -> str:
        """Return the digest of a part; "" for a definition that does not exist."""
        if part == ALL:
            return digest(self._text.encode("utf-8", "surrogatepass"))
        if part.startswith(SAYS):
            return "yes" if part.removeprefix(SAYS) in self._text else ""
        if self._named is None:
            self._rest, self._named = self._digests()
        return self._rest if part == REST else self._named.get(part.removeprefix(NAMED), "")

    def _digests(self) -> tuple[str, dict[str, str]]:
        rest, definitions = self._cut(self._text)
        texts: dict[str, list[str]] = {}
        for name, text in definitions:
            texts.setdefault(name, []).append(without_comments(text))
        return (
            digest_of([without_comments(rest)]),
            {name: digest_of(held) for name, held in texts.items()},
        )


def answer_of_search(paths: Sequence[str] | None) -> str:
    """Return the digest of the modules that a search found, or "too many" for None."""
    return "too many" if paths is None else digest_of(paths)


def answer_of_values(given: Given) -> str:
    """Return the digest of the values of an option."""
    return digest_of([str(given.whole), *sorted(map(repr, given.values))])


def without_comments(text: str) -> str:
    """Return source text without the lines that hold no code, except those in long strings."""
    kept: list[str] = []
    done = 0
    opened = _QUOTES.search(text)
    while opened is not None:
        closed = text.find(opened[0], opened.end())
        if closed < 0:
            return text
        end = closed + len(opened[0])
        kept += (_NO_CODE.sub("", text[done : opened.start()]), text[opened.start() : end])
        done = end
        opened = _QUOTES.search(text, end)
    kept.append(_NO_CODE.sub("", text[done:]))
    return "".join(kept)
