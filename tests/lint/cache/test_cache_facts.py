"""A file depends on the facts about a function that it asks for, not on all of its body."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_cache import analysed, check, edit, package

from flake8_torchperf.cache.current import CurrentModule
from flake8_torchperf.project.answers import FACT, PART, READ_OF, noting
from flake8_torchperf.project.function_facts import FACTS, FunctionFact
from flake8_torchperf.project.lazy_index import parts_of, read_outline

BASE = '''\
import torch


class Base(torch.nn.Module):
    """A base."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.scale = torch.ones(size)
        self.start()

    @property
    def width(self):
        return self.scale.count

    @width.setter
    def width(self, value):
        self.grow(value)

    def start(self):
        """Begin."""
        print("start")
        self.grow(self.size)

    def grow(self, state, value=None):
        raise NotImplementedError

    def report(self, state):
        state.seen = self.size
        return state.tell()
'''
USER = """\
import torch
from pkg.base import Base


class Net(Base):
    def __init__(self, size):
        super().__init__(size)
        self.size = 3

    def grow(self, state, value=None):
        self.scale = torch.zeros(3)

    def forward(self, x):
        return float(self.scale.sum()) + x.size(self.size)


def run(net: Net, x: torch.Tensor):
    for _ in range(9):
        x = net(x)
    return x
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return package(tmp_path / "project", {"base": BASE, "user": USER})


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ('print("start")', 'print("begun")', False),
        ('print("start")', "added = 3", False),
        ("return state.tell()", "return state", False),
        ("Begin.", "End.", False),
        ('print("start")', "self.report(3)", True),
        ("self.grow(self.size)", "pass", True),
        ("self.scale = torch.ones(size)", "self.scale = None", True),
    ],
)
def test_a_changed_body_counts_by_what_was_asked_of_it(
    old: str, new: str, again: bool, project: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    check("-j1", "--scope", "all", cwd=project, cache=cache)
    assert BASE.count(old) == 1
    edit(project, "pkg/base.py", BASE.replace(old, new))
    assert ("./pkg/user.py" in analysed(project, cache, "--scope", "all")) == again


def fact(name: str, function: str, text: str, tmp_path: Path) -> str:
    """Return the answer that a run records for a fact about a function in a text."""
    path = tmp_path / "base.py"
    path.write_text(text, encoding="utf-8")
    module = read_outline(text, path)
    owner, _, method = function.partition(".")
    info = module.classes[owner].methods[method] if method else module.functions[owner]
    reads: dict[str, str] = {}
    with noting(reads):
        FunctionFact(name, FACTS[name]).of(info)
    return reads[f"{path}{PART}{FACT}{name} {function} 0"]


@pytest.mark.parametrize(
    ("name", "function", "old", "new"),
    [
        ("own-calls", "Base.start", "self.grow(self.size)", "self.shrink(self.size)"),
        ("super-calls", "Base.__init__", "super().__init__()", "super().start()"),
        ("given-writes", "Base.report", "state.seen =", "state.met ="),
        ("kept-parameters", "Base.__init__", "self.size = size", "self.size = 3"),
        ("sets-attributes", "Base.grow", "raise NotImplementedError", "self.seen = state"),
        ("calls-itself", "Base.grow", "raise NotImplementedError", "self.grow(state)"),
        ("rebound-parameters", "Base.grow", "raise NotImplementedError", "state = value"),
        (
            "kept-loaders",
            "Base.grow",
            "raise NotImplementedError",
            "self.loader = value.prepare(state)",
        ),
        ("left-open", "Base.grow", "raise NotImplementedError", "return state"),
        ("may-only-call", "Base.start", '        print("start")\n', ""),
        ("returns-a-method-call", "Base.report", "return state.tell()", "return state"),
        ("docstring", "Base.start", "Begin.", "End."),
        ("speaks-of-booleans", "Base.start", "Begin.", "A boolean."),
        ("helper-size", "Base.start", '"""Begin."""', "\n" * 60 + "        pass"),
        ("long", "Base.start", '"""Begin."""', "\n" * 250 + "        pass"),
    ],
)
def test_a_fact_changes_with_what_it_says(
    name: str, function: str, old: str, new: str, tmp_path: Path
) -> None:
    assert BASE.count(old) == 1
    before = fact(name, function, BASE, tmp_path)
    moved = fact(name, function, f"# Moved.\n\n{BASE}", tmp_path)
    assert before == moved
    after = fact(name, function, BASE.replace(old, new), tmp_path)
    assert before != after


def test_every_fact_has_a_test() -> None:
    marks = test_a_fact_changes_with_what_it_says.pytestmark  # type: ignore[attr-defined]
    assert {row[0] for row in marks[0].args[1]} == set(FACTS)


@pytest.mark.parametrize(
    "path", ["nn/modules/module.py", "optim/optimizer.py", "utils/data/dataloader.py"]
)
def test_a_later_run_answers_as_the_one_that_asked(path: str) -> None:
    file = Path(torch.__file__).parent / path
    module = read_outline(file.read_text(encoding="utf-8"), file)
    reads: dict[str, str] = {}
    with noting(reads):
        classes = [module.classes[one.name] for one in module.spans if one.is_class]
        methods = [info for one in classes for info in one.functions]
        functions = [module.functions[one.name] for one in module.spans if not one.is_class]
        for name, find in list(FACTS.items()):
            for info in (*methods, *functions):
                FunctionFact(name, find).of(info)
        for one in classes:
            one.read_of("data")
    asked = {
        question.partition(PART)[2]: answer
        for question, answer in reads.items()
        if question.partition(PART)[2].startswith((FACT, READ_OF))
    }
    assert len(asked) > len(FACTS) * 20
    current = CurrentModule(str(file))
    assert {part: current.answer(part) for part in asked} == asked


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ('"""Begin."""', '"""End."""', False),
        ('"""Begin."""', '"""End.\n\n        It ends.\n        """', False),
        ('        """Begin."""\n', "", False),
        ('"""Begin."""', "# Begin.", False),
        ('"""Begin."""', '"""Begin."""; print(3)', True),
        ('print("start")', 'print("begun")', True),
    ],
)
def test_a_docstring_is_no_part_of_a_body(
    old: str, new: str, differs: bool, tmp_path: Path
) -> None:
    assert BASE.count(old) == 1
    function = BASE.partition("    def start")[2].partition("    def grow")[0]
    for before in (BASE, f"def start{function}".replace("\n    ", "\n")):
        part = "def Base.start" if before is BASE else "def start"
        then, now = parts_of(before), parts_of(before.replace(old, new))
        assert then is not None
        assert now is not None
        assert then.answer(part)
        assert (then.answer(part) != now.answer(part)) == differs


INNER = """\
class Outer:
    class Inner:
        def show(self):
            return self.size.text
"""


def test_what_a_class_in_a_class_reads_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "inner.py"
    path.write_text(INNER, encoding="utf-8")
    module = read_outline(INNER, path)
    reads: dict[str, str] = {}
    with noting(reads):
        assert "Outer" in module.classes
        assert module.classes["Outer.Inner"].read_of("size") == ("text",)
    part = f"{READ_OF}Outer.Inner size"
    assert CurrentModule(str(path)).answer(part) == reads[f"{path}{PART}{part}"]
    path.write_text(INNER.replace("text", "shape"), encoding="utf-8")
    assert CurrentModule(str(path)).answer(part) != reads[f"{path}{PART}{part}"]
