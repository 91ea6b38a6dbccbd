"""The counts as frozen values: per source line, per operation and in total.

Knows nothing of torch: evidence crosses process boundaries as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

ELSEWHERE = "<elsewhere>"
"""The path of work under which no frame of the user's stood, for instance an import's."""


@dataclass(frozen=True)
class Counts:
    """The counters of a line or of everything: events, sizes in bytes, times in seconds.

    `seconds` is time spent inside operations on the host. `host_reads` are events in which Python
    took a value out of a tensor that lies on a device, or would lie there
    (`DispatchCounter(host_as_device=...)`); `transfers` are copies between host and device.
    `dynamic_shapes` are operations whose output's shape depends on data (`torch.Tag`), `iterations`
    are loops over a tensor, `graph_breaks` what `torch._dynamo` counted.
    `synchronisations` are explicit calls (`torch.cuda.synchronize`); `device_syncs` are the waits
    that CUDA itself reported, and stay 0 without CUDA. `factories` is the part of `allocations`
    made by operations that take no tensor or only its shape (`zeros`, `empty_like`, `new_ones`).
    `copies_to_device` is the part of `transfers` that goes there. `early_reads` are operations on a
    copy to the host that had not arrived yet; only the level "full" with CUDA can see them.
    `waited` is how long the host waited, in seconds, if `DispatchCounter.time_waits` was called.
    """

    dispatches: int = 0
    host_reads: int = 0
    transfers: int = 0
    dynamic_shapes: int = 0
    allocations: int = 0
    factories: int = 0
    iterations: int = 0
    synchronisations: int = 0
    device_syncs: int = 0
    graph_breaks: int = 0
    copies_to_device: int = 0
    early_reads: int = 0
    bytes_to_host: int = 0
    bytes_to_device: int = 0
    seconds: float = 0.0
    waited: float = 0.0

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in _COUNTERS})

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values, for JSON."""
        return asdict(self)


_COUNTERS = tuple(one.name for one in fields(Counts))

# Counters whose plural and singular names in messages differ from the field's name.
_PLURAL = {"copies_to_device": "copies to the device"}
_SINGULAR = {
    "dispatches": "dispatch",
    "factories": "factory",
    "copies_to_device": "copy to the device",
}


def in_words(counter: str) -> str:
    """Return the name for several events of a counter: "host reads"."""
    return _PLURAL.get(counter) or counter.replace("_", " ")


REPORTED_WAITS = ("device_syncs", "synchronisations")
"""The counters of waits where CUDA reports them; it reports no explicit synchronisation."""
INFERRED_WAITS = ("host_reads", "dynamic_shapes", "synchronisations")
"""The counters of what is inferred to wait from the calls. `cpu()` is a host read."""


def counted(count: int, counter: str) -> str:
    """Return a number of events in words: "1 host read", "3,000 host reads"."""
    if count == 1:
        return f"1 {_SINGULAR.get(counter) or in_words(counter).removesuffix('s')}"
    return f"{count:,} {in_words(counter)}"


def mean_in_words(each: float, counter: str, *, digits: int = 3) -> str:
    """Return a mean in words, without digits that say nothing: "1 wait", "0.25 transfers"."""
    if each == round(each):
        return counted(round(each), counter)
    if each >= 10**digits:
        return f"{each:,.0f} {in_words(counter)}"
    return f"{each:,.{digits}g} {in_words(counter)}"


@dataclass(frozen=True)
class LineEvidence:
    """The counts of one source line.

    `ops` maps an operation's name to its dispatches; `events` maps a counter's name to what raised
    it and how often: `{"host_reads": {"aten::_local_scalar_dense": 3, "tolist": 1}}`.
    """

    path: str
    line: int
    function: str
    counts: Counts
    ops: Mapping[str, int] = field(default_factory=dict)
    events: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values, for JSON."""
        return {
            "path": self.path,
            "line": self.line,
            "function": self.function,
            "counts": self.counts.to_dict(),
            "ops": dict(self.ops),
            "events": {counter: dict(causes) for counter, causes in self.events.items()},
        }


@dataclass(frozen=True)
class AllowedEvidence:
    """The waits and transfers of one source line in regions that allow them for one reason."""

    path: str
    line: int
    function: str
    reason: str
    counts: Counts

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class OpEvidence:
    """The counts of one operation. `samples` holds the last durations, in nanoseconds."""

    name: str
    dispatches: int
    seconds: float
    samples: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values, for JSON."""
        return {"name": self.name, "dispatches": self.dispatches, "seconds": self.seconds}


@dataclass(frozen=True)
class Observation:
    """Everything that one counter saw. `seconds` is how long it was open.

    `allowed` are the events in regions of `allow_sync`, which no line and no total holds.
    """

    level: str
    seconds: float
    lines: tuple[LineEvidence, ...]
    ops: tuple[OpEvidence, ...]
    totals: Counts
    allowed: tuple[AllowedEvidence, ...] = ()

    def at(self, path: str | os.PathLike[str], line: int) -> LineEvidence | None:
        """Return the evidence of a line, or None where it spent nothing."""
        wanted = os.path.realpath(path)
        for one in self.lines:
            if one.line == line and os.path.realpath(one.path) == wanted:
                return one
        return None

    def between(self, path: str | os.PathLike[str], first: int, last: int) -> Counts:
        """Return the sum over a statement's or a function's lines, both ends included."""
        wanted = os.path.realpath(path)
        return total(
            one.counts
            for one in self.lines
            if first <= one.line <= last and os.path.realpath(one.path) == wanted
        )

    def op(self, name: str) -> int:
        """Return how often an operation (`aten::isinf`) was dispatched."""
        return sum(one.dispatches for one in self.ops if one.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values, for JSON."""
        return {
            "level": self.level,
            "seconds": self.seconds,
            "totals": self.totals.to_dict(),
            "allowed": [one.to_dict() for one in self.allowed],
            "lines": [one.to_dict() for one in self.lines],
            "ops": [one.to_dict() for one in self.ops],
        }


def total(counts: Iterable[Counts]) -> Counts:
    """Return the sum of counts; zero if there are none."""
    summed = Counts()
    for one in counts:
        summed = summed + one
    return summed


def human_time(seconds: float) -> str:
    """Return a duration with three digits and an SI unit: `1.03 ms`, `12.5 s`, `4,200 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        number = seconds / size
        if float(f"{number:.3g}") >= 1:
            return f"{number:,.0f} {unit}" if number >= 99.95 else f"{number:.3g} {unit}"
    return "0 s"
