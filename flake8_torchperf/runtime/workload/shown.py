"""Judges a finding whose line ran without a wait: it cannot wait, or it only did not wait.

A line may run without the operation that its finding is about: an option is off, a scaler is
disabled, a logging level is not reached. That refutes nothing. Knows nothing about torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flake8_torchperf.findings.measured import WAITING_COUNTS
from flake8_torchperf.judgement.site import JudgedSite
from flake8_torchperf.runtime.counting.evidence import Counts
from flake8_torchperf.runtime.workload.plan import SyncRow
from flake8_torchperf.runtime.workload.waits import is_on_host, would_wait
from flake8_torchperf.values.site import SiteKind

NO_CALL = "the line ran, and what may wait in it was not executed"
ON_HOST = "the tensors that it read were made on the host"

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
