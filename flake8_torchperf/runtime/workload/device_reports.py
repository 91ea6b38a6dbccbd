"""What CUDA itself reported of a run's waits: it outweighs what the calls look like.

An `Observed` or a statement's counts enter; leaves whether the device's word can be had, whether it
decides a finding, and how often it waited. Knows nothing of torch.
"""

from __future__ import annotations

from collections.abc import Mapping

from flake8_torchperf.findings.measured import WAITING
from flake8_torchperf.runtime.counting.evidence import Counts
from flake8_torchperf.runtime.workload.plan import Observed

UNHEARD = (
    "CUDA reported no wait although tensors on it were read: waits are inferred from the calls"
)
NO_WAIT = "the line ran, and the device did not wait"
# These wait, and torch's debug mode does not say so: on an H100 only the queue showed it
# (`tools/measure_syncs.py`, outcome "queue").
UNREPORTED = frozenset({"aten::unique_dim", "aten::unique_dim_consecutive"})


def was_heard(observed: Observed) -> bool:
    """Whether the run was on CUDA and its reports came through."""
    return observed.device.startswith("cuda") and not was_silenced(observed)


def was_silenced(observed: Observed) -> bool:
    """Whether tensors on CUDA were read and no wait was ever reported, which cannot be."""
    totals = observed.totals
    read = observed.device.startswith("cuda") and totals.get("host_reads", 0)
    return bool(read) and not totals.get("device_syncs", 0)


def decides(counter: str, causes: Mapping[str, int]) -> bool:
    """Whether a finding of this evidence stands or falls with the waits that CUDA reports."""
    return counter in WAITING and UNREPORTED.isdisjoint(causes)


def waits(spent: Counts) -> int:
    """How often Python waited for the device, asked for or not."""
    return spent.device_syncs + spent.synchronisations
