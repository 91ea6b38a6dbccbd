"""The flake8 plugin: a file's tree and lines in, flake8's results out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flake8_torchperf import __version__
from flake8_torchperf.pipeline import LintText, linted, reported_by
from flake8_torchperf.project.stores.collection import tidied

if TYPE_CHECKING:
    import argparse
    import ast
    from collections.abc import Callable, Iterator, Sequence

    from flake8.options.manager import OptionManager

    from flake8_torchperf.cache.memory import Memory
    from flake8_torchperf.history.finding_record import FindingRecord
    from flake8_torchperf.options import Options
    from flake8_torchperf.suppression import Suppression


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
        self._noqa_line_for = noqa_line_for
        self._source = LintText(lines, filename, self._statement_at, tree)

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
        memory = self._memory_of_run if self.options().cache else None
        with tidied():
            found = linted(self._source, self.options(), self._is_reported, memory)
        for told in found:
            yield told.line, told.column, told.text, type(self)

    def _statement_at(self, line: int) -> str | None:
        """Return the text in which flake8 looks for the ``# noqa`` of a line."""
        text = self._noqa_line_for(line) if self._noqa_line_for is not None else None
        lines = self._source.lines
        return lines[line - 1] if text is None and 0 < line <= len(lines) else text

    def _is_reported(self, told: FindingRecord) -> bool:
        """True if flake8 is going to report a finding."""
        if TorchPerfPlugin._flake8 is None:
            return True
        if TorchPerfPlugin._suppression is None:
            from flake8_torchperf.suppression import Suppression

            TorchPerfPlugin._suppression = Suppression(TorchPerfPlugin._flake8)
        return reported_by(TorchPerfPlugin._suppression, self._source.filename)(told)

    def _memory_of_run(self) -> Memory:
        """Return the cache, opened once."""
        if TorchPerfPlugin._memory is None:
            from flake8_torchperf.cache.cached_findings import memory_of

            TorchPerfPlugin._memory = memory_of(self.options())
        return TorchPerfPlugin._memory


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
