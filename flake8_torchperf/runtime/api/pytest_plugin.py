"""pytest's side: the marker `torchperf(...)` and the fixture `dispatch_counter`.

Loaded into every pytest run of an environment, so torch is imported only by a test that counts.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flake8_torchperf.runtime.counting.counter import DispatchCounter

# Records profiles of test runs.
pytest_plugins = ("flake8_torchperf.runtime.recorded_tests",)
MARKER = (
    "torchperf(max_dispatches=None, max_host_reads=None, max_transfers=None, ops=None): "
    "fail the test if its body spends more; lines with `# noqa: TPF...` may spend"
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, as `--strict-markers` requires."""
    config.addinivalue_line("markers", MARKER)


# The older style: `wrapper=True` needs pluggy 1.2, and every pytest of the environment loads this.
@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, None]:
    """Run a marked test's body under its budget; fixtures are not counted."""
    __tracebackhide__ = True
    marker = pyfuncitem.get_closest_marker("torchperf")
    if marker is None:
        yield
        return
    from flake8_torchperf.runtime import BudgetExceeded, dispatch_budget

    budget = dispatch_budget(*marker.args, **marker.kwargs)
    with budget.counting() as counter:
        outcome = yield
    if outcome.excinfo is not None:
        return  # The body's own error is the result of the test.
    try:
        budget.check(counter.evidence)
    except BudgetExceeded as error:
        if not hasattr(outcome, "force_exception"):
            raise  # pluggy before 1.1
        outcome.force_exception(error)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Put the counts of an exceeded budget into pytest's summary line.

    pytest begins the line with the name of the error, and cuts it at the width of the terminal.
    """
    outcome = yield
    budget = sys.modules.get("flake8_torchperf.runtime.api.budget")
    if budget is None or call.excinfo is None:
        return
    error = call.excinfo.value
    crash = getattr(outcome.get_result().longrepr, "reprcrash", None)
    if isinstance(error, budget.BudgetExceeded) and crash is not None:
        crash.message = error.headline


@pytest.fixture
def dispatch_counter() -> Iterator[DispatchCounter]:
    """Return a DispatchCounter that is open while the test runs."""
    from flake8_torchperf.runtime import DispatchCounter

    with DispatchCounter() as counter:
        yield counter
