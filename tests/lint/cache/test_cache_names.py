"""A file depends on the names of a module that it looks up, not on all of its module level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_cache import analysed, check, edit

from flake8_torchperf.project.answers import IMPORTS, NAMED, PART, SPLITS, STARS, noting
from flake8_torchperf.project.lazy_index import parts_of, read_outline

if TYPE_CHECKING:
    from pathlib import Path

BASE = """\
import torch


class Sums:
    def total(self, x):
        return x.sum()


class Plain:
    def total(self, x):
        return 3
"""
HELPER = """\
import torch
from pkg.base import Sums as Base
from pkg.base import Plain
from pkg import base

SIZE = 3
if SIZE > 2:
    DEVICE = "cuda"
else:
    DEVICE = "cuda:1"


class Net(Base):
    size = 3


def make(n) -> torch.Tensor:
    return torch.ones(n, device=DEVICE)
"""
# Two files, so that the second one meets what was read for the first.
USER = """\
import torch
from pkg.helper import Net, make


def sizes(batches: list[int]) -> list[float]:
    net = Net()
    return [float(net.total(make(batch))) for batch in batches]
"""
USERS = ["./pkg/one.py", "./pkg/two.py"]
EDITS = {
    "another constant": ("SIZE = 3", "SIZE = 4", []),
    "a constant that is read": ('"cuda:1"', '"cpu"', USERS),
    "another import": ("from pkg.base import Plain\n", "", []),
    "an import of another name": ("from pkg import base\n", "from pkg import base as b\n", []),
    "an import that a base stands for": ("Sums as Base", "Plain as Base", USERS),
    "another base": ("Net(Base)", "Net(Plain)", USERS),
    "the import of torch": ("import torch\n", "import numpy as torch\n", USERS),
    "a class in place of a function": ("def make(n) -> torch.Tensor:", "class make:", USERS),
    "a second binding": ("SIZE = 3", "make = print", USERS),
    "a statement that binds nothing": ("SIZE = 3", "SIZE = 3\nprint(SIZE)", []),
}


@pytest.mark.parametrize(("old", "new", "again"), EDITS.values(), ids=list(EDITS))
def test_names_that_are_looked_up(old: str, new: str, again: list[str], tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    (project / "pkg").mkdir(parents=True)
    edit(project, "pkg/__init__.py", "")
    edit(project, "pkg/base.py", BASE)
    edit(project, "pkg/helper.py", HELPER)
    for name in USERS:
        edit(project, name, USER)
    check("-j1", cwd=project, cache=cache)
    assert old in HELPER
    edit(project, "pkg/helper.py", HELPER.replace(old, new))
    assert [name for name in analysed(project, cache) if name in USERS] == again


def answers(text: str, *parts: str) -> list[str]:
    made = parts_of(text)
    assert made is not None
    return [made.answer(part) for part in parts]


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("import torch\n", "import torch\n\n# A comment.\n", ""),
        ("from pkg import base", "from pkg import base, more", "imports"),
        ("SIZE = 3", "from pkg.base import *", "stars"),
        ("SIZE = 3", "def SIZE(): ...", ""),
        ("    DEVICE = ", "    DEVICE: str = ", "def DEVICE"),
        ("import torch", "import torch.nn", "imports def torch"),
    ],
)
def test_each_question_has_its_own_answer(old: str, new: str, differs: str) -> None:
    parts = (IMPORTS, STARS, SPLITS, f"{NAMED}DEVICE", f"{NAMED}torch", f"{NAMED}make")
    before, after = answers(HELPER, *parts), answers(HELPER.replace(old, new), *parts)
    changed = [one for one, then, now in zip(parts, before, after, strict=True) if then != now]
    assert " ".join(changed) == differs


def test_the_bases_of_a_class_are_asked_for_each_linted_file(tmp_path: Path) -> None:
    path = tmp_path / "helper.py"
    module = read_outline(HELPER, path)
    told: list[set[str]] = []
    for _ in range(2):
        reads: dict[str, str] = {}
        with noting(reads):
            assert module.classes["Net"].bases == ("pkg.base.Sums",)
        told.append({question.partition(PART)[2] for question in reads})
    assert told == [{"head Net", "head Base"}] * 2


def test_all_imports_are_one_question(tmp_path: Path) -> None:
    module = read_outline(HELPER, tmp_path / "helper.py")
    reads: dict[str, str] = {}
    with noting(reads):
        assert "torch" in module.imports.values()
    assert [question.partition(PART)[2] for question in reads] == [IMPORTS]


DEFINITIONS = """\
@cached
def make(n,
         m=1):
    return n

def short(n): return n

class Net(Base):
    SIZE = 3

    @property
    def width(self):
        return self.SIZE

    def forward(self, x,
                y=1): return x
"""


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("return n\n\ndef", "print(n)\n\ndef", "def make"),
        ("m=1", "m=2", "head make, def make"),
        ("@cached\n", "", "head make, def make"),
        ("def make", "async def make", "head make, def make"),
        ("short(n): return n", "short(n): return 1", "head short, def short"),
        ("return self.SIZE", "return 1", "def Net, def Net.width"),
        ("@property", "@cached", "head Net, def Net, def Net.width"),
        ("SIZE = 3", "SIZE = 4", "head Net, def Net"),
        ("y=1", "y=2", "head Net, def Net"),
        ("class Net(Base)", "class Net", "head Net, def Net"),
    ],
)
def test_bodies_are_questions_of_their_own(old: str, new: str, differs: str) -> None:
    heads = ("head make", "head short", "head Net")
    parts = (*heads, "def make", "def short", "def Net", "def Net.width")
    assert DEFINITIONS.count(old) == 1
    before = answers(DEFINITIONS, *parts)
    after = answers(DEFINITIONS.replace(old, new), *parts)
    changed = [one for one, then, now in zip(parts, before, after, strict=True) if then != now]
    assert ", ".join(changed) == differs


def test_a_function_that_is_only_found_is_not_asked_for_its_body(tmp_path: Path) -> None:
    module = read_outline(DEFINITIONS, tmp_path / "helper.py")
    asked: list[set[str]] = []
    for _ in range(2):
        for read in ("key", "decorators", "node", "nodes", "hosts"):
            reads: dict[str, str] = {}
            with noting(reads):
                getattr(module.functions["make"], read)
            asked.append({question.partition(PART)[2] for question in reads} - {"head cached"})
    whole = {"head make", "def make"}
    assert asked == [{"head make"}, {"head make"}, *[whole] * 3] * 2


def test_a_table_of_functions_needs_no_bodies(tmp_path: Path) -> None:
    project, cache = tmp_path / "project", tmp_path / "cache"
    (project / "pkg").mkdir(parents=True)
    edit(project, "pkg/__init__.py", "")
    losses = (
        "import torch\n\n\ndef first(x):\n    return x.sum()\n\n\ndef second(x):\n    return 1\n"
    )
    edit(project, "pkg/losses.py", losses)
    table = "from pkg.losses import first, second\n\nLOSSES = {'a': first, 'b': second}\n"
    edit(project, "pkg/table.py", table)
    user = (
        "import torch\nfrom pkg.table import LOSSES\n\n\ndef train(batches):\n"
        "    for x in batches:\n        print(LOSSES['a'](x).item())\n"
    )
    edit(project, "pkg/user.py", user)
    check("-j1", cwd=project, cache=cache)
    edit(project, "pkg/losses.py", losses.replace("return 1", "print(x)"))
    assert "./pkg/user.py" not in analysed(project, cache)
    edit(project, "pkg/losses.py", losses.replace("x.sum()", "x.sum().item()"))
    assert "./pkg/user.py" in analysed(project, cache)
    edit(project, "pkg/losses.py", losses.replace("second(x)", "third(x)"))
    assert "./pkg/user.py" in analysed(project, cache)


WRITING = """\
class Net(Base):
    class Inner:
        def fill(self):
            self.inner = []

    def fill(self, x):
        self.size = x.sum()
        self.register_buffer("mask", x)

    def forward(self, x):
        return x
"""


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("x.sum()", "x.sum().item()", False),
        ("return x", "print(x)", False),
        ("return x", "self.size = x", True),
        ("self.size = x.sum()", "pass", True),
        ('"mask"', '"masks"', True),
        ('"mask"', "x.name", True),
        ("self.inner = []", "self.outer = []", True),
        ("def forward(self, x)", "def size(self, x)", False),
        ("def forward", "def before(self): ...\n\n    def forward", False),
        ("    def fill(self, x)", "    def before(self): ...\n\n    def fill(self, x)", True),
    ],
)
def test_what_methods_write_is_one_question(old: str, new: str, differs: bool) -> None:
    assert WRITING.count(old) == 1
    before, after = answers(WRITING, "writes Net"), answers(WRITING.replace(old, new), "writes Net")
    assert (before != after) == differs


def test_a_method_that_is_only_found_is_not_asked_for_its_body(tmp_path: Path) -> None:
    module = read_outline(WRITING, tmp_path / "helper.py")
    reads: dict[str, str] = {}
    with noting(reads):
        net = module.classes["Net"]
        methods = [net.methods["fill"], *net.methods.values(), *net.functions]
    asked = {question.partition(PART)[2] for question in reads}
    assert asked == {"head Net", "head Base"}
    for _ in range(2):
        with noting(reads := {}):
            assert net.writers == {"size": [methods[0]]}
            assert net.setters == {"mask": [methods[0]]}
            assert [*net.written_by] == ["size", "mask"]
        assert {question.partition(PART)[2] for question in reads} == {"writes Net"}
        with noting(reads := {}):
            assert methods[0].node.name == "fill"
        assert {question.partition(PART)[2] for question in reads} == {"head Net", "def Net.fill"}
