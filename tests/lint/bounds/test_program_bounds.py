"""Long chains through which a function may be run end, and are followed as far as they show it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from flake8_torchperf.program.running import Program
from flake8_torchperf.project.files import split_lines
from flake8_torchperf.project.module_index import read_module
from flake8_torchperf.project.resolver import Project

BODY = "def body(x):\n    return x\n\n\n"
MANY = 2000


def runs(folder: Path, text: str, name: str = "body") -> tuple[list[int], str]:
    """Return the lines that run a function of a text, and why there may be others."""
    path = folder / "code.py"
    path.write_text(text)
    module = read_module(ast.parse(text), split_lines(text), path)
    program = Program(Project(module))
    [info] = [one for one in module.defined if one.name == name]
    found = program.runs_of(info)
    return sorted(run.line for run in found.places), found.open


def test_a_long_chain_of_names(tmp_path: Path) -> None:
    names = "".join(f"a{one + 1} = a{one}\n" for one in range(MANY))
    text = f"{BODY}a0 = body\n{names}a{MANY}(1)\n"
    assert runs(tmp_path, text) == ([text.count("\n")], "")


def test_functions_that_return_one_anothers_results(tmp_path: Path) -> None:
    more = "".join(f"def f{one + 1}():\n    return f{one}()\n\n\n" for one in range(MANY))
    text = f"{BODY}def f0():\n    return body\n\n\n{more}f{MANY}()(1)\n"
    assert runs(tmp_path, text) == ([text.count("\n")], "")


def test_functions_that_return_one_another(tmp_path: Path) -> None:
    more = "".join(f"def f{one + 1}():\n    return f{one}\n\n\n" for one in range(MANY))
    text = f"{BODY}def f0():\n    return body\n\n\n{more}f{MANY}()()\n"
    found, why = runs(tmp_path, text)
    assert found == []
    assert why.endswith("too many functions return it")


def test_functions_that_pass_the_name_of_a_method_in_a_circle(tmp_path: Path) -> None:
    text = (
        "class Show:\n    def body(self, x):\n        return x\n\n\n"
        "def first(show, name):\n    second(show, name)\n\n\n"
        "def second(show, name):\n    getattr(show, name)(1)\n    first(show, name)\n\n\n"
        "first(Show(), 'body')\n"
    )
    found, why = runs(tmp_path, text)
    assert set(found) == {11}
    assert why == ""


def test_a_function_that_is_run_in_very_many_places(tmp_path: Path) -> None:
    text = BODY + "body(1)\n" * 2 * MANY
    found, why = runs(tmp_path, text)
    assert len(found) < 2 * MANY
    assert why == "it is handed on too often"


def classes_held(folder: Path, text: str, word: str) -> set[str]:
    """Return the names of the classes of the project that the last use of a name may hold."""
    path = folder / "code.py"
    path.write_text(text)
    module = read_module(ast.parse(text), split_lines(text), path)
    uses = [
        node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr == word and isinstance(node.ctx, ast.Load)
    ]
    found = Program(Project(module)).objects_of(uses[-1], module)
    return {one.definition.name for one in found if one and not isinstance(one.definition, str)}


def test_an_attribute_that_is_bound_to_itself_very_often(tmp_path: Path) -> None:
    # As `t2s_model` of GPT_SoVITS/TTS_infer_pack/TTS.py, which is moved and converted.
    again = "        self.model = self.model.to(place).float()\n" * 200
    text = (
        "class Net:\n    pass\n\n\nclass Talker:\n    def load(self, place):\n"
        f"        self.model = Net()\n{again}\n    def talk(self):\n        self.model.run()\n"
    )
    assert classes_held(tmp_path, text, "model") == {"Net"}


def test_functions_that_return_one_another_in_many_ways(tmp_path: Path) -> None:
    ways = "".join(f"    if x == {one}:\n        return make{{}}(x)\n" for one in range(40))
    makers = "".join(f"def make{one}(x):\n{ways.format(*[one + 1] * 40)}\n\n" for one in range(12))
    text = (
        f"class Net:\n    pass\n\n\n{makers}def make12(x):\n    return Net()\n\n\n"
        "class Talker:\n    def __init__(self, x):\n        self.model = make9(x)\n\n"
        "    def talk(self):\n        self.model.run()\n"
    )
    assert classes_held(tmp_path, text, "model") == {"Net"}


@pytest.mark.parametrize(
    "circle",
    [
        "def first():\n    return second()\n\n\ndef second():\n    return first() or body\n",
        "held = [body]\nheld[0] = held\nheld.append(held)\n",
        "def again(f=body):\n    return again(f)\n",
        "x = body\nx = y = x\ny = x\n",
    ],
)
def test_circles_end(tmp_path: Path, circle: str) -> None:
    found, _ = runs(tmp_path, BODY + circle)
    assert found == []


def test_a_name_that_is_bound_to_itself_very_often(tmp_path: Path) -> None:
    lines = "    x = x.part(x.other)\n" * MANY
    text = (
        f"class Meter:\n    def body(self):\n        pass\n\n\ndef use(x):\n{lines}    x.body()\n"
    )
    assert runs(tmp_path, text) == ([text.count("\n")], "")


def test_star_imports_of_modules_that_are_not_there(tmp_path: Path) -> None:
    """As a part of a package has them: each leads back to the package that holds them all."""
    package = tmp_path / "pkg"
    package.mkdir()
    stars = "".join(f"from .part{one} import *\n" for one in range(100))
    (package / "__init__.py").write_text(stars)
    text = f"from pkg.part1 import decorate\n\n\n{BODY}decorate(body)\nbody(1)\n"
    found, why = runs(tmp_path, text)
    assert (found, why) == ([9], "`decorate` is given it")
