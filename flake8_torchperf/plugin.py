"""The flake8 plugin: a file's tree and lines in, flake8's results out."""

from __future__ import annotations

import os
import sys
import traceback
from typing import TYPE_CHECKING

from flake8_torchperf import __version__
from flake8_torchperf.history.finding_record import FindingRecord, as_rows, tell
from flake8_torchperf.prefilter import concerns, states_contracts
from flake8_torchperf.reserved import INTERNAL_ERROR, STRAY_CONTRACT

if TYPE_CHECKING:
    import argparse
    import ast
    from collections.abc import Callable, Iterator, Sequence

    from flake8.options.manager import OptionManager

    from flake8_torchperf.cache.memory import Memory
    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.options import Options
    from flake8_torchperf.suppression import Suppression

REPORT_TO = "the flake8-torchperf issue tracker"


class TorchPerfPlugin:
    """The plugin flake8 loads under the code ``TPF``.

    flake8 fills the constructor's parameters by name. It builds no tree for a file that does not
    parse, so a syntax error remains flake8's own E999. ``lines`` is the text that flake8 read from
    a file, standard input or an editor's buffer; the file is not opened again. ``noqa_line_for``
    returns the text in which flake8 looks for the ``# noqa`` of a line; some hosts don't pass it.
    """

    name = "flake8-torchperf"
    version = __version__
    # Set once per process by parse_options: flake8 makes a new instance for every file.
    _options: Options | None = None
    # Set by our own commands: options can be spelled --scope as well, and have these defaults.
    short_names = False
    defaults: Options | None = None
    # The cache, opened at the first file of a run; a process may run flake8 more than once.
    _memory: Memory | None = None
    # flake8's own options, and its decisions by them, made when first needed.
    _flake8: argparse.Namespace | None = None
    _suppression: Suppression | None = None

    def __init__(
        self,
        tree: ast.Module,
        lines: Sequence[str],
        filename: str,
        noqa_line_for: Callable[[int], str | None] | None = None,
    ) -> None:
        self.tree = tree
        self._lines = lines
        self._filename = filename
        self._noqa_line_for = noqa_line_for
        # True reports each finding of a row by itself. Our own commands set it, to leave out old
        # findings before rows are joined.
        self.apart = False
        # Path -> digest of the other files that the findings depend on; None if nothing is cached.
        self.reads: dict[str, str] | None = None
        # The safeties of the fixes to plan, set to apply fixes; ``found`` then gets the findings.
        self.safeties: frozenset[str] | None = None
        self.found: list[Finding] = []
        # The records of the findings that were yielded.
        self.told: list[FindingRecord] = []

    @classmethod
    def add_options(cls, parser: OptionManager) -> None:
        """Register the ``--torchperf-*`` options."""
        from flake8_torchperf.configuration import KnownNames
        from flake8_torchperf.options import add_options

        add_options(parser, short=cls.short_names)
        parser.config_options_dict = KnownNames(parser.config_options_dict)

    @classmethod
    def parse_options(
        cls, manager: OptionManager, namespace: argparse.Namespace, _filenames: Sequence[str]
    ) -> None:
        """Store the checked options; an invalid option stops flake8 with a one-line error."""
        from flake8_torchperf.configuration import settled
        from flake8_torchperf.options import OptionError, Options

        try:
            options = settled(manager, namespace, cls.defaults or Options())
            check_files(options)
            _check_globs(manager, namespace, options)
            cls.use(options)
            cls._flake8 = namespace
            cls._suppression = None
        except OptionError as error:
            manager.parser.exit(2, f"{manager.parser.prog}: error: {error}\n")

    @classmethod
    def use(cls, options: Options) -> None:
        """Use these checked options for every file from now on."""
        cls._options = options
        cls._memory = None

    @classmethod
    def options(cls) -> Options:
        """Return the options in use."""
        from flake8_torchperf.options import Options

        return cls._options or Options()

    def run(self) -> Iterator[tuple[int, int, str, type[TorchPerfPlugin]]]:
        """Yield line (from 1), column (from 0), message and class for every finding."""
        found = self._stray_contracts()
        if concerns(self._lines, self._filename):
            found += self._findings()
        self.told = self._without_old(found)
        if not self.apart:
            self.told = as_rows(self.told, self._is_reported)
        for told in self.told:
            yield told.line, told.column, told.text, type(self)

    def _stray_contracts(self) -> list[FindingRecord]:
        """Return comments that begin like a contract but state none; most files have none."""
        if not states_contracts(self._lines) or not self._is_chosen(STRAY_CONTRACT):
            return []
        from flake8_torchperf.syntax.contract_comments import stray_contracts

        return [
            FindingRecord(
                comment.line,
                comment.column,
                f"{STRAY_CONTRACT} {problem}",
                comment.line,
                comment.column + len(comment.text),
                source=comment.text,
            )
            for comment, problem in stray_contracts(self.tree, self._lines)
        ]

    def _is_chosen(self, code: str) -> bool:
        """True if the project's table lets a code be told in this file."""
        chosen = self.options().chosen
        return chosen.tells(code, self._filename) and not chosen.leaves_out(self._filename)

    def _is_reported(self, told: FindingRecord) -> bool:
        """True if flake8 is going to report a finding."""
        if TorchPerfPlugin._flake8 is None:
            return True
        if TorchPerfPlugin._suppression is None:
            from flake8_torchperf.suppression import Suppression

            TorchPerfPlugin._suppression = Suppression(TorchPerfPlugin._flake8)
        line = told.line
        text = self._noqa_line_for(line) if self._noqa_line_for is not None else None
        if text is None and 0 < line <= len(self._lines):
            text = self._lines[line - 1]
        return TorchPerfPlugin._suppression.reports(told.code, self._filename, line, text)

    def _without_old(self, found: list[FindingRecord]) -> list[FindingRecord]:
        """Return the findings that the baseline does not list."""
        path = self.options().baseline
        if path is None or not found:
            return found
        from flake8_torchperf.history.baseline import known_before, read

        known = known_before(found, read(path).allowed(self._filename))[0]
        return [told for index, told in enumerate(found) if index not in known]

    def _findings(self) -> list[FindingRecord]:
        try:
            options = self.options()
            if options.cache:
                from flake8_torchperf.cache.cached_findings import memory_of, remembered

                memory = TorchPerfPlugin._memory or memory_of(options)
                TorchPerfPlugin._memory = memory
                self.reads = {}
                return remembered(self._lines, self._filename, memory, self._analyse, self.reads)
            return self._analyse()
        except Exception as error:
            # A bug of ours must neither stop the user's run nor stay hidden: it is reported as a
            # finding.
            if os.environ.get("TORCHPERF_DEBUG") == "1":
                raise
            return [FindingRecord(1, 0, internal_error(error))]

    def _analyse(self) -> list[FindingRecord]:
        from flake8_torchperf.linter import MARKED, lint_tree

        findings = lint_tree(
            self.tree,
            self._lines,
            self._filename,
            self.options(),
            self.reads,
            MARKED if self.safeties is None else self.safeties,
        )
        if self.safeties is not None:
            self.found = findings
        if not findings:
            return []
        from flake8_torchperf.syntax.statement_lines import Places

        places = Places(self.tree)
        return [tell(finding, places, self._lines) for finding in findings]


def _check_globs(manager: OptionManager, namespace: argparse.Namespace, options: Options) -> None:
    """Say for flake8 which globs name no function. Raises `OptionError` for a lost contract.

    Our own commands check globs when they have linted, and a process of flake8's not again.
    """
    if not (options.sync_free or options.hot or options.cold) or manager.parser.prog != "flake8":
        return
    from multiprocessing import parent_process

    if parent_process() is None:
        from flake8_torchperf.contracts.unmatched import check_flake8
        from flake8_torchperf.options import PREFIX

        words = [word.partition("=")[0].removeprefix(f"--{PREFIX}") for word in sys.argv]
        globs = {"sync-free", "hot", "cold"}
        check_flake8(namespace, options, globs.intersection(words))


def check_files(options: Options, prefix: str = "--torchperf-") -> None:
    """Read the baseline and the profile now, to report an error once.

    Raises `OptionError`, with ``prefix`` before the name of the option.
    """
    if options.baseline is None and options.profile is None:
        return
    from flake8_torchperf.history import baseline, profile
    from flake8_torchperf.history.data_files import DataFileError
    from flake8_torchperf.options import OptionError

    for option, module, path in (
        ("baseline", baseline, options.baseline),
        ("profile", profile, options.profile),
    ):
        module.read.cache_clear()
        try:
            if path is not None:
                module.read(path)
        except DataFileError as error:
            raise OptionError(f"{prefix}{option}: {error}") from error


def internal_error(error: Exception) -> str:
    """Say in one line what went wrong inside the plugin, where, and what to do about it."""
    from flake8_torchperf.findings.message import printable

    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    reason = printable(" ".join(f"{type(error).__name__}: {error}".split()))
    return (
        f"{INTERNAL_ERROR} this file was not analysed, by a mistake of flake8-torchperf: {reason} "
        f"({place}); please report it to {REPORT_TO}, TORCHPERF_DEBUG=1 shows the traceback"
    )
