"""A file depends on what the calls that it follows give, not on the texts of these functions."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from test_cache import analysed, edit, entries, package

from flake8_torchperf import asked_again
from flake8_torchperf.cache.cached_findings import memory_of
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.options import Options
from flake8_torchperf.pipeline import LintText, linted

HELPER = '''\
import torch


def scaled(x: torch.Tensor, size: int = 2):
    """Scale."""
    y = x * size
    return y


def made(n: int, on_host: bool = False) -> torch.Tensor:
    if on_host:
        return torch.zeros(n)
    return torch.zeros(n, device="cuda")


def used(values):
    total = values.sum()
    return total


def applied(function, x: torch.Tensor):
    return function(x)


def twice(x: torch.Tensor):
    def again(y):
        return y + x

    return again


def counted(n: int):
    if n <= 0:
        return 0
    return counted(n - 1)


class Held:
    def __init__(self, size: int):
        self.scale = torch.ones(size, device="cuda")

    def shown(self, x: torch.Tensor):
        return x * self.scale
'''
USER = """\
import torch
from pkg.helper import Held, applied, counted, made, scaled, twice, used


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.held = Held(3)

    def inner(self, x):
        return x + 1

    def forward(self, x: torch.Tensor):
        if scaled(x).any():
            x = x + 1
        value = made(3, on_host=True).item() + float(made(3))
        shown = float(self.held.shown(x)) + float(applied(lambda y: y.sum(), x))
        more = twice(x)
        return value, shown, float(more(x)), float(used(x)), counted(3)


class Other(Net):
    def forward(self, x: torch.Tensor):
        return float(applied(self.inner, x))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return package(tmp_path / "project", {"helper": HELPER, "user": USER})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def is_analysed(project: Path, cache: Path) -> bool:
    """Check everything; True if the file that calls was analysed. It asserts the findings."""
    return "./pkg/user.py" in analysed(project, cache, "--scope", "all")


# A change of the helper -> whether the file that calls it is analysed again.
CHANGES = {
    "a value that nothing uses": ("    y = x * size\n", "    z = 1\n    y = x * size\n", False),
    "another name": (
        "    y = x * size\n    return y\n", "    z = x * size\n    return z\n", False,
    ),
    "another way to the same value": ("    y = x * size\n", "    y = size * x\n", False),
    "another type": ("    return y\n", "    return y.tolist()\n", True),
    "another device in the branch that is taken": (
        "torch.zeros(n)\n", 'torch.zeros(n, device="cuda")\n', True,
    ),
    "one more operation in front of the next wait": (
        "    y = x * size\n", "    y = (x * size) * 1\n", True,
    ),
    "a literal that the body binds anew": (
        "    if on_host:\n", "    on_host = not on_host\n    if on_host:\n", True,
    ),
    "a wait in the function": ("    return total\n", "    float(total)\n    return total\n", True),
    "what the body shows of a parameter": (
        "    total = values.sum()\n", "    total = len(values)\n", True,
    ),
    "the body of a function that is returned": ("return y + x", "return (y + x).tolist()", True),
    "around a function that is returned": (
        "    return again\n", "    z = 1\n    return again\n", False,
    ),
    "what is done with a function that is given": (
        "    return function(x)\n", "    return [function(x)]\n", True,
    ),
    "an attribute": ('torch.ones(size, device="cuda")', "[1.0] * size", True),
    "a method": ("return x * self.scale", "z = 1\n        return x * self.scale", False),
    "a function that calls itself": ("    if n <= 0:\n", "    if n < 1:\n", False),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "again"), CHANGES.values(), ids=CHANGES)
def test_a_file_is_analysed_again_if_calls_give_another_thing(
    old: str, new: str, again: bool, project: Path, cache: Path
) -> None:
    assert HELPER.count(old) == 1
    assert is_analysed(project, cache)
    assert not is_analysed(project, cache)
    edit(project, "pkg/helper.py", HELPER.replace(old, new))
    assert is_analysed(project, cache) == again


def test_changes_are_compared_with_the_last_text(project: Path, cache: Path) -> None:
    is_analysed(project, cache)
    first = HELPER.replace("    y = x * size\n", "    z = 1\n    y = x * size\n")
    edit(project, "pkg/helper.py", first)
    assert not is_analysed(project, cache)
    edit(project, "pkg/helper.py", first.replace("    return y\n", "    return y.tolist()\n"))
    assert is_analysed(project, cache)
    edit(project, "pkg/helper.py", first)
    assert is_analysed(project, cache)


def test_what_was_asked_again_is_not_asked_a_third_time(project: Path, cache: Path) -> None:
    is_analysed(project, cache)
    edit(project, "pkg/helper.py", HELPER.replace("y = x * size", "y = size * x"))
    assert not is_analysed(project, cache)
    times = {path: path.stat().st_mtime_ns for path in entries(cache)}
    assert not is_analysed(project, cache)
    assert times == {path: path.stat().st_mtime_ns for path in entries(cache)}


def test_a_new_text_is_asked_for_what_it_calls(project: Path, cache: Path) -> None:
    """What a function calls after a change counts from then on."""
    is_analysed(project, cache)
    text = HELPER.replace("y = x * size", "y = factor(x) * size")
    edit(project, "pkg/helper.py", f"{text}\n\ndef factor(x: torch.Tensor):\n    return x\n")
    is_analysed(project, cache)
    edit(project, "pkg/helper.py", f"{text}\n\ndef factor(x: torch.Tensor):\n    return 1.0\n")
    is_analysed(project, cache)
    edit(project, "pkg/helper.py", f"{text}\n\ndef factor(x: torch.Tensor):\n    return x.cpu()\n")
    is_analysed(project, cache)


def test_a_file_that_cannot_be_asked_is_analysed(
    project: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistake of ours where calls are asked again costs time, and no finding."""
    path = project / "pkg" / "user.py"
    options = Options(cache_folder=cache, scope=Level.COLD)
    source = LintText(USER.splitlines(keepends=True), str(path), lambda line: None)
    before = linted(source, options, lambda told: True, lambda: memory_of(options))
    edit(project, "pkg/helper.py", HELPER.replace("y = x * size", "y = size * x"))

    def broken(*_given: object) -> None:
        raise ValueError("broken")

    monkeypatch.delenv("TORCHPERF_DEBUG", raising=False)
    monkeypatch.setattr(asked_again, "ask_again", broken)
    with caplog.at_level(logging.WARNING):
        assert linted(source, options, lambda told: True, lambda: memory_of(options)) == before
    assert "user.py is analysed anew: " in caplog.text
    assert before


NESTED = {
    "base": """\
import torch


class Base:
    def __init__(self):
        self.size = self.sized()
        self.scale = self.scaled()

    def sized(self):
        return 3

    def scaled(self):
        return torch.ones(self.size, device="cuda")


def inner(x: torch.Tensor):
    return x * 2


def outer(x: torch.Tensor):
    y = inner(x)
    return inner(y)


def back(net, x: torch.Tensor):
    return net.part(x)
""",
    "user": """\
import torch
from pkg.base import Base, back, outer


class Net(Base):
    def part(self, x):
        return outer(x)

    def forward(self, x: torch.Tensor):
        return float(outer(x)), float(self.scale.sum()), float(back(self, x))
""",
}
# A change of the base -> whether the file that calls it is analysed again.
NESTED_CHANGES = {
    "a function that another one calls": ("    return x * 2\n", "    return 2 * x\n", False),
    "the function that calls it": ("    y = inner(x)\n", "    z = inner(x)\n    y = z\n", False),
    "a method that makes an attribute": (
        "        return torch.ones(self.size", "        z = 1\n        return torch.ones(self.size", False,
    ),
    "the device of that attribute": ('self.size, device="cuda"', "self.size", True),
    "the constructor": (
        "        self.scale = self", "        self.other = 1\n        self.scale = self", True,
    ),
    "a function that calls back": ("    return net.part(x)\n", "    return net.part(x).cpu()\n", True),
    "another result of a function that another one calls": (
        "    return x * 2\n", "    return (x * 2).cpu()\n", True,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "again"), NESTED_CHANGES.values(), ids=NESTED_CHANGES)
def test_calls_in_calls_and_attributes(
    old: str, new: str, again: bool, tmp_path: Path, cache: Path
) -> None:
    project = package(tmp_path / "project", NESTED)
    assert NESTED["base"].count(old) == 1
    assert is_analysed(project, cache)
    edit(project, "pkg/base.py", NESTED["base"].replace(old, new))
    assert is_analysed(project, cache) == again
    assert not is_analysed(project, cache)


def test_what_a_call_leaves_depends_on_how_deep_it_is_asked_for(
    tmp_path: Path, cache: Path
) -> None:
    """Of a chain of calls, the last are too deep to follow; a shorter way reaches them."""
    chain = "".join(
        f"def link_{number}(x: torch.Tensor):\n    link_{number + 1}(x)\n    return x\n\n\n"
        for number in range(6)
    )
    links = f"""\
import torch


{chain}def link_6(x: torch.Tensor):
    return float(x.sum())


def short(x: torch.Tensor):
    y = link_4(x)
    return y
"""
    user = """\
import torch
from pkg.links import link_0, short


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        x = link_0(x @ x)
        first = float(x.sum())
        x = short(x @ x)
        return first, float(x.sum())
"""
    project = package(tmp_path / "project", {"links": links, "user": user})
    assert is_analysed(project, cache)
    edit(project, "pkg/links.py", links.replace("    y = link", "    z = 1\n    y = link"))
    assert not is_analysed(project, cache)
