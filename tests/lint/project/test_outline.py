"""The outline of an imported module says what the full map of it says."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest

from flake8_torchperf.project.lazy_index import bindings, cut, parts_of, read_outline, split
from flake8_torchperf.project.module_index import ModuleMap, read_module

HERE = Path(__file__).resolve()
LIBRARY = Path(sysconfig.get_paths()["stdlib"])
# Modules with decorators, conditional definitions, star imports, long strings and much else.
FILES = ["typing.py", "dataclasses.py", "argparse.py", "decimal.py", "ssl.py", "turtle.py",
         "asyncio/__init__.py", "unittest/mock.py", "tokenize.py", "pydoc.py"]  # fmt: skip

TRICKY = {
    "text at column 0 in a docstring": '"""Doc\ndef no(): pass\n"""\ndef f():\n    return 1\n',
    "text at column 0 in a function": 'def f():\n    """\ndef no(): pass\n    """\n\nx = f()\n',
    "decorators on several lines": "@a(\n    1,\n)\n@b\ndef f(\n    x,\n):\n    return x\n",
    "a closing bracket at column 0": "def f(\n    x\n):\n    return [\n    x\n]\ny = 2\n",
    "arguments at column 0": "def f(x,\ny):\n    return x\n\ndef g():\n    return 1\n",
    "one line": "def f(): return 1\nclass C: pass\n",
    "defined twice": "def f(): return 1\ndef f(): return 2\nclass C: a = 1\nclass C: b = 1\n",
    "conditional": "if x:\n    def f(): pass\nelse:\n    class C: pass\n",
    "async": "async def f():\n    await g()\n",
    "quotes in a comment": '# it\'s """ three\ndef f():\n    return 1\n',
    "quotes in other quotes": 'x = \'"""\'\ndef f():\n    return 1\n',
    "nested": "class A:\n    class B:\n        def m(self): pass\n",
    "empty": "",
    "Windows lines": "import torch\r\n\r\ndef f():\r\n    return 1\r\nx = 1\r\n",
    "no line end": "def f():\n    return 1",
}


def described(module: ModuleMap) -> dict[str, object]:
    """All that a map says, expressions and definitions as text with their lines."""
    named = [n.name for n in ast.walk(module.tree) if hasattr(n, "name") and n.name]
    # A type alias of Python 3.12 has a node for its name.
    names = sorted({name for name in named if isinstance(name, str)})
    return {
        "imports": module.imports,
        "stars": module.stars,
        "constants": {k: [ast.dump(v) for v in vs] for k, vs in module.constants.items()},
        "annotations": {k: ast.dump(v) for k, v in module.annotations.items()},
        "functions": {
            name: ast.dump(module.functions[name].node, include_attributes=True)
            for name in names
            if name in module.functions
        },
        "classes": {
            name: (ast.dump(info.node, include_attributes=True), sorted(info.methods), info.bases)
            for name in names
            if (info := module.classes.get(name)) is not None
        },
    }


@pytest.mark.parametrize("text", TRICKY.values(), ids=TRICKY)
def test_it_says_what_the_full_map_says(text: str) -> None:
    full = described(read_module(ast.parse(text), (text,), HERE))
    assert described(read_outline(text, HERE)) == full


@pytest.mark.parametrize("name", FILES)
def test_it_says_what_the_full_map_of_a_real_module_says(name: str) -> None:
    path = LIBRARY / name
    text = path.read_text(encoding="utf-8")
    full = described(read_module(ast.parse(text), (text,), path))
    outline = read_outline(text, path)
    assert described(outline) == full
    assert len(outline.functions) + len(outline.classes) >= len(full["functions"])  # type: ignore[arg-type]


def source(name: str) -> str:
    return (LIBRARY / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in FILES if parts_of(source(name)) is not None])
def test_parts_of_what_was_parsed_for_others_are_those_of_the_text(name: str) -> None:
    rest, definitions = cut(source(name))
    module = read_outline(source(name), LIBRARY / name)
    named = {*module.imports, *module.constants, *module.annotations}
    assert named
    assert named <= {*bindings(rest, ast.parse(rest).body).names}
    for _, text, line in definitions:
        there = ast.parse("\n" * (line - 1) + text).body
        assert split(text, (there, line - 1)) == split(text)


def test_what_nobody_asks_for_is_not_parsed() -> None:
    module = read_outline("x = 1\n\ndef f():\n    return (\n", HERE)
    assert list(module.constants) == ["x"]
    assert "f" not in module.functions  # parsed now, and no Python


def test_a_file_that_is_no_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        read_outline("x = (\n", HERE)


@pytest.mark.filterwarnings("error")
def test_what_python_warns_of_in_it_is_not_said_here() -> None:
    text = 'PATH = "\\d"\ndef f():\n    return "\\w"\n'
    module = read_outline(text, Path("neighbour.py"))
    assert ast.unparse(module.functions["f"].node.body[0]) == "return '\\\\w'"
    assert list(module.constants) == ["PATH"]
