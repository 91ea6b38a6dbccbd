"""The parts of other files that one file's findings depend on, with their digests.

A module can be queried for what binds a name at its module level, for its imports, for a word, or
whole. A folder can be queried for the modules that hold a word. An answer holds no line numbers.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flake8_torchperf.digest import digest, digest_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from flake8_torchperf.project.option_values import Given

    # The statements of a definition that was parsed for others, and the lines in front of it there.
    AsParsed = tuple[list[ast.stmt], int]
    # A module's text without its definitions, and these: name, text, and first line.
    Cut = Callable[[str], tuple[str, Iterable[tuple[str, str, int]]]]
    # The text of a function without its docstring.
    Bare = Callable[[str], str]
    # The text of a function without its body, or of a class without the bodies of its methods; and
    # these methods: name, text, and the number of lines before it.
    Split = Callable[[str, AsParsed | None], tuple[str, Iterable[tuple[str, str, int]]]]
    # The attributes that methods of a class write, each with these methods, by the class's text.
    Written = Callable[[str], Iterable[str]]
    # The names that a text without definitions binds, by its statements.
    Bound = Callable[[str, list[ast.stmt]], "Bindings"]

# Separates a path and the part of it that is queried; no path holds it.
PART = "\0"
# The parts of a module: all of it, a definition at its module level or a method of one
# (``Net.forward``), a word.
ALL, NAMED, SAYS = "*", "def ", "says "
# Asks a module for what binds a name: a function counts without its body, and a class without the
# bodies of its methods.
HEADED = "head "
# Asks for the attributes that the methods of a class write on their object.
WRITES = "writes "
# Asks for the statements of a module outside its functions and classes, but for imports.
LEVEL = "level"
# Asks for the lines of a function, of a method, or of those statements, which findings name.
LINES_OF = "lines "
# Ask a module for all names that it imports, for the modules of its star imports, and if it is
# Python that can be split into parts.
IMPORTS, STARS, SPLITS = "imports", "stars", "-"
# Asks a module for the names that it imports from some packages.
FROM = "from "
# Asks a folder for the modules that hold a word.
THAT_SAY = "say "
# Asks a folder if one of its modules that says torch holds a word.
BESIDE_TORCH = "beside torch "
# Asks a folder where an import starts that only its search path of imports finds.
ON_PATH = "on path "
# Asks a folder if one of its modules trains a model.
TRAINS = "trains "
# Asks a folder for the functions of a module that other modules compile
# (`torch_compile/project_reach.py`).
COMPILED = "compiled "
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
# Asks for what an entry of a table in the outline of a module says (`program/outlines/asked.py`).
OUTLINED = "outline "
# Ask a module for the bases of its classes, and for its methods that take a training step.
BASES, STEPS = "bases", "steps"
# Asks a module for the functions that write an attribute of some object.
STORED = "stored "
# Asks for a fact about a function (`project/function_facts.py`), and for the attributes that the
# methods of a class read of an attribute.
FACT, READ_OF = "fact ", "read of "
# Asks for the text of a function that calls are followed into, of which only what these calls give
# counts; and asks for that, as a question that only an analysis can answer.
FOLLOWED, GIVES = "followed ", "gives "
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


@dataclass(frozen=True)
class Bindings:
    """The names that a module binds outside definitions, with the texts there, and its imports.

    ``heads`` lists the names that imports bind by the first name of what may be imported: a
    relative import may lead to any package around the module, or to what it names itself. ``level``
    lists the texts of all statements but imports and docstrings.
    """

    names: Mapping[str, Sequence[str]]
    imports: Sequence[str]
    stars: Sequence[str]
    heads: Mapping[str, Sequence[str]]
    level: Sequence[str]


@dataclass(frozen=True)
class Readers:
    """The functions that read the parts of a text.

    ``cut`` takes the definitions out of a module, ``bound`` reads what is left, ``split`` takes the
    methods out of a class, ``written`` reads what they write, and ``bare`` drops a docstring.
    """

    cut: Cut
    split: Split
    bound: Bound
    written: Written
    bare: Bare


class Parts:
    """The parts of a module that may be queried; ``outside`` are its statements but definitions."""

    def __init__(self, path: str, text: str, readers: Readers, outside: list[ast.stmt]) -> None:
        self._path = path
        self._text = text
        self._readers = readers
        self._outside = outside
        # The first line and the text of each definition, and of each method.
        self._defined: dict[str, list[tuple[int, str]]] | None = None
        self._methods: dict[str, list[tuple[int, str]]] = {}
        self._heads: dict[str, list[str]] = {}
        self._rest = Bindings({}, (), (), {}, ())
        self._level = ""
        self._answers: dict[str, str] = {}
        # The parts that were queried in each context of `heard`, innermost last.
        self._heard: list[dict[str, None]] = []
        # Definitions that are being read, by their texts.
        self._parsed: dict[str, AsParsed] = {}
        # The table that recorded the last query, and the parts recorded in it.
        self._reads: dict[str, str] | None = None
        self._asked: set[str] = set()

    def offer(self, text: str, body: list[ast.stmt], before: int) -> None:
        """Take a definition as parsed; ``before`` lines stand in front of its text there."""
        self._parsed[text] = body, before

    def withdraw(self, text: str) -> None:
        """Drop a definition, which is not to live longer because of this."""
        self._parsed.pop(text, None)

    def ask(self, part: str) -> None:
        """Record a query if a context of `noting` is open."""
        for heard in self._heard:
            heard[part] = None
        reads = _NOTED[-1]
        if reads is None:
            return
        if reads is not self._reads:
            self._reads, self._asked = reads, set()
        if part not in self._asked:
            self._asked.add(part)
            reads[f"{self._path}{PART}{part}"] = self.answer(part)

    @property
    def listens(self) -> bool:
        """True if some context records queries."""
        return bool(self._heard) or _NOTED[-1] is not None

    @property
    def records(self) -> bool:
        """True if the queries are recorded for one file's findings, and for nobody else."""
        return not self._heard and _NOTED[-1] is not None

    def is_asked(self, part: str) -> bool:
        """True if a query for a part is recorded."""
        reads = _NOTED[-1]
        return reads is not None and f"{self._path}{PART}{part}" in reads

    def tell(self, part: str, found: tuple[object, ...]) -> None:
        """Record a query of which the answer, facts in plain values, is at hand."""
        if part not in self._answers:
            self._answers[part] = answer_of_facts(found)
        self.ask(part)

    def follow(self, function: str, question: str, answer: str) -> None:
        """Record a question that only an analysis can answer, of a call that is followed.

        It is asked again if the text of the function has changed.
        """
        self.ask(f"{FOLLOWED}{function}")
        reads = _NOTED[-1]
        if reads is not None:
            reads[f"{self._path}{PART}{GIVES}{function} {question}"] = answer

    @contextmanager
    def heard(self) -> Iterator[dict[str, None]]:
        """Give the parts that are queried in this context.

        Whoever keeps what was read there for other linted files asks for these parts again.
        """
        parts: dict[str, None] = {}
        self._heard.append(parts)
        try:
            yield parts
        finally:
            self._heard.pop()

    def answer(self, part: str) -> str:
        """Return the digest of a part; "" for a name that is not bound."""
        if part not in self._answers:
            self._answers[part] = self._answer(part)
        return self._answers[part]

    def _answer(self, part: str) -> str:
        if part == ALL:
            return digest(self._text.encode("utf-8", "surrogatepass"))
        if part.startswith(SAYS):
            return "yes" if part.removeprefix(SAYS) in self._text else ""
        defined = self._definitions()
        if part in (IMPORTS, STARS, SPLITS):
            facts = {IMPORTS: self._rest.imports, STARS: self._rest.stars}
            return digest_of(facts.get(part, ()))
        if part.startswith(FROM):
            heads = part.removeprefix(FROM).split()
            bound = sorted({name for head in heads for name in self._rest.heads.get(head, ())})
            return digest_of(text for name in bound for text in (name, *self._rest.names[name]))
        if part == LEVEL:
            return _digest(self._rest.level)
        word, _, name = part.partition(" ")
        kind = f"{word} "
        if kind == FOLLOWED:
            return self.answer(f"{NAMED}{name}")
        owner, _, method = name.partition(".")
        placed = defined.get(owner, [])
        named = self._rest.names.get(owner, ())
        texts = [*(text for _, text in placed), *named]
        if kind == NAMED and not method:
            return _digest(map(self._readers.bare, texts))
        if kind == WRITES:
            return digest_of(one for text in texts for one in self._readers.written(text))
        if owner not in self._heads:
            self._heads[owner] = [self._head(owner, *one) for one in placed]
        if kind == HEADED:
            return _digest((*self._heads[owner], *named))
        if kind == LINES_OF and not name:
            return digest_of((self._level,))
        if kind == LINES_OF:
            return digest_of(f"{line}:{text}" for line, text in self._methods.get(name) or placed)
        return _digest(self._readers.bare(text) for _, text in self._methods.get(name, ()))

    def _definitions(self) -> dict[str, list[tuple[int, str]]]:
        if self._defined is None:
            self._defined = {}
            self._level, definitions = self._readers.cut(self._text)
            self._rest = self._readers.bound(self._level, self._outside)
            for name, text, line in definitions:
                self._defined.setdefault(name, []).append((line, text))
        return self._defined

    def _head(self, owner: str, line: int, text: str) -> str:
        """Return the head of a definition; note its methods."""
        head, methods = self._readers.split(text, self._parsed.get(text))
        for name, body, before in methods:
            self._methods.setdefault(f"{owner}.{name}", []).append((line + before, body))
        return head


class NamesAsked(dict[str, Any]):
    """Names of the module level; each that is looked up is recorded as a query."""

    def __init__(self, parts: Parts, all_of_them: str) -> None:
        super().__init__()
        self._parts = parts
        self._all = all_of_them

    def __getitem__(self, name: str) -> Any:
        self._parts.ask(f"{HEADED}{name}")
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._parts.ask(f"{HEADED}{name}")
        return super().__contains__(name)

    def unasked(self) -> Any:
        """Return all names with what they stand for, for whoever records a narrower query."""
        return super().items()

    def get(self, name: str, default: Any = None) -> Any:
        """Return what a name stands for, as `dict.get` does."""
        self._parts.ask(f"{HEADED}{name}")
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        self._parts.ask(self._all)
        return super().__iter__()

    def values(self) -> Any:
        """Return what all names stand for, as `dict.values` does."""
        self._parts.ask(self._all)
        return super().values()

    def items(self) -> Any:
        """Return all names with what they stand for, as `dict.items` does."""
        self._parts.ask(self._all)
        return super().items()


class MethodsAsked(dict[str, Any]):
    """The methods of a class in an outline; a look-up is recorded as a query for the class's head.

    Whoever reads a method that was found asks for its body (`FunctionInfo.node`).
    """

    def __init__(self, owner: str, parts: Parts) -> None:
        super().__init__()
        self._question = f"{HEADED}{owner}"
        self._parts = parts

    def __getitem__(self, name: str) -> Any:
        self._parts.ask(self._question)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._parts.ask(self._question)
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        self._parts.ask(self._question)
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:
        """Return a method, as `dict.get` does."""
        self._parts.ask(self._question)
        return super().get(name, default)

    def values(self) -> Any:
        """Return all methods, as `dict.values` does."""
        self._parts.ask(self._question)
        return super().values()

    def items(self) -> Any:
        """Return all methods with their names, as `dict.items` does."""
        self._parts.ask(self._question)
        return super().items()


def _digest(texts: Iterable[str]) -> str:
    """Return the digest of some texts without comments; "" for none."""
    held = [without_comments(text) for text in texts]
    return digest_of(held) if held else ""


def answer_of_search(paths: Sequence[str] | None) -> str:
    """Return the digest of the modules that a search found, or "too many" for None."""
    return "too many" if paths is None else digest_of(paths)


def answer_of_facts(found: tuple[object, ...]) -> str:
    """Return the digest of facts in plain values."""
    return digest_of(map(repr, found))


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
