"""Decides how often a statement made the host wait, for all parts of a report and for profiles.

Where CUDA reported its waits, these decide. Otherwise the calls do: each row of the witness either
would wait on a device or would not, wherever it is told. Knows nothing about torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flake8_torchperf.findings.measured import WAITING_COUNTS
from flake8_torchperf.runtime.counting.evidence import Counts
from flake8_torchperf.runtime.workload import device_reports
from flake8_torchperf.runtime.workload.plan import SyncRow

# Kinds that do not wait on a device, by category: checks of the CPU's kernels, and copies to a
# tensor on the host that only this machine has there.
_NO_WAITS = {"extra": ("internal", "copy-to-host")}
COPY_TO_DEVICE = "copy-to-device"
"""The kind of copy that does not wait if its memory is pinned, which no row shows."""
# The debug mode does not report these waits in all overloads.
_UNREPORTED = frozenset(name.removeprefix("aten::") for name in device_reports.UNREPORTED) | {
    "unique",
    "unique_consecutive",
}


def would_wait(row: SyncRow) -> bool:
    """True if a call would wait for a device, where no device reports it.

    A tensor of the host that the program made there itself is read without a wait on every machine.
    One that its caller could have put on a device is read as the device's.
    """
    if row.category == "host":
        return not row.firm
    return row.category in ("sync", "copy", "extra") and row.kind not in _NO_WAITS.get(
        row.category, ()
    )


def is_on_host(row: SyncRow) -> bool:
    """True if a call would wait, but for the tensors, which lie on the host on every machine."""
    return row.category == "host" and row.firm


def statement_waits(
    rows: Sequence[SyncRow], spent: Counts, *, heard: bool
) -> tuple[int, float | None]:
    """Return how often a statement waited, and for how long if the device reported it.

    ``heard`` says that the device's reports came through.
    """
    if heard:
        reported = device_reports.waits(spent)
        if reported or (
            (rows or _worked(spent)) and all(row.operation not in _UNREPORTED for row in rows)
        ):
            return reported, spent.waited
    made = sum(row.times for row in rows if would_wait(row) and row.kind != COPY_TO_DEVICE)
    return (made or _inside(rows, spent)) + spent.synchronisations, None


def _inside(rows: Iterable[SyncRow], spent: Counts) -> int:
    """Return the waits that only the counter sees: those of libraries inside a call."""
    on_host = sum(row.times for row in rows if is_on_host(row))
    return spent.host_reads + max(0, spent.dynamic_shapes - on_host)


def _worked(spent: Counts) -> bool:
    """True if a statement did something that might have waited.

    If it did not, the device's silence concerns this run alone: an option was off.
    """
    return any(getattr(spent, counter) for counter in WAITING_COUNTS)
