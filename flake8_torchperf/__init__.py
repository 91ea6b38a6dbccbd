"""Find where Python makes the accelerator wait, say why, and prove it by running the code.

The names for tests are those of `flake8_torchperf.runtime`; torch is imported when one is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flake8_torchperf.runtime import BudgetExceeded as BudgetExceeded
    from flake8_torchperf.runtime import DispatchCounter as DispatchCounter
    from flake8_torchperf.runtime import dispatch_budget as dispatch_budget
    from flake8_torchperf.runtime import metrics_report as metrics_report
    from flake8_torchperf.runtime import sync_free as sync_free

__version__ = "0.1.0"
# The names of `runtime` that may be imported from here.
_OF_RUNTIME = frozenset((
    "BudgetExceeded", "DispatchCounter", "dispatch_budget", "metrics_report", "sync_free",
))  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return a name of `flake8_torchperf.runtime`, which imports torch.

    Raises ImportError with one line if torch is missing.
    """
    if name not in _OF_RUNTIME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from flake8_torchperf import runtime

    return getattr(runtime, name)
