"""Random edits, typed key by key into `torchperf server`, against fresh runs of `torchperf check`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import fork_server
from type_into_server import type_into
from weighing import as_published

from flake8_torchperf.judgement.worth import fitted

SOURCE = """\
import torch


def mean(x: torch.Tensor) -> float:
    total = 0.0
    for row in x.split(2):
        total += row.sum().item()
    return total


def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        if loss.isnan().any():
            print(f"{loss}")
        note(loss)


def note(loss: torch.Tensor):
    y = torch.zeros(3).to(loss.device)
    return y[loss > 0], loss.item()
"""


def test_what_is_typed_is_what_a_fresh_run_finds(tmp_path: Path) -> None:
    """Some edits, the same in every run; `tools/type_into_server.py` makes others for hours."""
    file = tmp_path / "typed.py"
    file.write_text(SOURCE)

    # The server is a process of its own; forked commands tell findings of whatever worth.
    with as_published():
        threshold = fitted.weights().threshold

    def run(command: Sequence[str], folder: Path, stdin: bytes) -> bytes:
        worth = f"--min-worth={threshold}"
        return fork_server.run([*command, worth], cwd=folder, stdin=stdin).stdout

    tally = type_into(tmp_path, [file], edits=30, seed=20261123, run=run, pause=0.01)
    assert tally.wrong == []
    assert tally.edits == 30
    assert tally.parsed > 5
    assert tally.findings > 30
