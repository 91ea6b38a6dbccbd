"""An analysis leaves no trees behind for the garbage collector."""

from __future__ import annotations

import ast
import gc
import weakref
from pathlib import Path

import pytest

from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
from flake8_torchperf.linter import lint_tree
from flake8_torchperf.options import Options
from flake8_torchperf.project.module_index import read_module

SOURCE = """\
import torch


class Trainer(torch.nn.Module):
    def _read(self, loss):
        return loss.item()

    def fit(self, loader):
        total = 0.0
        for batch in loader:
            loss = self(batch)
            loss.backward()
            total += self._read(loss)
        return total
"""


def test_heats_go_with_the_analysis() -> None:
    kept: list[weakref.ref[FunctionHeats]] = []
    init = FunctionHeats.__init__

    class Seen(FunctionHeats):
        def __init__(self, *given: object) -> None:
            init(self, *given)  # type: ignore[arg-type]
            kept.append(weakref.ref(self))

    import flake8_torchperf.judgement.frequency.function_heat as place

    before, place.FunctionHeats = place.FunctionHeats, Seen  # type: ignore[assignment, misc]
    lines = tuple(SOURCE.splitlines(keepends=True))
    gc.collect()
    gc.disable()
    try:
        assert lint_tree(ast.parse(SOURCE), lines, "trainer.py", Options())
        assert kept
        assert [one() for one in kept] == [None] * len(kept)
    finally:
        gc.enable()
        place.FunctionHeats = before  # type: ignore[misc]


def test_the_classes_of_a_module_go_with_it() -> None:
    module = read_module(ast.parse(SOURCE), tuple(SOURCE.splitlines(keepends=True)), None)
    info = weakref.ref(module.tree)
    gc.disable()
    try:
        module.forget()
        del module
        assert info() is None
    finally:
        gc.enable()


NESTED = """\
import torch


def fit(model: torch.nn.Module, loader) -> float:
    def read(loss: torch.Tensor) -> torch.Tensor:
        return loss * 2

    total = 0.0
    for batch in loader:
        loss = read(model(batch).mean())
        loss.backward()
        total += loss.item()
    return total
"""


@pytest.mark.parametrize("source", [SOURCE, NESTED], ids=["a method", "a nested function"])
def test_the_tree_of_a_linted_file_waits_for_no_collection(tmp_path: Path, source: str) -> None:
    path = tmp_path / "trainer.py"
    path.write_text(source)
    tree = ast.parse(source)
    gone = weakref.ref(tree)
    gc.collect()
    gc.disable()
    try:
        assert lint_tree(tree, tuple(source.splitlines(keepends=True)), str(path), Options())
        del tree
        assert gone() is None
    finally:
        gc.enable()
