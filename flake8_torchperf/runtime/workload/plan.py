"""What the child is to run and what it hands back: plain data that crosses as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Plan:
    """One run. ``script`` is a path, or with ``is_module`` a module's name.

    ``arguments`` are the workload's own; ``owners`` is what `--owner` named, ``defaults`` the
    folders that count where nothing is named; ``results`` is the file to write.
    """

    script: str
    arguments: tuple[str, ...]
    is_module: bool
    owners: tuple[str, ...]
    defaults: tuple[str, ...]
    level: str
    results: str

    def save(self, path: Path) -> None:
        """Write it for the child."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


def load_plan(path: Path) -> Plan:
    """Read what `Plan.save` wrote."""
    data = json.loads(path.read_text(encoding="utf-8"))
    sequences = {name: tuple(data[name]) for name in ("arguments", "owners", "defaults")}
    return Plan(**{**data, **sequences})


@dataclass(frozen=True)
class SyncRow:
    """One way in which one line synchronised (or would on an accelerator).

    ``category`` is "sync", "host" (the tensor was made on the host), "extra" (inside a kernel),
    "iter", "fill" (a number assigned through a mask), "copy" (to the device) or "device": the
    device itself reported it, all others are inferred from the call. ``kind`` is for instance
    "item", "mask-index" or "assign-from-host", ``operation`` the function called.
    """

    path: str
    line: int
    category: str
    kind: str
    operation: str
    times: int
    numel: int


@dataclass(frozen=True)
class Observed:
    """What the child saw. ``lines`` are `LineEvidence.to_dict()`, ``executed`` lines by file."""

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

    def save(self, path: Path) -> None:
        """Write it for the parent, whole or not at all."""
        data = asdict(self)
        data["executed"] = {name: sorted(lines) for name, lines in self.executed.items()}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(data), encoding="utf-8")
        part.replace(path)


class UnreadableResultsError(Exception):
    """What lies where the results should be was not written by `Observed.save`."""


def load_observed(path: Path) -> Observed:
    """Read what `Observed.save` wrote. Raises UnreadableResultsError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        data["lines"] = tuple(data["lines"])
        data["executed"] = {name: frozenset(lines) for name, lines in data["executed"].items()}
        data["syncs"] = tuple(SyncRow(**row) for row in data["syncs"])
        data["notes"] = tuple(data["notes"])
        return Observed(**data)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableResultsError(f"{type(error).__name__}: {error}") from error
