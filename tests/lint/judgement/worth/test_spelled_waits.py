"""The waits of functions in other modules, as evidence of what is queued behind their calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import HOT

from flake8_torchperf.judgement.worth.features import features
from flake8_torchperf.linter import lint

HELPER = """\
import numpy as np
import torch
from torchvision.ops import batched_nms


def looked_at(x, y):
    {body}
    return x
"""
TRAIN = """\
import torch
from kit.helper import looked_at


def main(model: torch.nn.Module, optimizer, loader):
    model.cuda()
    for x in loader:
        y = model(x.cuda(non_blocking=True))
        y = looked_at(y, x)
        print(y.sum().item())
        y.sum().backward()
        optimizer.step()
"""
WAITING = (
    "assert torch.isfinite(x).all()",
    "if not (x > 0).any(): return x",
    "y = x[x > 0]",
    "y = x[~y]",
    "y = x.masked_select(y)",
    "y = torch.unique(x, return_inverse=True)",
    "y = x.unique(return_counts=True)",
    "y, = torch.where(x)",
    "y = x.tolist()",
    "y = x.cpu()",
    "keep = batched_nms(x, y, y, 0.5)",
)
QUEUED = (
    "assert x.shape == y.shape",
    "if np.isfinite(x).all(): return x",
    "x[x > 0] = 0",
    "y = torch.where(x, x, y)",
    "y = x.index(y)",
    "y = x.to(y.device, non_blocking=True)",
)


def _queue(folder: Path, body: str) -> set[str]:
    """Return the features of the queue in front of a wait behind a call of a function."""
    (folder / "pyproject.toml").write_text('[project]\nname = "kit"\n')
    (folder / "kit").mkdir()
    (folder / "kit" / "__init__.py").write_text("")
    (folder / "kit" / "helper.py").write_text(HELPER.format(body=body))
    train = folder / "train.py"
    train.write_text(TRAIN)
    [read] = [one for one in lint(TRAIN, str(train), HOT) if one.line == 10]
    return {one for one in features(read.site, read.code) if one in ("queue:little", "queue:much")}


@pytest.mark.parametrize("body", WAITING)
def test_a_wait_of_another_module_empties_the_queue(body: str, tmp_path: Path) -> None:
    assert _queue(tmp_path, body) == {"queue:little"}


@pytest.mark.parametrize("body", QUEUED)
def test_what_waits_for_nothing_leaves_the_queue(body: str, tmp_path: Path) -> None:
    assert _queue(tmp_path, body) == {"queue:much"}
