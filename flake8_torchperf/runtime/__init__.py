"""All modules that run code. Torch is imported only when a name is used.

- `counting`: counts dispatches, host reads and waits while code runs.
- `api`: for tests and notebooks: `budget`, the pytest plugin, the text report.
- `rule_pages`: the evidence that a rule's page declares, and what no run shows of it.
- `confirm`: runs single functions with made-up inputs in a sandbox.
- `workload`: runs the user's own program, script or tests.
- `verify`: runs the text before and after a fix, and compares their behaviour.
- `html_page` fills the `templates` of the report of `run`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flake8_torchperf.runtime.api.budget import BudgetExceeded, dispatch_budget
    from flake8_torchperf.runtime.api.contracts import sync_free
    from flake8_torchperf.runtime.api.text_report import metrics_report
    from flake8_torchperf.runtime.counting.counter import DispatchCounter

__all__ = [
    "BudgetExceeded",
    "DispatchCounter",
    "dispatch_budget",
    "metrics_report",
    "sync_free",
]

_HOMES = {
    "BudgetExceeded": "api.budget",
    "DispatchCounter": "counting.counter",
    "dispatch_budget": "api.budget",
    "metrics_report": "api.text_report",
    "sync_free": "api.contracts",
}


def __getattr__(name: str) -> Any:
    """Import the module of an exported name when the name is first used.

    If torch is missing, raises a one-line ImportError that says what to install.
    """
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_torch()
    return getattr(import_module(f"{__name__}.{home}"), name)


def require_torch() -> None:
    """Raise a one-line ImportError if torch is not installed.

    A torch that is installed but fails to import raises its own error, because the user must not be
    told to install it again.
    """
    try:
        import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            "counting dispatches needs torch: pip install flake8-torchperf[confirm]"
        ) from None
