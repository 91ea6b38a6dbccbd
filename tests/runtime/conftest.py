"""Undo before each test what one before it may have switched for the whole process."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _distributions_check_their_arguments() -> None:
    """dynamo switches the checks off for the whole process (torch/_dynamo/eval_frame.py)."""
    distributions = sys.modules.get("torch.distributions")
    if distributions is not None:
        distributions.Distribution.set_default_validate_args(True)


@pytest.fixture(scope="module")
def forked_sandboxes() -> Iterator[None]:
    """Sandboxes of the module are forks of one process, where they can be."""
    if sys.platform != "linux":
        yield
        return
    from sandbox_forks import in_forks

    from flake8_torchperf.runtime.confirm import sandbox

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandbox, "subprocess", in_forks())
        yield
