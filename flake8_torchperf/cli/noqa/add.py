"""``check --add-noqa``: a ``# noqa`` in the line of each finding, instead of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.fixes.engine.noqa import with_noqa
from flake8_torchperf.fixes.engine.source_files import NotWrittenError, read_source, write
from flake8_torchperf.reserved import INTERNAL_ERROR, UNUSED_NOQA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flake8_torchperf.history.finding_record import FindingRecord

# A file that was not analysed, and a comment that is to be removed.
NEVER_SILENCED = (INTERNAL_ERROR, UNUSED_NOQA)


@dataclass(frozen=True)
class Added:
    """The outcome of adding comments: how many lines got one, in how many files.

    ``problems`` has a line for each place or file that got none.
    """

    lines: int
    files: int
    problems: tuple[str, ...]

    @property
    def words(self) -> str:
        """The result in one line."""
        lines = "1 line" if self.lines == 1 else f"{self.lines} lines"
        files = "1 file" if self.files == 1 else f"{self.files} files"
        return f"# noqa added to {lines} in {files}"


def add_noqa(found: Iterable[tuple[str, FindingRecord]], reason: str) -> Added:
    """Write a comment for each finding, or add its code to the line's; each file in one step."""
    wanted: dict[str, dict[int, list[str]]] = {}
    for name, one in found:
        if one.code not in NEVER_SILENCED:
            wanted.setdefault(name, {}).setdefault(one.line, []).append(one.code)
    lines = files = 0
    problems: list[str] = []
    for name, places in wanted.items():
        written, said = _in_file(name, places, reason)
        lines += written
        files += bool(written)
        problems += said
    return Added(lines, files, tuple(problems))


def _in_file(name: str, places: Mapping[int, Sequence[str]], reason: str) -> tuple[int, list[str]]:
    """Return how many lines of a file got a comment, and messages for the others."""
    if is_notebook(name):
        return 0, [f"{name}: no comments are written into notebooks"]
    try:
        source = read_source(name)
        text, written = with_noqa(source.text, places, reason)
        if written:
            write(source, text)
    except NotWrittenError as error:
        return 0, [f"{name}: no comment added: {error}"]
    left = sorted(set(places) - written)
    return len(written), [f"{name}:{line}: no comment can stand here" for line in left]
