"""Baselines: which findings were there before, by file, code, function and source text.

A baseline is data: JSON of a known version, read whole or not at all, never executed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.history.data_files import (
    DataFileError,
    FileKind,
    parse_document,
    read_text,
    relative,
    write_whole,
)
from flake8_torchperf.history.finding_record import without_style

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from flake8_torchperf.history.finding_record import FindingRecord

VERSION = 1
MARK = "torchperf-baseline"
# The code of files that could not be analysed, which a baseline never accepts.
NEVER = "TPF900"
# A larger file was not written by us: a million findings take less.
MAX_BYTES = 256 * 1024 * 1024

# Code, function and source text, without anything that a formatter changes.
Key: TypeAlias = "tuple[str, str, str]"


class BaselineError(DataFileError):
    """A baseline that can't be used. The text is one line: what, where, what to do."""


_MADE_BY = "torchperf check --write-baseline"
KIND = FileKind("baseline", MARK, VERSION, MAX_BYTES, _MADE_BY, BaselineError)


@dataclass(frozen=True, order=True)
class BaselineEntry:
    """Findings of one code with one source text in one function; ``count`` is how many."""

    function: str
    code: str
    source: str
    count: int

    @property
    def key(self) -> Key:
        """The key by which findings are compared."""
        return (self.code, self.function, without_style(self.source))


@dataclass(frozen=True)
class Baseline:
    """The findings that were there before.

    ``files`` maps paths relative to the baseline's own ``folder``, with slashes, to entries.
    ``settings`` are the options that the findings depended on.
    """

    folder: str
    files: Mapping[str, tuple[BaselineEntry, ...]] = field(default_factory=dict)
    settings: str = ""

    def name_of(self, filename: str) -> str:
        """Return a file as this baseline names it."""
        return relative(filename, self.folder)

    def allowed(self, filename: str) -> Counter[Key]:
        """Return the number of findings that the file had, by key."""
        found: Counter[Key] = Counter()
        for entry in self.files.get(self.name_of(filename), ()):
            found[entry.key] += entry.count
        return found


def key_of(told: FindingRecord) -> Key:
    """Return the key by which a finding is compared."""
    return (told.code, told.function, without_style(told.source))


def known_before(
    found: Sequence[FindingRecord], allowed: Counter[Key]
) -> tuple[frozenset[int], Counter[Key]]:
    """Return the indices of the findings that the baseline knows, and its unmatched entries.

    Of findings with the same key, the baseline knows as many as it lists, from the top of the file.
    Findings that a comment may silence come last, since they are not reported anyway.
    """
    left = Counter(allowed)
    known: set[int] = set()
    for index in sorted(range(len(found)), key=lambda index: found[index].quiet):
        key = key_of(found[index])
        if left[key] > 0:
            left[key] -= 1
            known.add(index)
    return frozenset(known), +left


def entries(found: Iterable[FindingRecord]) -> tuple[BaselineEntry, ...]:
    """Return the entries for the findings of one file."""
    counts: Counter[Key] = Counter()
    sources: dict[Key, str] = {}
    for told in found:
        key = key_of(told)
        if key[0] != NEVER:
            counts[key] += 1
            sources[key] = min(told.source, sources.get(key, told.source))
    return tuple(
        sorted(BaselineEntry(key[1], key[0], sources[key], n) for key, n in counts.items())
    )


@lru_cache(maxsize=4)
def read(path: Path) -> Baseline:
    """Read a baseline, once per process. Raises `BaselineError`."""
    return parse(read_text(path, KIND), path)


def parse(text: str, path: Path) -> Baseline:
    """Return the baseline in a text. Raises `BaselineError`."""
    data = parse_document(text, path, KIND)
    files, settings = data.get("files"), data.get("settings", "")
    if not isinstance(files, dict) or not isinstance(settings, str):
        raise KIND.wrong(path, '"files" is missing')
    known = {name: _entries(name, listed, path) for name, listed in files.items()}
    return Baseline(os.path.realpath(path.parent), known, settings)


def _entries(name: str, listed: Any, path: Path) -> tuple[BaselineEntry, ...]:
    if isinstance(listed, list):
        made = [_entry(one) for one in listed]
        if None not in made:
            return tuple(one for one in made if one is not None)
    raise KIND.wrong(path, f"the entries of {name!r} are wrong")


def _entry(data: Any) -> BaselineEntry | None:
    match data:
        case {"function": str(function), "code": str(code), "source": str(source), "count": int(n)}:
            return BaselineEntry(function, code, source, n) if n > 0 else None
    return None


def as_text(baseline: Baseline) -> str:
    """Return the text of a baseline: sorted, one entry a line, so that branches merge."""
    files = []
    for name in sorted(baseline.files):
        listed = [
            json.dumps(
                {
                    "function": entry.function,
                    "code": entry.code,
                    "source": entry.source,
                    "count": entry.count,
                }
            )
            for entry in sorted(baseline.files[name])
        ]
        if listed:
            files.append(f"  {json.dumps(name)}: [\n   " + ",\n   ".join(listed) + "\n  ]")
    inside = "\n" + ",\n".join(files) + "\n " if files else ""
    head = f' "{MARK}": {VERSION},\n "settings": {json.dumps(baseline.settings)},\n'
    return f'{{\n{head} "files": {{{inside}}}\n}}\n'


def write(path: Path, baseline: Baseline) -> None:
    """Write a baseline in one step. Raises OSError."""
    write_whole(path, as_text(baseline))
