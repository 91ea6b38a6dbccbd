"""Lint one file, or many at once, with flake8's machinery: file names in, flake8's rows out.

A row is the tuple that flake8's `FileChecker` makes of a finding: code, line, column, text, and the
line in which a ``# noqa`` silences it. In our rows, the values of `FindingRecord` follow.

Relied on, in flake8 6.0 to 7.5: the methods of `checker.FileChecker` that are overridden here.
"""

from __future__ import annotations

import ast
import errno
import gc
import io
import itertools
import multiprocessing
import os
import signal
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from flake8 import checker, defaults, processor, style_guide, utils

from flake8_torchperf.cache.entries import in_words
from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.digest import digest
from flake8_torchperf.history.finding_record import restored
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.prefilter import concerns, states_contracts
from flake8_torchperf.project.stores.kept import is_time_to_collect
from flake8_torchperf.reserved import INTERNAL_ERROR
from flake8_torchperf.special_files import refuse_special
from flake8_torchperf.syntax.parsing import require_python, syntax_error

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from multiprocessing.pool import Pool

    from flake8.plugins.finder import Checkers, LoadedPlugin

    from flake8_torchperf.cache.memory import Memory
    from flake8_torchperf.history.finding_record import FindingRecord, Place
    from flake8_torchperf.options import Options

# A file's name, its rows, and flake8's counts for it.
Result: TypeAlias = "tuple[str, list[Any], dict[str, int]]"

STDIN = "-"
# The values of a row that flake8 knows.
FLAKE8S = 5
# flake8's own codes for a file that can't be parsed, and for one that can't be read.
UNREADABLE = ("E999", "E902")
# As flake8: where the system has no semaphores left, one process does it all.
_NO_POOL = frozenset({errno.ENOSPC})


@dataclass(frozen=True)
class Needs:
    """The steps that a run needs for each file besides our analysis.

    ``syntax``: E9 codes are selected, so each file must be parsed and tokenised. ``counts``: so it
    must be for ``--benchmark``, even if the findings are cached. ``lines``: each finding needs its
    whole statement, because the source is shown or another project's formatter may show it;
    otherwise that matters only in a file with a ``# noqa``.
    """

    syntax: bool
    counts: bool
    lines: bool

    @classmethod
    def of(cls, options: argparse.Namespace, formatter: object) -> Needs:
        """Return what the options and the chosen formatter need."""
        theirs = not type(formatter).__module__.startswith("flake8.")
        lines = theirs or bool(options.show_source)
        return cls(any(selected(options, UNREADABLE)), bool(options.benchmark), lines)


def selected(options: argparse.Namespace, codes: Iterable[str]) -> list[str]:
    """Return the codes that the options select."""
    decide = style_guide.DecisionEngine(options).decision_for
    return [code for code in codes if decide(code) is style_guide.Decision.Selected]


Done = TypeVar("Done")
Context = TypeVar("Context", bound="LintWork")


@dataclass(frozen=True)
class LintWork:
    """All that linting a file takes besides its name; sent to every process."""

    plugins: Checkers
    options: argparse.Namespace
    ours: Options
    needs: Needs
    memory: Memory | None


class FileChecker(checker.FileChecker):
    """flake8's `FileChecker`, without the steps that our findings do not need.

    If ``parses_all``, a file is parsed even if it can have no findings, since a file that does not
    parse must be reported.
    """

    parses_all = True

    def __init__(self, *, filename: str, work: LintWork) -> None:
        self._needs = work.needs
        self._remembers = work.memory is not None
        self._statements = True
        self._made: TorchPerfPlugin | None = None
        # Has the file nothing that was to be looked into? Was it parsed for its syntax alone?
        self.unconcerned = self.passed_over = False
        super().__init__(filename=filename, plugins=work.plugins, options=work.options)
        if self.processor is not None and not work.needs.lines:
            noqa = defaults.NOQA_INLINE_REGEXP.search
            self._statements = any(noqa(line) for line in self.processor.lines)

    @property
    def reads(self) -> dict[str, str]:
        """The other files that were looked for, each with the digest of its content."""
        return (self._made and self._made.reads) or {}

    @property
    def told(self) -> dict[Place, FindingRecord]:
        """Our findings, by line, column and text."""
        found = self._made.told if self._made is not None else []
        return {one.place: one for one in found}

    def _make_processor(self) -> Any:
        if not is_notebook(self.filename):
            return super()._make_processor()  # type: ignore[misc]  # not among the types
        from flake8_torchperf.cli.notebooks.source import NotebookError, read_notebook

        try:
            book = read_notebook(self.filename)
        except (NotebookError, OSError) as error:
            self.report("E902", 0, 0, in_words(error) if isinstance(error, OSError) else str(error))
            return None
        for line, column, why in book.problems:
            self.results.append(("E999", line, column - 1, why, None))
        return processor.FileProcessor(self.filename, self.options, lines=list(book.lines))

    def run_check(self, plugin: LoadedPlugin, **arguments: Any) -> Any:
        """Run the check, and hold on to our plugin."""
        made = super().run_check(plugin, **arguments)
        if isinstance(made, TorchPerfPlugin):
            self._made = made
            made.apart = True
            if self._remembers:
                made.reads = {}
        return made

    def run_ast_checks(self) -> None:
        """Look for findings in a file that can have some; check only that any other file parses."""
        assert self.processor is not None
        wanted = self._needs.syntax or self._needs.counts
        lines = self.processor.lines
        self.unconcerned = not wanted and not concerns(lines, self.processor.filename)
        if self.unconcerned and not states_contracts(lines):
            self.passed_over = True
            if self.parses_all:
                require_python("".join(lines))
            return
        try:
            super().run_ast_checks()
        except SyntaxError:
            raise
        except (ValueError, RecursionError, MemoryError) as error:
            raise syntax_error(error) from error

    def process_tokens(self) -> None:
        """Go through the tokens only if their errors or their number count."""
        if self._needs.syntax or self._needs.counts:
            super().process_tokens()

    def report(self, error_code: str | None, line_number: int, column: int, text: str) -> str:
        """Store a finding, with the lines in which flake8 looks for ``# noqa``.

        Finding the lines of a statement takes the tokens of the whole file. If no line has such a
        comment, the finding's own line gives the same answer.
        """
        if self._statements or self.processor is None:
            return super().report(error_code, line_number, column, text)
        if error_code is None:
            error_code, text = text.split(" ", 1)
        lines = self.processor.lines
        line = lines[line_number - 1] if 0 < line_number <= len(lines) else None
        self.results.append((error_code, line_number, column, text, line))
        return error_code


def content_of(filename: str) -> bytes | None:
    """Return the bytes of a file, or of standard input; None if it can't be read."""
    if filename == STDIN:
        return utils.stdin_get_value().encode("utf-8", "surrogatepass")
    try:
        refuse_special(filename)
        with open(filename, "rb") as file:
            return file.read()
    except OSError:
        return None  # linted anyway: flake8 reports the problem


def cannot_have_findings(data: bytes, filename: str) -> bool:
    """True if a file with this content cannot have findings in any encoding."""
    text = (data.decode("latin-1"),)
    if concerns(text, filename) or states_contracts(text):
        return False
    return not _may_declare(data)


def why_no_text(data: bytes) -> str:
    """Return why Python can't decode this text, or ""; flake8 takes it for Latin-1 then."""
    if data.isascii() and not _may_declare(data):
        return ""
    try:
        data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0])
    except (SyntaxError, UnicodeError) as error:
        return str(error)
    except LookupError:
        pass  # flake8 can't read it either, and reports that
    return ""


def _may_declare(data: bytes) -> bool:
    """True if one of the first two lines may name an encoding."""
    return any(b"coding" in line for line in data.split(b"\n", 2)[:2])


def display_name(filename: str, options: argparse.Namespace) -> str:
    """Return the name under which flake8 reports a file."""
    return (options.stdin_display_name or "stdin") if filename == STDIN else filename


def place_of(row: Sequence[Any]) -> Place:
    """Return the line, column and text that flake8 has for a finding in one of its rows."""
    return (row[1], row[2], f"{row[0]} {row[3]}")


def key(memory: Memory, filename: str, data: bytes, options: argparse.Namespace) -> str:
    """Return the key of a file with this content."""
    return memory.key(display_name(filename, options), digest(data))


def recall(memory: Memory, key: str) -> list[Any] | None:
    """Return the rows cached under a key; an entry that holds something else is a miss."""
    rows = memory.recall(key)
    if rows is None:
        return None
    for row in rows:
        match row[:FLAKE8S]:
            case (str(), int(), int(), str(), None | str()):
                if len(row) == FLAKE8S or restored(row[FLAKE8S:]) is not None:
                    continue
        return None
    return list(rows)


def for_each(
    one: Callable[[str, Context], Done], filenames: Sequence[str], work: Context, jobs: int
) -> list[Done]:
    """Return the result of ``one`` for each file; see `as_they_come`."""
    return list(as_they_come(one, filenames, work, jobs))


def as_they_come(
    one: Callable[[str, Context], Done], filenames: Sequence[str], work: Context, jobs: int
) -> Iterator[Done]:
    """Yield the result of ``one`` for each file, from ``jobs`` processes where possible.

    The order is arbitrary. ``one`` is at the top level of its module, and its results pickle.
    """
    pool = _pool(one, work, jobs, filenames) if jobs > 1 else None
    if pool is not None:
        with pool:
            yield from pool.imap_unordered(_here, _large_first(filenames, jobs))
        return
    running = gc.isenabled()
    gc.disable()
    try:
        for filename in filenames:
            yield _and_tidy(one, filename, work)
    finally:
        if running:
            gc.enable()


def _and_tidy(one: Callable[[str, Context], Done], filename: str, work: Context) -> Done:
    """Work on a file, then collect the garbage it leaves, with Python's own collection off.

    Python's collection would go through all live objects, above all modules read for other files,
    each time that enough have been made: a fifth of the time. Objects from before a file live on
    after it, except modules that later ones push out of the project's memory.
    """
    done = one(filename, work)
    gc.collect(0)
    if next(_linted) % _FULL_COLLECTION_EVERY == 0 or is_time_to_collect():
        gc.collect()
    return done


def lint(filename: str, work: LintWork) -> tuple[Result, str]:
    """Lint one file and cache its rows; also returns why they could not be cached."""
    # Notebooks are not cached: their Python source also depends on nbformat.
    keeps = work.memory is not None and not is_notebook(filename)
    before = content_of(filename) if keeps else None
    try:
        file = FileChecker(filename=filename, work=work)
    except LookupError as error:
        # The file names an encoding of bytes, as hex; elsewhere this would end the whole run.
        row = ("E902", 0, 0, f"LookupError: {error}", "")
        return (filename, [row], dict.fromkeys(defaults.STATISTIC_NAMES, 0)), ""
    name, found, counts = file.run_checks()
    told = file.told
    rows = [(*row, *told.get(place_of(row), ())) for row in found]
    result = (name, rows, counts)
    if work.memory is None or before is None or content_of(filename) != before:
        return result, ""
    if any(row[0] == INTERNAL_ERROR for row in rows):
        return result, ""  # of the moment, perhaps: too little stack or memory
    try:
        # The files that a file imports may mention torch later.
        if not file.unconcerned:
            work.memory.keep(key(work.memory, filename, before, work.options), rows, file.reads)
        elif file.passed_over and not rows:
            work.memory.keep_parsed(digest(before))
    except OSError as error:
        return result, in_words(error)
    return result, ""


def _large_first(filenames: Sequence[str], jobs: int) -> list[str]:
    """Return the files in their order, but first those that would keep one process busy at the end.

    The others keep their order, since findings are printed in that order as they arrive.
    """
    sizes = {name: _size(name) for name in filenames}
    most = sum(sizes.values()) / (jobs * LARGE_SHARE)
    large = sorted((one for one in filenames if sizes[one] > most), key=lambda one: -sizes[one])
    return [*large, *(one for one in filenames if sizes[one] <= most)]


# A file is large if its size is more than 1 / LARGE_SHARE of the work of each process.
LARGE_SHARE = 32


def _size(filename: str) -> int:
    try:
        return os.path.getsize(filename)
    except OSError:
        return 0  # standard input, or a file that flake8 reports as unreadable


# The files linted in this process.
_linted = itertools.count(1)
# A full collection takes as long as a few files, and frees a few hundred objects per hundreds of
# files.
_FULL_COLLECTION_EVERY = 1000

# The function that a process of the pool runs, and its settings: set once, when it starts.
_work: list[tuple[Callable[[str, Any], Any], LintWork]] = []


def _pool(
    one: Callable[[str, Context], Done], work: Context, jobs: int, filenames: Sequence[str]
) -> Pool | None:
    try:
        if multiprocessing.get_start_method() == "fork":
            _import_before(filenames)
        return multiprocessing.Pool(jobs, _start, (one, work))
    except OSError as error:
        if error.errno not in _NO_POOL:
            raise
    except ImportError:
        pass  # a Python without semaphores
    return None


def _import_before(filenames: Sequence[str]) -> None:
    """Load before forking what each process would otherwise load itself.

    That is the interpreter, torch's table, and the words of the project's files, which are searched
    for callers. The other modules that a process reads take under 2 % of its time.
    """
    from flake8_torchperf import linter  # noqa: F401
    from flake8_torchperf.findings import catalogue, report  # noqa: F401
    from flake8_torchperf.interpreter.driver import function_analysis  # noqa: F401
    from flake8_torchperf.judgement.review import caller_review  # noqa: F401
    from flake8_torchperf.knowledge.table import load
    from flake8_torchperf.project.module_index import read_module
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.project.text_search import SEARCHES

    load()
    for filename in filenames:
        module = read_module(ast.Module([], []), (), Path(filename))
        texts = Project(module).searched_texts()
        if texts is not None:
            if len(filenames) > SEARCHES:
                texts.gather()
            break


def _start(one: Callable[[str, Any], Any], work: LintWork) -> None:
    # Ctrl-C is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()
    TorchPerfPlugin.use(work.ours)
    _work.append((one, work))


def _here(filename: str) -> Any:
    one, work = _work[0]
    return _and_tidy(one, filename, work)
