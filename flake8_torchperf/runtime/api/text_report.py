"""metrics_report: the counts as text, in the format of torch_xla and lazy tensors."""

from __future__ import annotations

from collections.abc import Sequence

from flake8_torchperf.runtime.counting.counter import DispatchCounter, latest
from flake8_torchperf.runtime.counting.counts import Counts, Observation, OpEvidence, human_time

PERCENTILES = (1, 5, 10, 20, 50, 80, 90, 95, 99)


def metrics_report(source: DispatchCounter | Observation | None = None) -> str:
    """Return the report of a counter or of its evidence; by default of the counter opened last.

    It has one `Metric` of times and one `Counter` for each operation, most dispatched first, then
    the totals that are not zero. A time is the wall-clock time of the call on the host: on an
    accelerator, the time to queue the operation. `Rate` is dispatches for each second that the
    counter was open; percentiles are over the last 1024 dispatches of an operation. The layout is
    that of torch_xla's `metrics_report` (torch_xla/csrc/runtime/metrics.cc, `CreateMetricReport`);
    times are in SI units. Raises ValueError where nothing has been counted yet.
    """
    evidence = _evidence(source)
    parts = [_metric(op, evidence.seconds) for op in evidence.ops]
    parts += [_counter(op.name, op.dispatches) for op in evidence.ops]
    parts += [_counter(name, value) for name, value in _totals(evidence.totals)]
    return "\n".join(parts) + "\n" if parts else "Nothing was counted.\n"


def _evidence(source: DispatchCounter | Observation | None) -> Observation:
    if isinstance(source, Observation):
        return source
    counter = latest() if source is None else source
    if counter is None:
        raise ValueError("nothing has been counted yet: open a DispatchCounter first")
    return counter.evidence


def _metric(op: OpEvidence, seconds: float) -> str:
    ordered = sorted(op.samples)
    shown = "; ".join(f"{one}%={human_time(percentile(ordered, one) / 1e9)}" for one in PERCENTILES)
    rate = op.dispatches / seconds if seconds > 0 else 0.0
    return "\n".join(
        (
            f"Metric: {op.name}",
            f"  TotalSamples: {op.dispatches}",
            f"  Accumulator: {human_time(op.seconds)}",
            f"  Rate: {rate:.6g} / s",
            f"  Percentiles: {shown}",
        )
    )


def _counter(name: str, value: int) -> str:
    return f"Counter: {name}\n  Value: {value}"


def _totals(counts: Counts) -> list[tuple[str, int]]:
    whole = {name: value for name, value in counts.to_dict().items() if isinstance(value, int)}
    return [(f"torchperf::{name}", value) for name, value in whole.items() if value]


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the sample at this share of the ordered samples (nearest rank); 0 for none."""
    if not ordered:
        return 0
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
