"""The waits that CUDA itself reported in a run: they take precedence over inferred waits.

Decides whether the reports are available, whether they decide a finding, and how many waits there
were. Knows nothing about torch.
"""

from __future__ import annotations

from collections.abc import Mapping

from flake8_torchperf.findings.measured import WAITING_COUNTS
from flake8_torchperf.runtime.counting.counts import Counts
from flake8_torchperf.runtime.workload.exchange import Observed

UNHEARD = (
    "CUDA reported no wait although tensors on it were read: waits are inferred from the calls"
)
NO_WAIT = "the line ran, and the device did not wait"
# These wait, but torch's debug mode does not report it: on an H100 only the queue showed it
# (`tools/measure_syncs.py`, outcome "queue").
UNREPORTED = frozenset({"aten::unique_dim", "aten::unique_dim_consecutive"})


def was_heard(observed: Observed) -> bool:
    """True if the run was on CUDA and its reports came through."""
    return observed.device.startswith("cuda") and not was_silenced(observed)


def was_silenced(observed: Observed) -> bool:
    """True if tensors on CUDA were read and yet no wait was reported, so reports are missing."""
    totals = observed.totals
    read = observed.device.startswith("cuda") and totals.get("host_reads", 0)
    return bool(read) and not totals.get("device_syncs", 0)


def decides(counter: str, causes: Mapping[str, int]) -> bool:
    """True if the waits that CUDA reports decide on a finding with this evidence."""
    return counter in WAITING_COUNTS and UNREPORTED.isdisjoint(causes)


def waits(spent: Counts) -> int:
    """Return how often Python waited for the device, explicitly or not."""
    return spent.device_syncs + spent.synchronisations
