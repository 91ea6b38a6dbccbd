"""`torchperf why` names the expression at which the type of a value is lost, and the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_torchperf.cli.why.account import account_of
from flake8_torchperf.options import Options

HELPER = """\
import torch


def made(x):
    result = x.registry[3].make()
    return result


def several(x):
    return [1, x.other]


def rounds(x):
    for one in range(3):
        yield torch.nn.functional.made_up(x)
"""
TRAIN = """\
import torch
import elsewhere
from helper import made, rounds, several


class Trainer:
    def __init__(self, engine):
        self.engine = engine

    def fit(self, optimizer):
        a = self.unset
        b = self.engine.loss


def loss_of_one_batch(batch, model, criterion):
    predicted = model(batch)
    return None if criterion is None else criterion(predicted)


def train_one_epoch(model, criterion, loader, optimizer):
    for batch in loader:
        loss_tuple = loss_of_one_batch(batch, model, criterion)
        loss, details = loss_tuple
        c = float(loss)


def main(args):
    model = args.model_class()
    criterion = eval(args.criterion)
    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, args.loader, args.optimizer)


def looked_up(thing, name):
    value = getattr(thing, name)
    d = value


def called_by_nothing(thing):
    e = thing


def passed(thing):
    f = thing


def passes(other):
    passed(other)


def outside(x):
    value = elsewhere.compute(x)
    g = value


def inside(x):
    value = made(x)
    h = value


def method(env, action):
    first, second = env.step(action)
    i = first


def either(x):
    first, second = several(x)
    j = second


def loop(x):
    for value in rounds(x):
        k = value


def undefined():
    m = missing
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("a = ", "an attribute that no method of `Trainer` sets"),
        (
            "b = ",
            "known until `engine` in line 8, a parameter: nothing in the project calls `Trainer`",
        ),
        (
            "c = ",
            "known until `criterion(predicted)` in line 17, whose class is not known: `eval`",
        ),
        (
            "d = ",
            "known until `getattr(thing, name)` in line 35, "
            "which is decided when the program runs: `getattr`",
        ),
        ("e = ", "a parameter: nothing in the project calls `called_by_nothing`"),
        (
            "f = ",
            "known until `other` in line 48, a parameter: nothing in the project calls `passes`",
        ),
        (
            "g = ",
            "known until `elsewhere.compute(x)` in line 52, "
            "which is not read: `elsewhere.compute` is not in the project",
        ),
        (
            "h = ",
            "known until `x.registry[3].make()` in helper.py:5, "
            "a method of `x.registry[3]`, whose class is not known: `x.registry`",
        ),
        (
            "i = ",
            "known until `env.step(action)` in line 62, a method of `env`, whose class is not known: "
            "a parameter: nothing in the project calls `method`",
        ),
        ("j = ", "known until `x.other` in helper.py:10, of `x`, a parameter: nothing"),
        (
            "k = ",
            "known until `torch.nn.functional.made_up(x)` in helper.py:15, "
            "which is not read: `torch.nn.functional.made_up` is not in the project",
        ),
        ("m = ", "which nothing that is read gives a value"),
    ],
)
def test_the_break_in_a_chain_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "helper.py").write_text(HELPER, encoding="utf-8")
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    number = next(
        n for n, text in enumerate(TRAIN.splitlines(), 1) if text.strip().startswith(line)
    )
    account = account_of(TRAIN, "train.py", number, Options())
    assert [one.kind for one in account.silent] == ["unknown"]
    assert told in account.silent[0].text


def test_functions_that_call_one_another_end_the_chain(tmp_path: Path) -> None:
    source = "import torch\n\n\ndef f(x):\n    return g(x)\n\n\ndef g(x):\n    return f(x)\n"
    file = tmp_path / "circle.py"
    file.write_text(source, encoding="utf-8")
    account = account_of(source, str(file), 5, Options())
    assert [one.kind for one in account.silent] == ["unknown"]


def test_calls_that_no_search_finds_are_not_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object whose class is looked up by a name may be called anywhere."""
    source = """\
import torch


class Criterion(torch.nn.Module):
    def forward(self, found):
        return float(found["thing"])
"""
    training = """\
import argparse

import torch
from criterion import *


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--criterion", default="Criterion(2)")
    args = parser.parse_args()
    model = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters())
    criterion = eval(args.criterion)
    for _ in range(3):
        criterion(model(torch.ones(3))).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "criterion.py").write_text(source, encoding="utf-8")
    (tmp_path / "train.py").write_text(training, encoding="utf-8")
    account = account_of(source, "criterion.py", 6, Options())
    assert "no call of `forward` is seen: an object of its class" in account.silent[0].text
