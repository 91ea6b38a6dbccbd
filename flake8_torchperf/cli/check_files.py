"""Find the files of a run, and lint one file, or many at once: file names in, records out.

Files that can't be read or parsed get records with flake8's own codes.

Relied on, in flake8 6.0 to 7.5: `processor.FileProcessor`, which reads files and finds statements.
"""

from __future__ import annotations

import ast
import errno
import gc
import io
import itertools
import logging
import multiprocessing
import os
import signal
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from flake8 import defaults, processor, style_guide, utils

from flake8_torchperf.cache.cached_findings import recalled
from flake8_torchperf.cache.entries import in_words
from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.digest import digest
from flake8_torchperf.history.finding_record import FindingRecord
from flake8_torchperf.pipeline import LintText, asking_again, found_in
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.prefilter import concerns, states_contracts
from flake8_torchperf.project.stores.kept import is_time_to_collect, take_dropped_apart
from flake8_torchperf.reserved import INTERNAL_ERROR
from flake8_torchperf.special_files import refuse_special
from flake8_torchperf.syntax.parsing import require_python

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from multiprocessing.pool import Pool

    from flake8_torchperf.cache.memory import Memory
    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.options import Options

LOG = logging.getLogger(__name__)

STDIN = "-"
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

    syntax: bool = False
    counts: bool = False
    lines: bool = False

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

    options: argparse.Namespace
    ours: Options
    needs: Needs = Needs()
    memory: Memory | None = None


class Result(NamedTuple):
    """The records of a file, under the name that flake8 reports, with flake8's counts for it."""

    name: str
    records: list[FindingRecord]
    counts: dict[str, int]


def find_files(
    options: argparse.Namespace, failed: list[OSError], notebooks: list[str]
) -> Iterator[str]:
    """Yield the files that the options name, as flake8's `discover_files.expand_paths` does.

    That says nothing of a folder that it can't list, and treats it as empty. ``failed`` receives
    the errors of such folders, and ``notebooks`` the notebooks in all folders.
    """
    excluded = (*options.exclude, *options.extend_exclude)

    def is_excluded(path: str) -> bool:
        if path == STDIN:
            if options.stdin_display_name == "stdin":
                return False
            path = options.stdin_display_name
        words = '"%(path)s" has %(whether)sbeen excluded'
        return utils.matches_filename(path, patterns=excluded, log_message=words, logger=LOG)

    for path in options.filenames or ["."]:
        if is_excluded(path):
            continue
        if not os.path.isdir(path):
            yield path
            continue
        for folder, folders, names in os.walk(path, onerror=failed.append):
            folders[:] = [one for one in folders if not is_excluded(os.path.join(folder, one))]
            paths = [os.path.join(folder, one) for one in names]
            inside = [one for one in paths if not is_excluded(one)]
            notebooks.extend(filter(is_notebook, inside))
            yield from (one for one in inside if utils.fnmatch(one, options.filename))


def number_of_jobs(options: argparse.Namespace, files: Collection[str]) -> int:
    """Return how many processes are to lint the files; standard input is read by this one."""
    if utils.is_using_stdin(options.filenames):
        return min(1, len(files))
    wanted = multiprocessing.cpu_count() if options.jobs.is_auto else options.jobs.n_jobs
    return min(max(wanted, 1), len(files))


@dataclass
class Looked:
    """A text that was read, with its records and what is counted for the summary.

    ``unconcerned`` says that it was not analysed, since it can have no findings, and
    ``passed_over`` that it was parsed for its syntax alone, if at all.
    """

    source: LintText
    counts: dict[str, int]
    records: list[FindingRecord] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unconcerned: bool = False
    passed_over: bool = False


def look_into(
    text: processor.FileProcessor,
    work: LintWork,
    reads: dict[str, str] | None,
    safeties: frozenset[str] | None = None,
    parses_all: bool = True,
) -> Looked:
    """Return what is found in a text, without the steps that our findings do not need.

    If ``parses_all``, a text is parsed even if it can have no findings, since one that does not
    parse must be reported. For the other parameters, see `pipeline.found_in`.
    """
    source = LintText(text.lines, text.filename, _statements(text, work.needs))
    looked = Looked(source, dict.fromkeys(defaults.STATISTIC_NAMES, 0))
    looked.counts["physical lines"] = len(text.lines)
    # flake8 goes through the lines twice, and few texts speak of it.
    if "# flake8" in "".join(text.lines).lower() and text.should_ignore_file():
        return looked
    in_full = work.needs.syntax or work.needs.counts
    try:
        looked.unconcerned = not in_full and not source.is_concerned
        looked.passed_over = looked.unconcerned and not source.states_contracts
        if not looked.passed_over:
            source.parse()
            looked.records, looked.findings = found_in(source, work.ours, None, reads, safeties)
        elif parses_all:
            require_python("".join(text.lines))
        if in_full:
            _tokenise(text, looked.counts)
    except (SyntaxError, tokenize.TokenError) as error:
        code = "E902" if isinstance(error, tokenize.TokenError) else "E999"
        line, column = _place(error)
        words = f"{code} {type(error).__name__}: {error.args[0]}"
        statement = source.statement_at(line)
        looked.records.append(FindingRecord(line, column, words, statement=statement))
    return looked


def _place(error: Exception) -> tuple[int, int]:
    """Return the line and column of an error of Python's parser or tokeniser, as flake8 does."""
    match error.args:
        case [_, [_, int(line), int(column), *_]] | [_, [int(line), int(column)]]:
            return line, column
    return 1, 0


def _statements(text: processor.FileProcessor, needs: Needs) -> Callable[[int], str | None]:
    """Return a function from a line to the text in which flake8 looks for its ``# noqa``.

    Finding the lines of a statement takes the tokens of the whole file. If no line has such a
    comment, the line itself gives the same answer.
    """
    lines = text.lines
    if needs.lines or any(map(defaults.NOQA_INLINE_REGEXP.search, lines)):
        return text.noqa_line_for
    return lambda line: lines[line - 1] if 0 < line <= len(lines) else None


def _tokenise(text: processor.FileProcessor, counts: dict[str, int]) -> None:
    """Go through the tokens, which may raise, and count them and the logical lines."""
    depth = 0
    for token in text.generate_tokens():
        counts["tokens"] += 1
        if token.type == tokenize.OP:
            depth = processor.count_parentheses(depth, token.string)
        elif depth == 0 and processor.token_is_newline(token):
            if token.type == tokenize.NL and len(text.tokens) == 1:
                text.delete_first_token()
            elif text.build_logical_line()[2]:
                text.next_logical_line()
    if text.tokens:
        text.build_logical_line()
    counts["logical lines"] = text.statistics["logical lines"]


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


def key(memory: Memory, filename: str, data: bytes, options: argparse.Namespace) -> str:
    """Return the key of a file with this content."""
    return memory.key(display_name(filename, options), digest(data))


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
    if gc.get_count()[0] > _YOUNG_OBJECTS:
        gc.collect(0)
    take_dropped_apart()
    if next(_linted) % _FULL_COLLECTION_EVERY == 0 or is_time_to_collect():
        gc.collect()
    return done


def lint(filename: str, work: LintWork) -> tuple[Result, str]:
    """Lint one file and cache its records; also returns why they could not be cached."""
    # Notebooks are not cached: their Python source also depends on nbformat.
    keeps = work.memory is not None and not is_notebook(filename)
    before = content_of(filename) if keeps else None
    text, records = _read(filename, work.options)
    if text is None:
        return Result(filename, records, dict.fromkeys(defaults.STATISTIC_NAMES, 0)), ""
    if before is not None and work.memory is not None and not work.needs.counts:
        given = key(work.memory, filename, before, work.options)
        known = _recalled(text, given, work, work.memory)
        if known is not None:
            return known, ""
    reads: dict[str, str] = {}
    looked = look_into(text, work, None if work.memory is None else reads)
    records += looked.records
    result = Result(text.filename, records, looked.counts)
    if work.memory is None or before is None or content_of(filename) != before:
        return result, ""
    if any(one.code == INTERNAL_ERROR for one in records):
        return result, ""  # of the moment, perhaps: too little stack or memory
    try:
        # The files that a file imports may mention torch later.
        if not looked.unconcerned:
            given = key(work.memory, filename, before, work.options)
            work.memory.keep(given, records, reads)
        elif looked.passed_over and not records:
            work.memory.keep_parsed(digest(before))
    except OSError as error:
        return result, in_words(error)
    return result, ""


def _recalled(
    text: processor.FileProcessor, given: str, work: LintWork, memory: Memory
) -> Result | None:
    """Return the records of a file that still hold; what they depend on may be asked again."""
    source = LintText(text.lines, text.filename, _statements(text, work.needs))
    records = recalled(memory, given, asking_again(source, work.ours))
    if records is None:
        return None
    return Result(text.filename, records, dict.fromkeys(defaults.STATISTIC_NAMES, 0))


def _read(
    filename: str, options: argparse.Namespace
) -> tuple[processor.FileProcessor | None, list[FindingRecord]]:
    """Return the text of a file, and records for cells or a whole file that can't be read."""
    if is_notebook(filename):
        return _read_notebook(filename, options)
    try:
        return processor.FileProcessor(filename, options), []
    except LookupError as error:
        # The file names an encoding of bytes, as hex; elsewhere this would end the whole run.
        return None, [FindingRecord(0, 0, f"E902 LookupError: {error}", statement="")]
    except OSError as error:
        return None, [FindingRecord(0, 0, f"E902 {type(error).__name__}: {error}")]


def _read_notebook(
    filename: str, options: argparse.Namespace
) -> tuple[processor.FileProcessor | None, list[FindingRecord]]:
    from flake8_torchperf.cli.notebooks.source import NotebookError, read_notebook

    try:
        book = read_notebook(filename)
    except (NotebookError, OSError) as error:
        words = in_words(error) if isinstance(error, OSError) else str(error)
        return None, [FindingRecord(0, 0, f"E902 {words}")]
    problems = [FindingRecord(at, column - 1, f"E999 {why}") for at, column, why in book.problems]
    return processor.FileProcessor(filename, options, lines=list(book.lines)), problems


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
# So many new objects, 5 MB perhaps, may wait for the next collection: a file whose findings are
# known leaves fewer.
_YOUNG_OBJECTS = 50_000

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
    from flake8_torchperf.project.texts.text_search import SEARCHES

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
