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
from uuid import uuid4

from flake8_torchperf.told import without_style

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from flake8_torchperf.told import Told

VERSION = 1
MARK = "torchperf-baseline"
# A file that could not be analysed is no finding to get used to.
NEVER = "TPF900"
# As large a file is none that we have written: a million findings take less.
MAX_BYTES = 256 * 1024 * 1024

# Code, function and source text without what a formatter changes.
Key: TypeAlias = "tuple[str, str, str]"


class BaselineError(ValueError):
    """A baseline that can't be used. The text is one line: what, where, what to do."""


@dataclass(frozen=True, order=True)
class Entry:
    """Findings of one code with one source text in one function; ``count`` is how many."""

    function: str
    code: str
    source: str
    count: int

    @property
    def key(self) -> Key:
        """What findings are compared by."""
        return (self.code, self.function, without_style(self.source))


@dataclass(frozen=True)
class Baseline:
    """The findings that were there before.

    ``files`` maps paths as seen from the baseline's own ``folder``, with slashes, to entries.
    ``settings`` are the options that decided what was found.
    """

    folder: str
    files: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    settings: str = ""

    def name_of(self, filename: str) -> str:
        """A file as this baseline names it."""
        return relative(filename, self.folder)

    def allowed(self, filename: str) -> Counter[Key]:
        """How many findings of each kind the file had."""
        found: Counter[Key] = Counter()
        for entry in self.files.get(self.name_of(filename), ()):
            found[entry.key] += entry.count
        return found


def relative(filename: str, folder: str) -> str:
    """A path as seen from a folder, with slashes; in full where there is no way between them."""
    above, name = os.path.split(os.path.abspath(filename))
    path = os.path.join(os.path.realpath(above), name)
    try:
        return os.path.relpath(path, folder).replace(os.sep, "/")
    except ValueError:  # another drive
        return path.replace(os.sep, "/")


def key_of(told: Told) -> Key:
    """What a finding is compared by."""
    return (told.code, told.function, without_style(told.source))


def known_before(
    found: Sequence[Told], allowed: Counter[Key]
) -> tuple[frozenset[int], Counter[Key]]:
    """Which findings, by index, the baseline knows, and what of it no longer matches.

    Of findings that look alike, as many as before are known, from the top; those that a comment may
    silence last, since nobody sees them anyway.
    """
    left = Counter(allowed)
    known: set[int] = set()
    for index in sorted(range(len(found)), key=lambda index: found[index].quiet):
        key = key_of(found[index])
        if left[key] > 0:
            left[key] -= 1
            known.add(index)
    return frozenset(known), +left


def entries(found: Iterable[Told]) -> tuple[Entry, ...]:
    """The entries for the findings of one file."""
    counts: Counter[Key] = Counter()
    sources: dict[Key, str] = {}
    for told in found:
        key = key_of(told)
        if key[0] != NEVER:
            counts[key] += 1
            sources[key] = min(told.source, sources.get(key, told.source))
    return tuple(sorted(Entry(key[1], key[0], sources[key], n) for key, n in counts.items()))


@lru_cache(maxsize=4)
def read(path: Path) -> Baseline:
    """Read a baseline, once per process. Raises `BaselineError`."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BaselineError(f"{path} is too large to be a baseline; name another file")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BaselineError(
            f"there is no file {path}; write it with torchperf check --write-baseline"
        ) from None
    except OSError as error:
        raise BaselineError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BaselineError(f"{path} is no baseline: it is no UTF-8 text; {_ADVICE}") from None
    return parse(text, path)


_ADVICE = "restore it, or remove it and write it with torchperf check --write-baseline"


def parse(text: str, path: Path) -> Baseline:
    """The baseline in a text. Raises `BaselineError`."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}: {error.msg}"
        raise BaselineError(f"{path} is no baseline: {where}; {_ADVICE}") from None
    except (RecursionError, ValueError):
        raise BaselineError(f"{path} is no baseline: it cannot be parsed; {_ADVICE}") from None
    version = data.get(MARK) if isinstance(data, dict) else None
    if type(version) is not int or version < 1:
        raise BaselineError(f'{path} is no baseline: it has no "{MARK}" version; {_ADVICE}')
    if version > VERSION:
        raise BaselineError(
            f"{path} has version {version}, and this flake8-torchperf reads {VERSION}; upgrade it"
        )
    files, settings = data.get("files"), data.get("settings", "")
    if not isinstance(files, dict) or not isinstance(settings, str):
        raise BaselineError(f'{path} is no baseline: "files" is missing; {_ADVICE}')
    known = {name: _entries(name, listed, path) for name, listed in files.items()}
    return Baseline(os.path.realpath(path.parent), known, settings)


def _entries(name: str, listed: Any, path: Path) -> tuple[Entry, ...]:
    if isinstance(listed, list):
        made = [_entry(one) for one in listed]
        if None not in made:
            return tuple(one for one in made if one is not None)
    raise BaselineError(f"{path} is no baseline: the entries of {name!r} are wrong; {_ADVICE}")


def _entry(data: Any) -> Entry | None:
    match data:
        case {"function": str(function), "code": str(code), "source": str(source), "count": int(n)}:
            return Entry(function, code, source, n) if n > 0 else None
    return None


def as_text(baseline: Baseline) -> str:
    """The text of a baseline: sorted, one entry a line, so that branches merge."""
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
    """Write a baseline in one step: a run that ends half-way leaves the old one. Raises OSError."""
    half = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with open(half, "w", encoding="utf-8", newline="\n") as file:
            file.write(as_text(baseline))
            file.flush()
            os.fsync(file.fileno())
        os.replace(half, path)
    except OSError:
        half.unlink(missing_ok=True)
        raise
