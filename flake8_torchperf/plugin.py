"""flake8's face: a file's tree and lines enter, flake8 results leave."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING

from flake8_torchperf import __version__
from flake8_torchperf.prefilter import concerns

if TYPE_CHECKING:
    import argparse
    import ast
    from collections.abc import Iterator, Sequence

    from flake8.options.manager import OptionManager

    from flake8_torchperf.cache.memory import Memory
    from flake8_torchperf.findings.model import Finding
    from flake8_torchperf.options import Options

REPORT_TO = "the flake8-torchperf issue tracker"
INTERNAL_ERROR = "TPF900"


class TorchPerfPlugin:
    """The plugin flake8 loads under the code ``TPF``.

    flake8 fills the constructor's parameters by name. It builds no tree where a file does not
    parse, so a syntax error stays flake8's own E999. ``lines`` is what flake8 was given, be it a
    file, standard input or an editor's buffer; the file is never opened again.
    """

    name = "flake8-torchperf"
    version = __version__
    # Set once per process by parse_options: flake8 makes a new instance for every file.
    _options: Options | None = None
    # What is remembered, from the first file of a run on; a process may run flake8 more than once.
    _memory: Memory | None = None

    def __init__(self, tree: ast.Module, lines: Sequence[str], filename: str) -> None:
        self._tree = tree
        self._lines = lines
        self._filename = filename
        # Path -> digest of the other files that were looked for, where somebody will remember them:
        # what the findings depend on.
        self.reads: dict[str, str] | None = None
        # Where somebody will rewrite the file: which fixes to plan, and then the findings.
        self.safeties: frozenset[str] | None = None
        self.found: list[Finding] = []

    @classmethod
    def add_options(cls, parser: OptionManager) -> None:
        """Register the ``--torchperf-*`` options."""
        from flake8_torchperf.options import add_options

        add_options(parser)

    @classmethod
    def parse_options(
        cls, manager: OptionManager, namespace: argparse.Namespace, _filenames: Sequence[str]
    ) -> None:
        """Keep the checked options; an option that can't be used ends flake8 with one line."""
        from flake8_torchperf.options import OptionError, from_namespace

        try:
            cls.use(from_namespace(namespace))
        except OptionError as error:
            manager.parser.exit(2, f"{manager.parser.prog}: error: {error}\n")

    @classmethod
    def use(cls, options: Options) -> None:
        """Take checked options for every file from here on."""
        cls._options = options
        cls._memory = None

    @classmethod
    def options(cls) -> Options:
        """The options in use."""
        from flake8_torchperf.options import Options

        return cls._options or Options()

    def run(self) -> Iterator[tuple[int, int, str, type[TorchPerfPlugin]]]:
        """Yield line (from 1), column (from 0), message and class for every finding."""
        if not concerns(self._lines, self._filename):
            return
        for line, column, message in self._findings():
            yield line, column, message, type(self)

    def _findings(self) -> list[tuple[int, int, str]]:
        try:
            options = self.options()
            if options.cache:
                from flake8_torchperf.cache.findings import memory_of, remembered

                memory = TorchPerfPlugin._memory or memory_of(options)
                TorchPerfPlugin._memory = memory
                self.reads = {}
                return remembered(self._lines, self._filename, memory, self._analyse, self.reads)
            return self._analyse()
        except Exception as error:
            # A bug of ours must neither end the user's run nor go unseen: it becomes a finding
            # that names it.
            if os.environ.get("TORCHPERF_DEBUG") == "1":
                raise
            return [(1, 0, internal_error(error))]

    def _analyse(self) -> list[tuple[int, int, str]]:
        from flake8_torchperf.linter import MARKED, lint_tree

        findings = lint_tree(
            self._tree,
            self._lines,
            self._filename,
            self.options(),
            self.reads,
            MARKED if self.safeties is None else self.safeties,
        )
        if self.safeties is not None:
            self.found = findings
        return [(f.line, f.column, f"{f.code} {f.message}") for f in findings]


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
