"""The data between parent and child, as JSON: the plan of a run, and its results."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from flake8_torchperf.runtime.counting.moments import Timeline, timeline_of

Times: TypeAlias = "tuple[tuple[int, int], ...]"
"""Lines, each with how often it began."""
KILLED = "killed"
"""The end of a process that left only what it had saved meanwhile."""
FORK_SERVER = "from multiprocessing.forkserver import main"
"""The beginning of the code with which multiprocessing starts a fork server."""
QUEUED = "queued"
"""The category of copies with `non_blocking=True`."""
NON_BLOCKING = "non-blocking"
"""The kind of a copy that was only queued, as far as the machine can show it."""
IN_ONE_PIECE = "small-"
"""The beginning of the kind of a copy that is staged, but so small that nothing waits for it."""


@dataclass(frozen=True)
class Plan:
    """One run. ``script`` is a path, or with ``is_module`` a module's name.

    ``arguments`` are the workload's own; ``owners`` are the values of `--owner`, ``defaults`` the
    folders that count where it is not given; ``results`` is the file to write. ``profile`` asks for
    the data of a profile: how often each line ran, and how long the host waited. ``contracts`` are
    the globs of functions that must not wait; None where they are not checked. With ``is_code``,
    ``script`` is the code itself, as after `python -c`. ``rank`` is the launcher's name for a
    worker, and ``interpreter`` the one that workers must be run by to be counted. ``trace`` asks
    for a timeline, ``stops`` for an exception at the first wait that no region allows. ``inputs``
    is the folder where inputs of functions are kept, "" if none are. ``warmup`` asks for steps,
    without the first so many; ``step`` is the value of `--step`, "" for what usually ends one.
    """

    script: str
    arguments: tuple[str, ...]
    is_module: bool
    owners: tuple[str, ...]
    defaults: tuple[str, ...]
    level: str
    results: str
    profile: bool = False
    contracts: tuple[str, ...] | None = None
    is_code: bool = False
    rank: int | None = None
    interpreter: str = ""
    trace: bool = False
    inputs: str = ""
    stops: bool = False
    step: str = ""
    warmup: int | None = None

    @property
    def is_fork_server(self) -> bool:
        """True if the process does no work, but is forked by multiprocessing for those that do."""
        return self.is_code and self.script.startswith(FORK_SERVER)

    def save(self, path: Path) -> None:
        """Write the plan for the child, completely or not at all."""
        _write(path, asdict(self))


def this_interpreter() -> str:
    """Return a text that identifies an interpreter and its installed packages."""
    return f"{sys.prefix} {sys.hexversion:x}"


_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


class UnreadableResultsError(Exception):
    """The file in the place of a plan or of results was not written by `save`."""


def load_plan(path: Path) -> Plan:
    """Read a plan that `Plan.save` wrote. Raises UnreadableResultsError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        named = ("arguments", "owners", "defaults")
        sequences: dict[str, Any] = {name: tuple(data[name]) for name in named}
        if data["contracts"] is not None:
            sequences["contracts"] = tuple(data["contracts"])
        return Plan(**{**data, **sequences})
    except _UNREADABLE as error:
        raise UnreadableResultsError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class SyncRow:
    """One kind of synchronisation in one line (or one that would be on an accelerator).

    ``category`` is "sync", "host" (the tensor was made on the host), "extra" (inside a kernel),
    "iter", "fill" (a number assigned through a mask), "copy" (to the device), "queued" (with
    `non_blocking=True`) or "device". The device itself reported "device"; all others are inferred
    from the call. ``kind`` is for instance
    "item", "mask-index" or "assign-from-host", ``operation`` the function called. ``contract``
    names the function that must not wait and that led here, if contracts are checked. ``firm`` says
    that no caller decides the category "host": the code gave no device, or named the host.
    ``allowed`` is the reason of the region of `allow_sync` around the call, "" if there is none.
    """

    path: str
    line: int
    category: str
    kind: str
    operation: str
    times: int
    numel: int
    contract: str = ""
    firm: bool = False
    allowed: str = ""


Place: TypeAlias = "tuple[str, int, str]"
"""A file, a line and the qualified name of the function."""


@dataclass(frozen=True)
class Led:
    """One way to waits: ``frames`` of the user's, the innermost first, and how often.

    ``source`` is the category of a `SyncRow`, or the counter that saw a wait; ``kind`` and ``firm``
    are as there. ``library`` is the line below the user's that waited, None if there is none.
    """

    source: str
    kind: str
    firm: bool
    library: Place | None
    frames: tuple[Place, ...]
    times: int


def _led(data: Mapping[str, Any]) -> Led:
    library: Any = data["library"] and tuple(data["library"])
    frames: Any = tuple(map(tuple, data["frames"]))
    return Led(**{**data, "library": library, "frames": frames})


@dataclass(frozen=True)
class Stepped:
    """The steps of a process: ``seen`` of them, of which the first ``warmup`` are left out.

    ``marker`` is what ended them, `optimizer.step` for instance, of ``optimizers`` that step once
    each. ``seconds``, ``totals``, ``lines`` and ``syncs`` are those of the steps after the warm-up,
    as in `Observed`.
    """

    marker: str
    optimizers: tuple[str, ...]
    warmup: int
    seen: int
    seconds: float = 0.0
    totals: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[Mapping[str, Any], ...] = ()
    syncs: tuple[SyncRow, ...] = ()

    @property
    def counted(self) -> int:
        """The number of steps after the warm-up."""
        return max(0, self.seen - self.warmup)


def _stepped(data: Mapping[str, Any] | None) -> Stepped | None:
    if data is None:
        return None
    tuples: dict[str, Any] = {name: tuple(data[name]) for name in ("optimizers", "lines")}
    return Stepped(**{**data, **tuples, "syncs": tuple(SyncRow(**row) for row in data["syncs"])})


@dataclass(frozen=True)
class Observed:
    """The results of a child. ``lines`` are `LineEvidence.to_dict()`, ``executed`` lines by file.

    ``times`` are `ExecutedLines.times`, if a profile was requested. ``rank`` is the process's
    place in a distributed run, ``data_worker`` its place among the workers of a DataLoader.
    ``timeline`` says when things happened, if that was requested; ``steps`` likewise. ``led`` says
    which calls led to the waits. ``allowed`` are `AllowedEvidence.to_dict()`: what regions allowed,
    which is in no line and no total.
    """

    torch: str
    device: str
    level: str
    seconds: float
    totals: Mapping[str, Any]
    lines: tuple[Mapping[str, Any], ...]
    executed: Mapping[str, frozenset[int]]
    syncs: tuple[SyncRow, ...]
    metrics: str
    ended: str
    notes: tuple[str, ...] = field(default=())
    times: Mapping[str, tuple[Times, ...]] = field(default_factory=dict)
    rank: int | None = None
    data_worker: int | None = None
    timeline: Timeline | None = None
    allowed: tuple[Mapping[str, Any], ...] = ()
    steps: Stepped | None = None
    led: tuple[Led, ...] = ()

    @property
    def calls(self) -> tuple[SyncRow, ...]:
        """The calls that wait, or would; copies that are only queued are no waits.

        Those in regions that allow waits are left out, here and in `queued`.
        """
        return tuple(row for row in self.syncs if row.category != QUEUED and not row.allowed)

    @property
    def queued(self) -> tuple[SyncRow, ...]:
        """The copies with `non_blocking=True`."""
        return tuple(row for row in self.syncs if row.category == QUEUED and not row.allowed)

    def save(self, path: Path) -> None:
        """Write the results for the parent, completely or not at all."""
        data = asdict(replace(self, timeline=None))
        data["timeline"] = self.timeline and self.timeline.to_data()
        data["executed"] = {name: sorted(lines) for name, lines in self.executed.items()}
        _write(path, data)


def _write(path: Path, data: Mapping[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data), encoding="utf-8")
    part.replace(path)


def load_observed(path: Path) -> Observed:
    """Read results that `Observed.save` wrote. Raises UnreadableResultsError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        data["lines"] = tuple(data["lines"])
        data["executed"] = {name: frozenset(lines) for name, lines in data["executed"].items()}
        data["syncs"] = tuple(SyncRow(**row) for row in data["syncs"])
        data["notes"] = tuple(data["notes"])
        data["allowed"] = tuple(data["allowed"])
        data["timeline"] = data["timeline"] and timeline_of(data["timeline"])
        data["steps"] = _stepped(data["steps"])
        data["led"] = tuple(map(_led, data["led"]))
        data["times"] = {
            name: tuple(tuple((line, count) for line, count in piece) for piece in pieces)
            for name, pieces in data["times"].items()
        }
        return Observed(**data)
    except _UNREADABLE as error:
        raise UnreadableResultsError(f"{type(error).__name__}: {error}") from error
