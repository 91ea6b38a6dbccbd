"""Undo before each test what one before it may have switched for the whole process."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _distributions_check_their_arguments() -> None:
    """dynamo switches the checks off for the whole process (torch/_dynamo/eval_frame.py)."""
    distributions = sys.modules.get("torch.distributions")
    if distributions is not None:
        distributions.Distribution.set_default_validate_args(True)
