"""A file depends on what was learned from the outlines of others, not on their texts."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from test_cache import NET, TRAINS, analysed, check, edit

from flake8_torchperf.program.outlines.asked import AskedOutline, answer
from flake8_torchperf.program.outlines.outline import Kind
from flake8_torchperf.program.outlines.outlining import outline_of
from flake8_torchperf.project.answers import PART, noting
from flake8_torchperf.project.lazy_index import parts_of, read_outline

if TYPE_CHECKING:
    from pathlib import Path

    from flake8_torchperf.program.outlines.outline import Outline

# It names a class, and holds a function beside.
ASKS = '''\
from pkg.net import Net


def is_net(x):
    """True for a network."""
    return isinstance(x, Net)


def size(name):
    if name == "small":
        return 1
    raise ValueError(name)


print(is_net(3), size("small"))
'''
# How the module changes -> if the file of the class is looked at again.
EDITS = {
    "a statement of another function": (ASKS.replace("return 1", "return len(name)"), False),
    "a new statement in another function": (
        ASKS.replace("    if name", "    name = name.lower()\n    if name"),
        False,
    ),
    "a new function at the end": (f"{ASKS}\n\ndef other(x):\n    return x + 1\n", False),
    "a statement above": (ASKS.replace('    """True', '    print(x)\n    """True'), False),
    "blank lines and a comment": (ASKS.replace("\n\n\n", "\n\n# Asks.\n\n\n"), False),
    "a docstring": (ASKS.replace("True for", "Tell"), False),
    "the class is made": (ASKS.replace("isinstance(x, Net)", "Net()"), True),
    "another name for the class": (ASKS.replace("import Net", "import Net as Net"), False),
    "the class is made at the module level": (f"{ASKS}\nnet = Net()\n", True),
    "a text that is not Python": (f"{ASKS}\ndef (\n", True),
}


def checked(tmp_path: Path, files: dict[str, str]) -> tuple[Path, Path, str]:
    """Check a new package ``pkg`` with some files; its folder, its cache and the output."""
    project, cache = tmp_path / "project", tmp_path / "cache"
    (project / "pkg").mkdir(parents=True)
    for name, text in {"pkg/__init__.py": "", **files}.items():
        edit(project, name, text)
    return project, cache, check(cwd=project, cache=cache).output


@pytest.mark.parametrize(("text", "again"), EDITS.values(), ids=list(EDITS))
def test_what_uses_a_class_is_looked_at(text: str, again: bool, tmp_path: Path) -> None:
    files = {
        "requirements.txt": "torch\n",
        "pkg/net.py": NET,
        "pkg/asks.py": ASKS,
        "pkg/train.py": f"{TRAINS}\n\nif __name__ == '__main__':\n    train(1, 2, 3)\n",
    }
    project, cache, output = checked(tmp_path, files)
    assert "pkg/net.py" not in output
    edit(project, "pkg/asks.py", text)
    assert ("./pkg/net.py" in analysed(project, cache)) == again


# What a module of the package says of recording -> if other files depend on its functions for it.
SAYS_OF_RECORDING = {
    "a docstring": ('"""Compiles with `mode="reduce-overhead"`."""\n', False),
    "a comment": ('MODE = "default"  # not "reduce-overhead", whose graphs\n', False),
    "code": ('import torch\n\nfast = torch.compile(print, mode="reduce-overhead")\n', True),
}


@pytest.mark.parametrize(("says", "again"), SAYS_OF_RECORDING.values(), ids=SAYS_OF_RECORDING)
def test_words_that_people_read_record_nothing(says: str, again: bool, tmp_path: Path) -> None:
    sums = "import torch\n\n\ndef total(x):\n    return torch.sum(x).item()\n"
    files = {"pkg/asks.py": f"{says}{ASKS}", "pkg/sums.py": sums}
    project, cache, _ = checked(tmp_path, files)
    edit(project, "pkg/asks.py", f"{says}{ASKS.replace('return 1', 'return 2')}")
    assert ("./pkg/sums.py" in analysed(project, cache)) == again


NAMES_COLLATORS = """\
from torch.utils.data import DataLoader

from pkg.net import Net


def joined(batch):
    return batch


class Small(Net):
    size = 3


def loader(data):
    return DataLoader(data, collate_fn=joined, num_workers=2)
"""
# How a module changes that may hand the methods of a class to a loader -> if the class's file is
# looked at again.
COLLATORS = {
    "a body": ("return batch", "return list(batch)", False),
    "a line above all": ("from torch", "\n\nfrom torch", False),
    "another collator": ("collate_fn=joined", "collate_fn=Small()", True),
    "another base": ("Small(Net)", "Small(list)", True),
}


@pytest.mark.parametrize(("old", "new", "again"), COLLATORS.values(), ids=COLLATORS)
def test_what_makes_batches_is_looked_at(old: str, new: str, again: bool, tmp_path: Path) -> None:
    net = f"{NET}\n    def __call__(self, x):\n        return x.sum().item()\n"
    project, cache, _ = checked(tmp_path, {"pkg/net.py": net, "pkg/loading.py": NAMES_COLLATORS})
    edit(project, "pkg/loading.py", NAMES_COLLATORS.replace(old, new))
    assert ("./pkg/net.py" in analysed(project, cache)) == again


BODIES = """\
import torch


class Shape:
    sides: int = 4

    def area(self, x):
        y = 2 * x if self.sides else x
        return y.sum()


def half(x):
    return x / 2


def total(shape, xs):
    return sum(shape.area(half(x)) for x in xs)
"""


def outline(text: str) -> Outline:
    return outline_of(ast.parse(text))


def told(made: Outline, asked: list[str]) -> list[str]:
    return [answer(made, one, lambda: b"") for one in asked]


def questions() -> list[str]:
    """Look things up as one who follows `Shape.area` does; which questions that were."""
    asked: list[str] = []
    seen = AskedOutline(outline(BODIES), asked.append)
    klass = seen.classes[seen.class_named[0, "Shape"]]
    body = klass.methods["area"]
    assert seen.bodies[body].qualname == "Shape.area"
    for root in seen.results[body]:
        assert seen.nodes[root].kind == Kind.RETURNED
    assert seen.bound[body, "y"]
    assert "area" in seen.by_word
    return asked


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("x / 2", "x / 2 + x", False),
        ("import torch\n", "import torch\n\n# A comment.\n", False),
        ("        return y.sum()", "        return y.mean()", True),
        ("if self.sides", "if self.faces", True),
        ("sum(shape.area(half(x))", "sum(shape.area(x)", True),
        ("def area(self, x)", "def area(self, x, y)", True),
        ("class Shape:", "class Shape(Base):", False),
        ("    sides: int = 4\n\n", "    sides: int = 4\n\n    def side(self): ...\n\n", True),
    ],
)
def test_the_answers_are_what_the_statements_there_say(old: str, new: str, differs: bool) -> None:
    asked = questions()
    assert old in BODIES
    before = told(outline(BODIES), asked)
    assert before == told(outline(BODIES), asked)
    assert (before != told(outline(BODIES.replace(old, new)), asked)) == differs


def test_lines_count_only_where_two_are_compared() -> None:
    text = "def f(x):\n    g(x)\n    h(x)\n"
    swapped = text.replace("g", "_").replace("h(", "g(").replace("_", "h")
    more = text.replace("    h(x)", "    x.item()\n    h(x)")
    asked: list[str] = []
    seen = AskedOutline(outline(text), asked.append)
    (first,), (second,) = seen.by_word["g"], seen.by_word["h"]
    apart = [*asked]
    assert told(outline(text), apart) == told(outline(swapped), apart)
    assert told(outline(text), apart) == told(outline(more), apart)
    assert seen.is_below(second, first)
    assert not seen.is_below(first, second)
    assert told(outline(text), asked) != told(outline(swapped), asked)
    assert told(outline(text), asked) == told(outline(f"\n{text}"), asked)


def test_the_lines_of_a_statement_count() -> None:
    text = "g(x,\n  y)\n"
    asked = ["outline by_word y"]
    assert told(outline(text), asked) != told(outline("g(x,  y)\n"), asked)
    assert told(outline(text), asked) == told(outline("g(x,\n\n  y)\n"), asked)


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("return x / 2", "return x / 3 + x", True),
        ("y = 2 * x if", "y = 3 * x if", False),
        ("half(x)) for x", "x) for x", False),
    ],
)
def test_a_local_name_is_asked_for_in_its_own_function(old: str, new: str, differs: bool) -> None:
    asked: list[str] = []
    seen = AskedOutline(outline(BODIES), asked.append)
    (half,) = seen.by_qualname["half"]
    assert seen.outermost(half) == half
    assert len(seen.by_word_inside[half, "x"]) == 1
    before = told(outline(BODIES), asked)
    assert old in BODIES
    assert (before != told(outline(BODIES.replace(old, new)), asked)) == differs


def test_a_local_name_is_found_in_functions_inside() -> None:
    text = "def around(g):\n    def inside():\n        return (lambda: g)()\n    return inside, g\n"
    seen = outline(f"g = 1\n{text}print(g)\n")
    found = seen.by_word_inside[1, "g"]
    assert [seen.bodies[seen.nodes.bodies[one]].name for one in found] == ["<lambda>", "around"]


def test_no_question_is_for_all_nodes() -> None:
    with pytest.raises(TypeError):
        list(AskedOutline(outline(BODIES), [].append).by_word)


UNPACKS = """\
class Trainer:
    def __init__(self):
        self.loader, self.size = made()
"""


@pytest.mark.parametrize("new", ["self.size, self.loader", "self.other, self.size"])
def test_an_attribute_among_several_targets_is_asked_for(new: str) -> None:
    asked: list[str] = []
    assert AskedOutline(outline(UNPACKS), asked.append).unpacked["loader"]
    changed = outline(UNPACKS.replace("self.loader, self.size", new))
    assert told(outline(UNPACKS), asked) != told(changed, asked)


IMPORTS = """\
import typing
from torch import nn
from .sizes import size

try:
    import numpy as np
except ImportError:
    np = None
"""


@pytest.mark.parametrize(
    ("old", "new", "differs"),
    [
        ("import typing\n", "", False),
        ("from .sizes import size\n", "", False),
        ("import numpy as np", "import scipy as np", False),
        ("import typing\n", "import torch\n", True),
        ("from torch import nn", "from torch import fx as nn", True),
        ("import typing\n", "from .stubs import nn\n", True),
        ("from torch import nn\n", "", True),
        ("from .sizes", "from ...torch", True),
        ("import numpy as np", "import torch as np", True),
    ],
)
def test_imports_of_other_packages_do_not_count(old: str, new: str, differs: bool) -> None:
    before, after = parts_of(IMPORTS), parts_of(IMPORTS.replace(old, new))
    assert before is not None
    assert after is not None
    assert (before.answer("from torch") != after.answer("from torch")) == differs


def test_only_the_imports_of_a_package_are_asked_for(tmp_path: Path) -> None:
    module = read_outline(IMPORTS, tmp_path / "net.py")
    reads: dict[str, str] = {}
    with noting(reads):
        assert module.imported_from(("torch", "jax")) == {"nn": "torch.nn"}
    assert [one.partition(PART)[2] for one in reads] == ["from jax torch"]


CLASS_BETWEEN = """\
from pkg.visitors import Visitor

try:
    class Counts(Visitor):
        pass
except ImportError:
    Counts = None
"""


def test_the_making_of_a_map_is_no_question(tmp_path: Path) -> None:
    reads: dict[str, str] = {}
    with noting(reads):
        module = read_outline(CLASS_BETWEEN, tmp_path / "counts.py")
        assert not reads
        assert "Counts" in module.classes
    assert {one.partition(PART)[2] for one in reads} == {"head Counts", "head Visitor"}


WAITS = "import torch\n\n\ndef mean(x: torch.Tensor):\n    return x.mean().item()\n"
ENGINE = """\
from pkg.waits import mean


def told(x):
    return str(x)


class Engine:
    def show(self, x):
        return told(x)

    def run(self, model, loader, optimizer):
        for x in loader:
            loss = model(x)
            loss.backward()
            optimizer.step()
            print(mean(loss))
"""
# How a module changes whose loop calls a function that waits -> if the function's file is looked at
# again. Its finding names the line of the call.
CALLERS = {
    "another function": ("return str(x)", "return repr(x)", False),
    "another method": ("return told(x)", "return told(x) or x", False),
    "another class": ("class Engine:", "class Small:\n    size = 3\n\n\nclass Engine:", True),
    "a comment above the call": (
        "            loss = ",
        "            # Runs it.\n            loss = ",
        True,
    ),
    "a comment behind the call": ("mean(loss))\n", "mean(loss))\n            # Shown.\n", False),
    "the loop": ("optimizer.step()", "pass", True),
}


@pytest.mark.parametrize(("old", "new", "again"), CALLERS.values(), ids=CALLERS)
def test_what_calls_a_function_is_looked_at(
    old: str, new: str, again: bool, tmp_path: Path
) -> None:
    project, cache, output = checked(tmp_path, {"pkg/waits.py": WAITS, "pkg/engine.py": ENGINE})
    assert "called by `run` at line 17" in output
    edit(project, "pkg/engine.py", ENGINE.replace(old, new))
    assert ("./pkg/waits.py" in analysed(project, cache)) == again


STARTS = """\
import json

from pkg.waits import mean

print(json.dumps({}))


def told(x):
    return str(x)


if __name__ == "__main__":
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        print(mean(loss))
"""
# How a program changes whose loop at module level calls a function that waits -> if the function's
# file is looked at again.
LEVELS = {
    "a function": ("return str(x)", "return repr(x)", False),
    "an import": ("import json", "import json as json", False),
    "another statement": ("json.dumps({})", "json.dumps([])", True),
    "the loop": ("optimizer.step()", "pass", True),
}


@pytest.mark.parametrize(("old", "new", "again"), LEVELS.values(), ids=LEVELS)
def test_what_a_program_calls_is_looked_at(old: str, new: str, again: bool, tmp_path: Path) -> None:
    project, cache, _ = checked(tmp_path, {"pkg/waits.py": WAITS, "main.py": STARTS})
    edit(project, "main.py", STARTS.replace(old, new))
    assert ("./pkg/waits.py" in analysed(project, cache)) == again


COMPILES = """\
import torch

from pkg.net import Net


def size(name):
    return 1 if name == "small" else 2


model = torch.compile(Net())
print(size("small"), model)
"""
COMPILED_NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        return x * 2 if x.sum() > 0 else x
"""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (COMPILES.replace("1 if", "3 if"), ""),
        (COMPILES.replace("torch.compile(Net())", "Net()"), "TPF301"),
        (COMPILES.replace("(Net())", "(Net(), fullgraph=True)"), "an error under fullgraph"),
    ],
    ids=["another function", "no longer compiled", "by another option"],
)
def test_what_others_compile_is_asked_again(text: str, code: str, tmp_path: Path) -> None:
    files = {
        "requirements.txt": "torch\n",
        "pkg/net.py": COMPILED_NET,
        "pkg/compiles.py": COMPILES,
        "pkg/train.py": f"{TRAINS}\n\nif __name__ == '__main__':\n    train(1, 2, 3)\n",
    }
    project, cache, output = checked(tmp_path, files)
    assert "TPF603" in output
    edit(project, "pkg/compiles.py", text)
    assert ("./pkg/net.py" in analysed(project, cache)) == bool(code)
    assert code in check(cwd=project, cache=cache).output
