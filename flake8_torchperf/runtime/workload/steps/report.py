"""Tells of the steps of a run, as data for its report. Knows nothing about torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flake8_torchperf.history.profile import STEP_COUNTS
from flake8_torchperf.runtime.workload import device_reports
from flake8_torchperf.runtime.workload.exchange import Observed, Stepped
from flake8_torchperf.runtime.workload.steps.step_names import OPTIMIZER, PROFILER


def as_data(observed: Observed, statements: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the ``steps`` of a report, given its statements; None if none were asked for.

    ``waited`` is in seconds, None where no device measured it. ``per_step`` is None without steps.
    """
    steps = observed.steps
    if steps is None:
        return None
    counted = steps.counted
    waits = sum(one["counted"]["waits"] for one in statements if counted)
    sums = {**steps.totals, "waits": waits}
    heard = device_reports.was_heard(observed)
    return {
        "marker": steps.marker,
        "optimizers": list(steps.optimizers),
        "warmup": steps.warmup,
        "seen": steps.seen,
        "counted": counted,
        "per_step": {name: sums[name] / counted for name in STEP_COUNTS} if counted else None,
        "seconds": steps.seconds if counted else None,
        "waited": steps.totals["waited"] if counted and heard else None,
        "note": _note(steps),
    }


def _note(steps: Stepped) -> str:
    """Return why no step was counted; "" if any was."""
    if steps.counted:
        return ""
    if steps.seen:
        return f"no step was counted: {steps.seen} ended, and the warm-up is {steps.warmup}"
    if steps.marker == OPTIMIZER:
        return "no step was counted: no optimizer stepped; name a function with --step"
    if steps.marker == PROFILER:
        return "no step was counted: no profiler's step() ran; name a function with --step"
    if steps.marker:
        return f"no step was counted: {steps.marker} never returned where it is counted"
    return (
        "no step was counted: neither an optimizer nor a profiler stepped; "
        "name a function with --step"
    )
