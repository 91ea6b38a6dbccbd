"""Decides how often a statement made the host wait, for all parts of a report and for profiles.

Where CUDA reported its waits, these decide. Otherwise the calls do: each row of the witness either
would wait on a device or would not, wherever it is told. A line may also run without the operation
that its finding is about: an option is off, a scaler is disabled, a logging level is not reached.
That refutes nothing. Knows nothing about torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flake8_torchperf.findings.measured import WAITING_COUNTS
from flake8_torchperf.judgement.judged_site import JudgedSite
from flake8_torchperf.runtime.counting.counts import Counts
from flake8_torchperf.runtime.workload import device_reports
from flake8_torchperf.runtime.workload.exchange import SyncRow
from flake8_torchperf.values.site import SiteKind

# Kinds that do not wait on a device, by category: checks of the CPU's kernels, and copies to a
# tensor on the host that only this machine has there.
_NO_WAITS = {"extra": ("internal", "copy-to-host")}
HOST_INDEX = "host-index"
"""The kind of copy that an index of the host makes."""
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


NO_CALL = "the line ran, and what may wait in it was not executed"
ON_HOST = "the tensors that it read were made on the host"
NO_COPY = "no index was copied to the device"

_TESTS = frozenset(
    {"if", "elif", "while", "ifexp", "and", "or", "not", "filter", "match", "if-raise", "if-break"}
)
# The witness's names for operations that the linter names differently. For an operation in no
# table, every call in its statement that may wait counts as the operation.
_NAMES: Mapping[str, frozenset[str]] = {
    **{name: frozenset({"bool"}) for name in (*_TESTS, "assert", "bool", "__bool__")},
    **{
        name: frozenset({name, f"__{name}__"})
        for name in ("item", "int", "float", "complex", "index", "tolist", "numpy", "cpu")
    },
}
# Calls of library functions, inside which only counters see the operations.
_CALLS = frozenset({SiteKind.CALL, SiteKind.TORCH_CALL, SiteKind.UNSEEN_CALL})
_MASKED = frozenset({"index", "index_put", "index_put_"})


def was_executed(
    site: JudgedSite,
    counter: str,
    spent: Counts,
    rows: Iterable[SyncRow],
    dispatched: Iterable[str],
) -> bool:
    """True if the operation of a site was seen to run in its statement.

    ``rows`` are the calls seen there, ``dispatched`` the operations counted there, which the level
    "reads" does not count. For evidence that is not a wait, any operation is enough.
    """
    if getattr(spent, counter, 0):
        return True
    names = {name.removeprefix("aten::") for name in dispatched}
    if counter not in WAITING_COUNTS:
        return bool(names or spent.dispatches)
    if site.kind not in _CALLS:
        own = _NAMES.get(site.operation)
        if any(own is None or not own.isdisjoint((row.kind, row.operation)) for row in rows):
            return True
    if site.kind in (SiteKind.MASK_INDEX, SiteKind.LIST_INDEX, SiteKind.NUMBER_ASSIGNED):
        return not names.isdisjoint(_MASKED)
    return site.operation in names


def only_on_host(counter: str, count: int, rows: Iterable[SyncRow]) -> bool:
    """True if a statement's waits would all be reads of tensors that are the host's everywhere.

    Such reads are not counted, but the operations whose results have sizes that depend on data are.
    """
    if counter not in ("host_reads", "dynamic_shapes", "transfers"):
        return False
    rows = tuple(rows)
    on_host = sum(row.times for row in rows if is_on_host(row))
    return on_host >= max(1, count) and not any(would_wait(row) for row in rows)
