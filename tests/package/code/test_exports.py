"""The names that a test file imports from the package itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flake8_torchperf

NAMES = ("BudgetExceeded", "DispatchCounter", "dispatch_budget", "metrics_report", "sync_free")


@pytest.mark.parametrize("name", NAMES)
def test_the_names_for_tests_are_those_of_the_runtime(name: str) -> None:
    pytest.importorskip("torch")
    from flake8_torchperf import runtime

    assert getattr(flake8_torchperf, name) is getattr(runtime, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'dispatch_budgets'"):
        getattr(flake8_torchperf, "dispatch_budgets")  # noqa: B009 - mypy knows the module


def test_importing_the_package_imports_no_torch() -> None:
    code = "import sys, flake8_torchperf; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
