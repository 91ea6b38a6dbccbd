"""Branches on options, by the values that the project's code and settings give the options."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_run import check
from linting import HOT

from flake8_torchperf.linter import lint
from flake8_torchperf.project.option_values import Given, values_given
from flake8_torchperf.project.texts import text_search

NET = """\
import torch
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self, careful{annotation}={default}, cfg=None):
        super().__init__()
        self.careful = {stored}

    def forward(self, x: Tensor):
        if {test}:
            print(x.sum().item())
        return x
"""


def told(folder: Path, test: str, others: dict[str, str], **parts: str) -> bool:
    """True if the read under the test is reported by default."""
    fields = {"annotation": "", "default": "False", "stored": "careful", **parts}
    (folder / "requirements.txt").touch()
    for name, text in others.items():
        (folder / name).write_text(text)
    file = folder / "net.py"
    file.write_text(NET.format(test=test, **fields))
    return [one.line for one in lint(file.read_text(), str(file), HOT)] == [12]


OFF: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "a default": ("self.careful", {}, {}),
    "a default with a type": ("self.careful", {}, {"annotation": ": bool "}),
    "a call that leaves it off": ("self.careful", {"run.py": "net = Net(careful=False)\n"}, {}),
    "a call that passes it on": ("self.careful", {"run.py": "net = Net(careful=careful)\n"}, {}),
    "another name": (
        "self.careful",
        {"run.py": "def make(checks=False):\n    return Net(careful=checks)\n"},
        {},
    ),
    "a string": ("self.careful == 'slow'", {}, {"default": '"fast"'}),
    "one of several strings": ("self.careful in ('slow', 'slower')", {}, {"default": '"fast"'}),
    "a number": ("self.careful > 0", {}, {"default": "-1"}),
    "a field": (
        "self.careful",
        {"config.py": "class Config:\n    checks: bool = False\n"},
        {"stored": "cfg.checks"},
    ),
    "a command line": (
        "self.careful",
        {"run.py": 'parser.add_argument("--more-checks", action="store_true")\n'},
        {"stored": "cfg.more_checks"},
    ),
    "settings": ("self.careful", {"a.yaml": "model:\n  checks: false\n"}, {"stored": "cfg.checks"}),
    "a test that switches it on": ("self.careful", {"test_net.py": "Net(careful=True)\n"}, {}),
}
ON: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "a default": ("self.careful", {}, {"default": "True"}),
    "a call": ("self.careful", {"run.py": "net = Net(careful=True)\n"}, {}),
    "a call by position": (
        "self.careful",
        {"run.py": "from net import Net\n\nnet = Net(True)\n"},
        {},
    ),
    "a call by position, of some": (
        "self.careful",
        {"run.py": "from net import Net\n\nnet = Net(True)\nother = Net(careful=False)\n"},
        {},
    ),
    "an assignment": ("self.careful", {"run.py": "net.careful = True\n"}, {}),
    "another name": (
        "self.careful",
        {"run.py": "def make(checks=True):\n    return Net(careful=checks)\n"},
        {},
    ),
    "a computed value": ("self.careful", {"run.py": "net = Net(careful=len(sys.argv) > 1)\n"}, {}),
    "a string": (
        "self.careful == 'slow'",
        {"run.py": "net = Net(careful='slow')\n"},
        {"default": '"fast"'},
    ),
    "a number": ("self.careful > 0", {"run.py": "Net(careful=3)\n"}, {"default": "-1"}),
    "a field": (
        "self.careful",
        {"config.py": "class Config:\n    checks: bool = field(default=True)\n"},
        {"stored": "cfg.checks"},
    ),
    "settings": (
        "self.careful",
        {"c.py": "class C:\n    checks: bool = False\n", "a.yaml": "checks: true\n"},
        {"stored": "cfg.checks"},
    ),
    "the module's own state": ("self.training", {"run.py": "dropout(x, training=False)\n"}, {}),
}


@pytest.mark.parametrize("name", OFF)
def test_a_branch_that_no_setting_takes_is_left_out(name: str, tmp_path: Path) -> None:
    test, others, parts = OFF[name]
    assert not told(tmp_path, test, others, **parts)


@pytest.mark.parametrize("name", ON)
def test_a_branch_that_a_setting_takes_is_told(name: str, tmp_path: Path) -> None:
    test, others, parts = ON[name]
    assert told(tmp_path, test, others, **parts)


def test_calls_in_a_branch_that_no_setting_takes_are_seldom(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").touch()
    file = tmp_path / "net.py"
    text = """\
import torch
from torch import nn


def spread(n):
    return torch.ones(n, device="cuda").std().item()


class Net(nn.Module):
    def __init__(self, careful=False):
        super().__init__()
        self.careful = careful

    def forward(self, x):
        if self.careful:
            print(spread(len(x)))
        return x
"""
    file.write_text(text)
    assert lint(text, str(file), HOT) == []
    (tmp_path / "run.py").write_text("net = Net(careful=True)\n")
    text_search.forget()
    assert [one.line for one in lint(text, str(file), HOT)] == [6]


@pytest.mark.parametrize("default", [False, True])
def test_the_default_counts_where_too_many_modules_hold_an_option(
    default: bool, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").touch()
    file = tmp_path / "net.py"
    text = f"""\
import torch


def scaled(x: torch.Tensor, careful={default}):
    if careful:
        print(x.sum().item())
    return x / 2


def train(model, optimizer, loader):
    for x in loader:
        scaled(model(x), careful=read_options().careful).sum().backward()
        optimizer.step()
"""
    file.write_text(text)
    for number in range(text_search.MOST_MODULES):
        (tmp_path / f"user{number}.py").write_text("from net import scaled\n\ncareful = True\n")
    assert [one.line for one in lint(text, str(file), HOT)] == ([6] if default else [])


def test_a_changed_setting_is_noticed(tmp_path: Path) -> None:
    """Findings that rest on a file of settings are not recalled when it changes."""
    (tmp_path / "requirements.txt").touch()
    fields = {"annotation": "", "default": "False", "stored": "cfg.checks", "test": "self.careful"}
    (tmp_path / "net.py").write_text(NET.format(**fields))
    (tmp_path / "c.py").write_text("class C:\n    checks: bool = False\n")
    cache = tmp_path / ".cache"
    for value, lines in (("false", 0), ("true", 1), ("false", 0)):
        (tmp_path / "a.yaml").write_text(f"checks: {value}\n")
        run = check("net.py", cwd=tmp_path, cache=cache)
        assert run.output.count("net.py:12:") == lines


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("f(size=3)\n", Given(frozenset({3}), True)),
        ("if size == 3:\n    pass\n", Given(frozenset(), True)),
        ("resize = 3\nsize.x = 4\n", Given(frozenset(), True)),
        ('c = {"size": 1e-3}\n', Given(frozenset({1e-3}), True)),
        ('c["size"] = None\n', Given(frozenset({None}), True)),
        ('size = c.get("size", "big")\n', Given(frozenset({"big"}), True)),
        ("self.size = size\n", Given(frozenset(), True)),
        ("size = other\n", Given(frozenset(), True, frozenset({"other"}))),
        ("size = cfg.model.width\n", Given(frozenset(), True, frozenset({"width"}))),
        ("size = f(x)\n", Given(frozenset(), False)),
        ('p.add_argument("--size", type=int, default=4)\n', Given(frozenset({4}), True)),
        ('p.add_argument("--size", type=int)\n', Given(frozenset({None}), True)),
    ],
)
def test_the_values_of_an_option_are_read_from_text(text: str, given: Given) -> None:
    assert values_given("size", [text]) == given


def test_the_values_of_settings_are_those_of_yaml() -> None:
    text = "a:\n  size: 3  # small\n  - size: on top\nsizes: 4\nsize: ~\n"
    assert values_given("size", [], [text]).values == {3, "on top", None}


@pytest.mark.parametrize("name", ["_", "careful_", "_careful", "__"])
def test_names_with_underscores_at_their_ends_are_options(name: str, tmp_path: Path) -> None:
    text = f"def f(x, {name}=False):\n    if {name}:\n        print(x.sum().item())\n"
    assert not told_of(tmp_path, "import torch\n\n\n" + text.replace("x,", "x: torch.Tensor,"))


def told_of(folder: Path, text: str) -> list[int]:
    (folder / "requirements.txt").touch()
    file = folder / "net.py"
    file.write_text(text)
    return [one.line for one in lint(text, str(file), HOT)]
