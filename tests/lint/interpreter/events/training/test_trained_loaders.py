"""Which loaders training steps read: the ways from a loader to a loop that trains."""

from __future__ import annotations

import textwrap

import pytest
from linting import ALL

from flake8_torchperf.linter import lint
from flake8_torchperf.values.cause import Cause

PRELUDE = """\
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

DEVICE = "cuda"


def step(model, opt, x):
    model(x.to(DEVICE)).sum().backward()
    opt.step()


def train(model, opt, batches):
    for x in batches:
        step(model, opt, x)


def endless(batches):
    while True:
        for x in batches:
            yield x


def show(batches):
    for x in batches:
        print(x)


"""
# How a program uses its loader -> if training steps read it.
USES = {
    "a loop": (
        """
        for epoch in range(9):
            for i, x in enumerate(tqdm(loader)):
                step(model, opt, x)
        """,
        True,
    ),
    "a function": ("train(model, opt, loader)", True),
    "a keyword": ("train(model, opt, batches=loader)", True),
    "a generator": (
        """
        batches = endless(loader)
        for i in range(9):
            step(model, opt, next(batches))
        """,
        True,
    ),
    "an iterator": (
        """
        batches = iter(loader)
        while True:
            x = next(batches)
            step(model, opt, x)
        """,
        True,
    ),
    "a dict": (
        """
        loaders = {"train": loader}
        for phase in ("train", "val"):
            for x in loaders[phase]:
                step(model, opt, x)
        """,
        True,
    ),
    "an item of a dict": (
        """
        loaders = {}
        loaders["train"] = loader
        train(model, opt, loaders["train"])
        """,
        True,
    ),
    "another of two": (
        """
        if fast:
            loader = DataLoader(data, batch_size=64, num_workers=2)
        train(model, opt, loader)
        """,
        True,
    ),
    "prepared": (
        """
        model, opt, loader = Accelerator().prepare(model, opt, loader)
        train(model, opt, loader)
        """,
        True,
    ),
    "prepared at another position": (
        """
        other, opt, model = Accelerator().prepare(loader, opt, model)
        train(model, opt, model.loader)
        """,
        False,
    ),
    "a loop that shows": ("show(loader)", False),
    "its length": ("print(len(loader))", False),
    "the first batch": (
        """
        x = next(iter(loader))
        for i in range(9):
            step(model, opt, x)
        """,
        False,
    ),
}


@pytest.mark.parametrize(("code", "told"), USES.values(), ids=USES)
def test_a_loader_that_training_steps_read(code: str, told: bool) -> None:
    body = textwrap.indent(textwrap.dedent(code).strip("\n"), "    ")
    made = "    loader = DataLoader(data, batch_size=8)\n"
    source = f"{PRELUDE}def main(model, opt, data: Dataset, fast):\n{made}{body}\n"
    line = source[: source.index(made)].count("\n") + 1
    (found,) = [
        one for one in lint(source, "train.py", ALL) if (one.code, one.line) == ("TPF505", line)
    ]
    assert (found.site.heat.cause is Cause.FEEDS_STEPS) == told


def test_a_loader_with_workers_that_pins_nothing_costs_a_copy() -> None:
    made = "    loader = DataLoader(data, batch_size=8, num_workers=2)\n"
    source = f"{PRELUDE}def main(model, opt, data: Dataset):\n{made}    train(model, opt, loader)\n"
    (found,) = [one for one in lint(source, "train.py", ALL) if one.code == "TPF505"]
    assert found.site.heat.cause is not Cause.FEEDS_STEPS
