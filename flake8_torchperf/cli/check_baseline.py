"""``torchperf check`` with a baseline: leaves old findings out, or writes down those of today."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.cache.entries import in_words
from flake8_torchperf.cli.check_files import UNREADABLE, selected
from flake8_torchperf.cli.check_results import Results, is_finding
from flake8_torchperf.cli.parser import fail
from flake8_torchperf.history.baseline import (
    MARK,
    NEVER,
    Baseline,
    BaselineEntry,
    BaselineError,
    entries,
    parse,
    read,
    write,
)
from flake8_torchperf.history.data_files import relative
from flake8_torchperf.pipeline import without_old
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Sequence

    from flake8_torchperf.history.baseline import Key
    from flake8_torchperf.history.finding_record import FindingRecord

# Entries that can be removed are named up to this many.
_NAMED = 10


class OldFindings:
    """Removes the findings that a baseline lists, file by file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._baseline = read(path)
        self._gone: list[str] = []

    def leave_out(self, name: str, records: list[FindingRecord]) -> list[FindingRecord]:
        """Return the records without old findings; note the entries that match nothing."""
        kept, left = without_old(records, name, self._path)
        if not any(map(unanalysed, records)):
            listed = self._baseline.files.get(self._baseline.name_of(name), ())
            self._gone += _removable(name, listed, left)
        return kept

    def notes(self, linted: Sequence[str]) -> list[str]:
        """Return a note that names the entries that match nothing any more, if there are any.

        ``linted`` are the paths of the command line.
        """
        gone = sorted([*self._gone, *_of_missing_files(linted, self._baseline)])
        if not gone or self._baseline.settings != settings():
            return []  # with other settings, other findings are to be expected
        rest = [f"and {len(gone) - _NAMED} more"] if len(gone) > _NAMED else []
        what = "1 entry matches" if len(gone) == 1 else f"{len(gone)} entries match"
        advice = "write it anew to remove what is over"
        named = ", ".join([*gone[:_NAMED], *rest])
        return [f"{self._path}: {what} nothing; {advice}: {named}"]


def unanalysed(told: FindingRecord) -> bool:
    """True if a record says that its file could not be analysed."""
    return told.code in (*UNREADABLE, NEVER)


def _removable(name: str, listed: Iterable[BaselineEntry], left: Counter[Key]) -> list[str]:
    return [
        f"{entry.code} `{entry.source}` in {name} {entry.function}"
        for entry in listed
        if left[entry.key] > 0
    ]


def _of_missing_files(linted: Sequence[str], baseline: Baseline) -> list[str]:
    """Return the files with entries that no longer exist, below the paths to be linted."""
    return [
        f"all of {name}"
        for name in baseline.files
        if _below_linted(linted, baseline.folder, name) and not _exists(baseline.folder, name)
    ]


def _exists(folder: str, name: str) -> bool:
    return os.path.lexists(os.path.join(folder, name))


def _below_linted(linted: Sequence[str], folder: str, name: str) -> bool:
    tops = [relative(path, folder) for path in linted or ["."]]
    return any(top == "." or name == top or name.startswith(f"{top}/") for top in tops)


def settings() -> str:
    """Return the options that change the findings."""
    ours = TorchPerfPlugin.options()
    told = f"scope={ours.scope.name.lower()} confidence={ours.confidence}"
    return told if ours.min_worth is None else f"{told} min-worth={ours.min_worth:g}"


def unusable(path: Path) -> str:
    """Return why no baseline can be written there, or "": other files are not overwritten."""
    if path.is_dir():
        return f"{path} is a folder; name a file"
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}"
    try:
        _written_before(path)
    except BaselineError as error:
        return str(error)
    except OSError as error:
        return in_words(error)
    return ""


def _written_before(path: Path) -> Baseline:
    """Return the baseline that exists at a path. Raises BaselineError for any other text."""
    empty = Baseline(os.path.realpath(path.parent))
    if not path.exists():
        return empty
    refuse_special(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BaselineError(f"{path} is no baseline, and is left as it is") from None
    if not text.strip():
        return empty
    if MARK not in text:
        raise BaselineError(f"{path} holds something else, and is left as it is")
    return parse(text, path)


def write_baseline(results: Results) -> str:
    """Write the findings and return a message. Raises SystemExit if they can't be written.

    Entries remain if their file was not linted now or could not be analysed, or if their code was
    not selected.
    """
    path = Path(results.options.write_baseline)
    by_file: dict[str, list[FindingRecord]] = {}
    for name, told in results.reported:
        if is_finding(told) and told.code != NEVER:
            by_file.setdefault(name, []).append(told)
    try:
        before = _written_before(path)
        now = {before.name_of(name): entries(told) for name, told in by_file.items()}
        write(path, Baseline(before.folder, _merged(results, before, now), settings()))
    except OSError as error:
        raise SystemExit(fail(f"check: --write-baseline: {in_words(error)}")) from error
    count = sum(map(len, by_file.values()))
    return f"{path}: {_number(count, 'finding')} in {_number(len(by_file), 'file')} written down"


def _merged(
    results: Results, before: Baseline, now: dict[str, tuple[BaselineEntry, ...]]
) -> dict[str, tuple[BaselineEntry, ...]]:
    linted = {before.name_of(one.name): one.records for one in results.results}
    codes = {entry.code for listed in before.files.values() for entry in listed}
    chosen = frozenset(selected(results.options, codes))
    merged = dict(now)
    for name, listed in before.files.items():
        records = linted.get(name)
        if records is None:
            gone = _below_linted(results.options.filenames, before.folder, name)
            kept = () if gone and not _exists(before.folder, name) else listed
        elif any(map(unanalysed, records)):
            kept = listed
        else:
            kept = tuple(entry for entry in listed if entry.code not in chosen)
        merged[name] = tuple(sorted({*merged.get(name, ()), *kept}))
    return merged


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
