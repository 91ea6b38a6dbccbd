"""`torchperf compare` on the training project before and after its fixes, line by line.

What each line waits is worked out by hand, as in the project's `truth.json`: an epoch has 16 steps
of three tensors and 2 batches to evaluate, there are 3 epochs and a final report of 2 batches.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from check_run import torchperf

pytest.importorskip("torch")

# All fixes but the workers of the loaders, which would run the data sets in other processes.
FIX = ("fix", "--unsafe", "--suggested", "--scope", "all", "--extend-ignore", "TPF505", ".")


@pytest.fixture(scope="module")
def compared(
    trained_project: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], str]:
    folder = tmp_path_factory.mktemp("training") / "project"
    shutil.copytree(trained_project, folder, ignore=shutil.ignore_patterns("__pycache__"))
    fixed = torchperf(*FIX, cwd=folder)
    assert "by suggested fixes" in fixed.errors + fixed.output
    run = torchperf("run", "--level", "reads", "--json", "after.json", "train.py", cwd=folder)
    assert run.status == 0, run.errors
    names = ("before.json", "after.json", "--fail-on", "more-waits")
    data = torchperf("compare", *names, "--format", "json", cwd=folder)
    text = torchperf("compare", *names, cwd=folder)
    assert (data.status, text.status) == (0, 0), data.errors + text.errors
    return json.loads(data.output), text.output


def found(data: dict[str, Any], cost: str) -> set[tuple[str, str, int, int]]:
    return {
        (one["path"], one["text"], one["before"][cost], one["after"][cost])
        for one in data["statements"]
        if one["before"][cost] != one["after"][cost]
    }


def test_each_line_that_waits_otherwise_is_told_as_a_person_would(
    compared: tuple[dict[str, Any], str],
) -> None:
    data, _ = compared
    assert found(data, "waits") == {
        # Each of 128 predictions was read; now those of a batch at once.
        ("metrics.py", "self.counts[int(label)][int(predicted)] += 1", 128, 0),
        ("metrics.py", "for predicted, label in zip(predictions.tolist(), labels.tolist()):", 0, 2),
        # torch.full takes the number as it is: a copy less in each epoch.
        ("train.py", "return torch.tensor(running.mean(), device=device)", 3, 0),
    }
    assert found(data, "on_host") == {
        # The labels come from the loader and stay on the host.
        ("metrics.py", "self.counts[int(label)][int(predicted)] += 1", 128, 0),
        ("metrics.py", "for predicted, label in zip(predictions.tolist(), labels.tolist()):", 0, 2),
        # The classes are counted on the host, before training.
        ("data.py", "weights.append(len(labels) / (CLASSES * count.item()))", 5, 0),
        ("data.py", "for count in counts.tolist():", 0, 1),
    }
    waits = data["totals"]["waits"]
    assert waits["after"] - waits["before"] == 2 - 128 - 3


def test_copies_that_no_longer_wait_are_told_apart(compared: tuple[dict[str, Any], str]) -> None:
    data, text = compared
    before, after = (
        {
            (one["path"], one["function"], one[when][kind])
            for one in data["statements"]
            if one["transfers"] and one[when][kind]
        }
        for when, kind in (("before", "waiting_transfers"), ("after", "non_blocking_transfers"))
    )
    moved = {("train.py", "train_epoch", 144), ("evaluate.py", "evaluate", 18)}
    moved |= {("evaluate.py", "final_report", 4)}
    assert before == {*moved, ("train.py", "train_epoch", 3)}  # of torch.tensor
    assert after == moved
    assert not any(one["after"]["seeming_transfers"] for one in data["statements"])
    assert "evaluate.py:19 evaluate: 18 waiting -> none: " in text
    assert "train.py:44 train_epoch: none -> 144 non-blocking: " in text
    assert "transfers 332 waiting -> 165 waiting, 166 non-blocking" in text
