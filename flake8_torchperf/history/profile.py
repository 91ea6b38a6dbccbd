"""Profiles: the measurements of recorded runs, by file, function and the statement's text.

A profile is data: JSON of a known version, read whole or not at all, never executed. This module
knows nothing about torch.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from flake8_torchperf.digest import digest
from flake8_torchperf.history.data_files import (
    DataFileError,
    FileKind,
    parse_document,
    read_text,
    relative,
    write_whole,
)
from flake8_torchperf.history.finding_record import MODULE, normal_form, without_style
from flake8_torchperf.judgement.heat import Measured
from flake8_torchperf.syntax.statement_lines import Statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from flake8_torchperf.syntax.statement_lines import Span, Statement

VERSION = 1
MARK = "torchperf-profile"
# A statement takes some two hundred bytes.
MAX_BYTES = 64 * 1024 * 1024
# The number of characters of a statement's text that its entry shows.
SHOWN = 80

# The function, the digest of the text, and the number of equal statements before it there.
Key: TypeAlias = "tuple[str, str, int]"


class ProfileError(DataFileError):
    """A profile that can't be used. The text is one line: what, where, what to do."""


KIND = FileKind("profile", MARK, VERSION, MAX_BYTES, "torchperf run --save-profile", ProfileError)


@dataclass(frozen=True)
class ProfileEntry:
    """One statement, summed over the ``runs`` processes in which it ran.

    ``line`` and the beginning of the source, ``text``, are only for display. The statement ran
    ``times`` times and waited ``waits`` times. ``seconds`` is how long the host waited, None if the
    waits are inferred because no device measured them; ``operations`` is the number of operations
    that it queued, None if they were not counted.
    """

    line: int
    function: str
    digest: str
    nth: int
    text: str
    runs: int
    times: int
    waits: int
    seconds: float | None = None
    operations: int | None = None

    @property
    def key(self) -> Key:
        """The key by which statements are recognised."""
        return (self.function, self.digest, self.nth)

    @property
    def measured(self) -> Measured:
        """The counts and times that the linter needs."""
        return Measured(self.times, self.waits, self.runs, self.seconds)


STEP_COUNTS = ("waits", "host_reads", "transfers", "graph_breaks")
"""The events that a profile counts in steps."""


@dataclass(frozen=True)
class StepCounts:
    """The ``steps`` after the warm-up in all runs that counted any, and what they did in all."""

    steps: int
    counts: Mapping[str, int]

    def each(self, name: str) -> float:
        """Return how often something of `STEP_COUNTS` happened in a step."""
        return self.counts[name] / self.steps


@dataclass(frozen=True)
class Profile:
    """The statements that ran, and how often they waited, in ``runs`` processes.

    ``files`` maps paths, as seen from the folder in which the program was started, with slashes, to
    entries. ``devices`` names where the programs ran. ``folder`` is where the profile itself lies.
    ``steps`` holds what the steps cost, None if none were counted.
    """

    files: Mapping[str, tuple[ProfileEntry, ...]] = field(default_factory=dict)
    runs: int = 1
    devices: tuple[str, ...] = ()
    folder: str = ""
    steps: StepCounts | None = None

    def entries_of(self, filename: str) -> tuple[ProfileEntry, ...]:
        """Return the entries of a file, looked for from the profile's folder, then the current one.

        A program is started at the top of its project, where its profile mostly lies too.
        """
        for folder in (self.folder, os.getcwd()):
            found = self.files.get(relative(filename, os.path.realpath(folder)))
            if found is not None:
                return found
        return ()


def keyed(statements: Statements) -> Iterator[tuple[Statement, Key]]:
    """Yield the statements of a module with the keys by which they are recognised."""
    seen: Counter[tuple[str, str]] = Counter()
    for one in statements:
        function = one.place or MODULE
        text = digest(without_style(normal_form(one.node)).encode("utf-8", "surrogatepass"))[:16]
        yield one, (function, text, seen[function, text])
        seen[function, text] += 1


class Profiled:
    """The measurements of one module, by line; ``stale`` counts entries that match no statement."""

    def __init__(self, entries: Iterable[ProfileEntry], statements: Statements) -> None:
        known = {entry.key: entry for entry in entries}
        self._statements = statements
        self._by_span: dict[Span, Measured] = {}
        for statement, key in keyed(statements):
            entry = known.pop(key, None)
            if entry is not None:
                self._by_span[statement.span] = entry.measured
        self.stale = len(known)

    def at(self, line: int) -> Measured | None:
        """Return the measurements of the statement that holds a line, if there are any."""
        return self._by_span.get(self.span(line))

    def span(self, line: int) -> Span:
        """Return the lines of the statement that holds a line."""
        return self._statements.span(line)

    def waited(self) -> list[tuple[Span, Measured]]:
        """Return the statements that waited, in the order of the text."""
        return [(span, told) for span, told in sorted(self._by_span.items()) if told.waits]


def merge(profiles: Iterable[Profile]) -> Profile:
    """Return the sum of several runs, or of the processes of one; their order does not matter.

    For each statement, a device's measurement outweighs inference without a device.
    """
    files: dict[str, dict[Key, ProfileEntry]] = {}
    devices: set[str] = set()
    runs = 0
    steps: list[StepCounts] = []
    for profile in profiles:
        runs += profile.runs
        steps += [] if profile.steps is None else [profile.steps]
        devices.update(profile.devices)
        for name, entries in profile.files.items():
            known = files.setdefault(name, {})
            for entry in entries:
                held = known.get(entry.key)
                known[entry.key] = entry if held is None else _sum(held, entry)
    merged = {name: tuple(sorted(known.values(), key=_order)) for name, known in files.items()}
    return Profile(merged, runs, tuple(sorted(devices)), steps=_all_steps(steps))


def _all_steps(counted: Sequence[StepCounts]) -> StepCounts | None:
    if not counted:
        return None
    counts = {name: sum(one.counts[name] for one in counted) for name in STEP_COUNTS}
    return StepCounts(sum(one.steps for one in counted), counts)


def _sum(one: ProfileEntry, other: ProfileEntry) -> ProfileEntry:
    if (one.seconds is None) != (other.seconds is None):
        return other if one.seconds is None else one
    first = min(one, other, key=lambda entry: (entry.line, entry.text))
    return replace(
        first,
        runs=one.runs + other.runs,
        times=one.times + other.times,
        waits=one.waits + other.waits,
        seconds=_both(one.seconds, other.seconds),
        operations=_both(one.operations, other.operations),
    )


def _both(one: Any, other: Any) -> Any:
    """Return the sum, where both are known."""
    return None if one is None or other is None else one + other


@lru_cache(maxsize=4)
def read(path: Path) -> Profile:
    """Read a profile, once per process. Raises `ProfileError`."""
    return parse(read_text(path, KIND), path)


def fingerprint(path: Path) -> str:
    """Return the digest of a profile, and of the folders from which `entries_of` looks."""
    return digest("\0".join((read_text(path, KIND), str(path.parent), os.getcwd())).encode())


def parse(text: str, path: Path) -> Profile:
    """Return the profile in a text. Raises `ProfileError`."""
    data = parse_document(text, path, KIND)
    files, runs, devices = data.get("files"), data.get("runs"), data.get("devices", [])
    if not isinstance(files, dict):
        raise KIND.wrong(path, '"files" is missing')
    if type(runs) is not int or runs < 1:
        raise KIND.wrong(path, '"runs" is no number of runs')
    if not isinstance(devices, list) or not all(isinstance(one, str) for one in devices):
        raise KIND.wrong(path, '"devices" is no list of names')
    known = {name: _entries(name, listed, path) for name, listed in files.items()}
    steps = _steps(data.get("steps"), path)
    return Profile(known, runs, tuple(devices), os.path.realpath(path.parent), steps)


def _steps(data: Any, path: Path) -> StepCounts | None:
    if data is None:
        return None
    names = ("steps", *STEP_COUNTS)
    counts = [data.get(name) for name in names] if isinstance(data, dict) else []
    if not counts or not counts[0] or not all(type(one) is int and one >= 0 for one in counts):
        raise KIND.wrong(path, '"steps" holds no counts')
    return StepCounts(data["steps"], {name: data[name] for name in STEP_COUNTS})


def _entries(name: str, listed: Any, path: Path) -> tuple[ProfileEntry, ...]:
    made = [_entry(one) for one in listed] if isinstance(listed, list) else [None]
    known = tuple(one for one in made if one is not None)
    if len(known) != len(made):
        raise KIND.wrong(path, f"the entries of {name!r} are wrong")
    return known


def _entry(data: Any) -> ProfileEntry | None:
    if not isinstance(data, dict):
        return None
    texts = [data.get(name) for name in ("function", "digest", "text")]
    numbers = [data.get(name) for name in ("line", "nth", "runs", "times", "waits")]
    seconds, operations = data.get("seconds"), data.get("operations")
    if not all(isinstance(one, str) for one in texts):
        return None
    if not all(type(one) is int and one >= 0 for one in numbers) or not data["runs"]:
        return None
    if seconds is not None and not (type(seconds) in (int, float) and 0 <= seconds < float("inf")):
        return None
    if operations is not None and not (type(operations) is int and operations >= 0):
        return None
    return ProfileEntry(
        line=data["line"],
        function=data["function"],
        digest=data["digest"],
        nth=data["nth"],
        text=data["text"],
        runs=data["runs"],
        times=data["times"],
        waits=data["waits"],
        seconds=None if seconds is None else float(seconds),
        operations=operations,
    )


def as_text(profile: Profile) -> str:
    """Return the text of a profile: sorted, one statement a line."""
    files = []
    for name in sorted(profile.files):
        listed = [json.dumps(_as_data(entry)) for entry in sorted(profile.files[name], key=_order)]
        if listed:
            files.append(f"  {json.dumps(name)}: [\n   " + ",\n   ".join(listed) + "\n  ]")
    inside = "\n" + ",\n".join(files) + "\n " if files else ""
    head = f' "{MARK}": {VERSION},\n "runs": {profile.runs},\n'
    head += f' "devices": {json.dumps(sorted(profile.devices))},\n'
    if profile.steps is not None:
        counted = {"steps": profile.steps.steps, **profile.steps.counts}
        head += f' "steps": {json.dumps(counted)},\n'
    return f'{{\n{head} "files": {{{inside}}}\n}}\n'


def _order(entry: ProfileEntry) -> tuple[int, Key]:
    return entry.line, entry.key


def _as_data(entry: ProfileEntry) -> dict[str, Any]:
    data: dict[str, Any] = {
        "line": entry.line,
        "function": entry.function,
        "digest": entry.digest,
        "nth": entry.nth,
        "text": entry.text,
        "runs": entry.runs,
        "times": entry.times,
        "waits": entry.waits,
    }
    if entry.seconds is not None:
        data["seconds"] = round(entry.seconds, 9)
    if entry.operations is not None:
        data["operations"] = entry.operations
    return data


def write(path: Path, profile: Profile) -> None:
    """Write a profile in one step. Raises OSError."""
    write_whole(path, as_text(profile))
