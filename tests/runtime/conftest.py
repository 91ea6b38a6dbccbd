"""Undo before each test what one before it may have switched for the whole process."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from check_run import torchperf

TRAINING = Path(__file__).resolve().parents[2] / "docs" / "training_project"


@pytest.fixture(scope="session")
def trained_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the training project, with the profile and the report of one run of it."""
    folder = tmp_path_factory.mktemp("training") / "project"
    shutil.copytree(TRAINING, folder, ignore=shutil.ignore_patterns("__pycache__"))
    saved = ("--save-profile", "profile.json", "--json", "before.json")
    run = torchperf("run", "--level", "reads", *saved, "train.py", cwd=folder)
    assert run.status == 0, run.errors
    return folder


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
