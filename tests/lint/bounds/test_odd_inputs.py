"""Whatever is in a file: findings or silence or one TPF900, and never a traceback."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest
from flake8_run import flake8
from linting import ALL, HOT, LOOP, findings

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

READ = "def step(x: torch.Tensor):\n    return x.item()\n"
HEAD = "import torch\n"


def survive(source: str, options: Options) -> list[Finding]:
    """Lint, and fail by the error's type alone: a deep tree takes minutes to print."""
    try:
        return lint(source, "model.py", options)
    except Exception as error:  # whatever it is, it is the failure
        name = type(error).__name__
    pytest.fail(f"lint raised {name}", pytrace=False)


def parse(source: str) -> None:
    """Skip what the ast of this Python cannot hold: flake8 never hands that over."""
    try:
        ast.parse(source)
    except (RecursionError, SyntaxError):
        pytest.skip("this Python cannot parse it")


def rows(source: str) -> list[tuple[int, int, str]]:
    return [(f.line, f.column, f.code) for f in lint(source, "model.py", HOT)]


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        pytest.param(HEAD + READ, 3, 11, id="as usual"),
        pytest.param((HEAD + READ).rstrip("\n"), 3, 11, id="no newline at the end"),
        pytest.param((HEAD + READ).replace("\n", "\r\n"), 3, 11, id="CRLF"),
        pytest.param((HEAD + READ).replace("    ", "\t"), 3, 8, id="tabs"),
        pytest.param(HEAD + "\f\n" + READ, 4, 11, id="a form feed between functions"),
        pytest.param(HEAD + "\f" + READ, 3, 11, id="a form feed before a function"),
        pytest.param(
            HEAD + READ.replace("    return", "    \f\n    return"), 4, 11, id="and inside"
        ),
        pytest.param("# coding: latin-1\n" + HEAD + READ, 4, 11, id="an encoding comment"),
        pytest.param("#!/usr/bin/env python\n" + HEAD + READ, 4, 11, id="a shebang"),
        pytest.param(HEAD + READ + "\n\n# the end", 3, 11, id="a comment at the end"),
        pytest.param(
            HEAD + READ.replace("return", "s = 'ä€😀'; return"), 3, 22, id="wide characters before"
        ),
        pytest.param(HEAD + READ.replace("step", "шаг_step"), 3, 11, id="a name in another script"),
        pytest.param(
            HEAD + READ.replace("return x", "return \\\n    x"), 4, 4, id="a continuation line"
        ),
        pytest.param(
            HEAD + "if True:\n  if True:\n    " + READ.replace("\n    ", "\n       "),
            5,
            14,
            id="uneven indents",
        ),
        pytest.param(
            HEAD
            + 'def step(x: torch.Tensor):\n    """Two\nlines, not indented."""\n    x.item()\n',
            5,
            4,
            id="a docstring at the margin",
        ),
        pytest.param(HEAD + "def step(x: torch.Tensor): x.item()\n", 2, 27, id="on one line"),
        pytest.param(
            HEAD + "def step(x: torch.Tensor): pass; x.item(); pass\n", 2, 33, id="semicolons"
        ),
        pytest.param(
            HEAD
            + "class A:\n    @property\n    def step(self): return torch.ones(3, device=d).item()\n",
            4,
            27,
            id="a decorated method on one line",
        ),
    ],
)
def test_the_place_is_right(source: str, line: int, column: int) -> None:
    assert rows(source) == [(line, column, "TPF101")]


def test_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(b"\xef\xbb\xbf" + (HEAD + READ).encode())
    run = flake8("--select=TPF,E9", path)
    assert [(r.line, r.column, r.code) for r in run.results] == [(3, 12, "TPF101")]


def test_latin_1_text(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(("# -*- coding: latin-1 -*-\n# \xe4\xdf\n" + HEAD + READ).encode("latin-1"))
    run = flake8("--select=TPF,E9", path)
    assert [(r.line, r.column, r.code) for r in run.results] == [(5, 12, "TPF101")]
    assert run.errors == ""


@pytest.mark.parametrize(
    "source",
    ["", "\n", "\n\n\n", "   \n", "# only\n# comments", "\f", "\r\n", "pass", "...\n"],
)
def test_hardly_a_file(source: str) -> None:
    assert findings(source) == []
    assert findings(source + "\n# torch\n") == []


DEEP = {
    "200 parentheses": "def step(x: torch.Tensor):\n    return " + "(" * 190 + "x" + ")" * 190
    + ".item()\n",
    "200 operators, nested to the right": "def step(x: torch.Tensor):\n    return ("
    + "x + (" * 90 + "x" + ")" * 91 + ".item()\n",
    "300 operators, nested to the left": "def step(x: torch.Tensor):\n    return ("
    + " + ".join(["x"] * 300) + ").item()\n",
    "3,000 terms": "def step(x: torch.Tensor):\n    return (" + " + ".join(["x"] * 3000)
    + ").item()\n",
    "3,000 numbers": "def step(x: torch.Tensor):\n    n = " + " + ".join(["1"] * 3000)
    + "\n    return x.item()\n",
    "1,000 calls in a chain": "def step(x: torch.Tensor):\n    return x" + ".abs()" * 1000
    + ".item()\n",
    "1,000 attributes in a chain": "def step(x: torch.Tensor):\n    return x" + ".T" * 1000
    + ".item()\n",
    "a list of 5,000": "def step(x: torch.Tensor):\n    n = [" + "1, " * 5000
    + "]\n    return x.item()\n",
    "90 lists in lists": "def step(x: torch.Tensor):\n    n = " + "[" * 90 + "x" + "]" * 90
    + "\n    return x.item()\n",
    "900 elifs": "def step(x: torch.Tensor, n: int):\n    if n == 0:\n        pass\n"
    + "".join(f"    elif n == {i}:\n        pass\n" for i in range(900)) + "    return x.item()\n",
    "2,000 statements": "def step(x: torch.Tensor):\n" + "    x = x + 1\n" * 2000
    + "    return x.item()\n",
    "18 loops in loops": "def step(x: torch.Tensor):\n"
    + "".join("    " * (i + 1) + f"for i{i} in range(3):\n" for i in range(18))
    + "    " * 19 + "x.item()\n",
    "60 functions in functions": "".join(
        "    " * i + f"def step{i}(x: torch.Tensor):\n" for i in range(60)
    ) + "    " * 60 + "return x.item()\n",
    "500 functions that call the next": "".join(
        f"def f{i}(x):\n    return f{i + 1}(x)\n" for i in range(500)
    ) + "def f500(x):\n    return x\ndef step(x: torch.Tensor):\n    return f0(x).item()\n",
    "60 classes on one another": "class A0:\n    x: torch.Tensor\n" + "".join(
        f"class A{i + 1}(A{i}):\n    pass\n" for i in range(60)
    ) + "class Net(A60):\n    def step(self):\n        return self.x.item()\n",
    "12 branches, twice each": "def step(x: torch.Tensor, n: int):\n    y = 0\n"
    + "".join(f"    if n == {i}:\n        y = x\n    else:\n        y = {i}\n" for i in range(24))
    + "    return x.item()\n",
    "a name of 5,000 letters": "def step(x: torch.Tensor):\n    " + "a" * 5000
    + " = x\n    return x.item()\n",
}  # fmt: skip


@pytest.mark.parametrize("source", list(DEEP.values()), ids=list(DEEP))
@pytest.mark.parametrize("options", [HOT, LOOP, ALL], ids=["hot", "loop", "all"])
def test_deep_and_long(source: str, options: Options) -> None:
    parse(HEAD + source)
    found = survive(HEAD + source, options)
    assert {f.code for f in found} <= {"TPF101", "TPF900"}
    for f in found:
        assert f.code == "TPF101" or (f.line, f.column) == (1, 0)
        assert "\n" not in f.message


@pytest.mark.parametrize(
    "name",
    [
        "300 operators, nested to the left", "3,000 numbers", "90 lists in lists", "2,000 statements", "18 loops in loops", "60 functions in functions",
        "60 classes on one another", "12 branches, twice each", "a list of 5,000",
        "a name of 5,000 letters",
    ],
)  # fmt: skip
def test_size_hides_nothing(name: str) -> None:
    parse(HEAD + DEEP[name])
    found = survive(HEAD + DEEP[name], HOT)
    assert [f.code for f in found] == ["TPF101"]


CYCLES = {
    "a class that is its own base": "class A(A):\n    def step(self):\n        return float(self.x)\n",
    "two classes that are each other's": (
        "class A(B):\n    pass\nclass B(A):\n    def step(self): return float(self.x)\n"
    ),
    "an alias of itself": "A = list[A]\ndef step(x: A): return float(x[0])\n",
    "aliases of each other": "A = B\nB = A\ndef step(x: A): return float(x)\n",
    "a function that returns itself": "def f(): return f\ndef step(): return float(f()()())\n",
    "an attribute that holds its owner": (
        "class A:\n    def __init__(self): self.a = self\n"
        "    def step(self): return float(self.a.a.a.a)\n"
    ),
    "a list that holds itself": "def step(n):\n    a = []\n    a.append(a)\n    return float(a[0][0])\n",
    "a dict that grows in a loop": (
        "def step(n):\n    d = {}\n    for i in range(n):\n        d = {'d': d, i: d}\n"
        "    return float(d['d']['d'])\n"
    ),
    "a closure that calls itself": "def step(x):\n    f = lambda y: f(y)\n    return float(f(x))\n",
    "constants that need each other": "A = B + 1\nB = A + 1\ndef step(x): return float(A)\n",
    "a property that asks itself": (
        "class A:\n    @property\n    def p(self): return self.p\n"
        "    def step(self): return float(self.p)\n"
    ),
    "a module that imports itself": "from model import step\ndef step(x): return float(step(x))\n",
}


@pytest.mark.parametrize("source", list(CYCLES.values()), ids=list(CYCLES))
def test_circles_come_to_an_end(source: str) -> None:
    assert survive(HEAD + source, ALL) == []


def test_a_file_that_imports_itself(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(HEAD + "from model import step as other\nfrom . import model\n" + READ)
    assert [f.code for f in lint(path.read_text(), str(path), HOT)] == ["TPF101"]


def test_neighbours_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "binary.py").write_bytes(b"\x00\xff\xfe")
    (tmp_path / "folder.py").mkdir()
    path = tmp_path / "model.py"
    path.write_text(
        HEAD + "from broken import a\nfrom binary import b\nfrom folder import c\nimport gone\n"
        "from .broken import d\nfrom .. import e\nfrom .gone import f\n" + READ
        + "def other_step(x):\n    return float(a(x)) + float(b(c(x))) + float(d(e(f(x))))\n"
    )  # fmt: skip
    assert [f.code for f in lint(path.read_text(), str(path), HOT)] == ["TPF101"]


@pytest.mark.parametrize(
    "source",
    [
        "def (:\n",
        "import torch\nx = \n",
        "x = (\n",
        pytest.param(
            "\x00",
            marks=pytest.mark.skipif(
                sys.version_info < (3, 11, 4), reason="flake8 itself ends in a ValueError"
            ),
        ),
        "if True:\nx\n",
        "\tx\n y\n",
    ],
)
def test_a_syntax_error_is_left_to_flake8(source: str) -> None:
    run = flake8("--select=TPF,E9", "-", stdin=source)
    assert all(not code.startswith("TPF") for code in run.codes)
    assert "Traceback" not in run.errors


ODD = {
    "type parameters": "def step[T: torch.Tensor](x: T) -> T:\n    return x.item()\n",
    "a type statement": "type Batch = dict[str, torch.Tensor]\ndef step(b: Batch): return b['x']\n",
    "nested quotes in an f-string": "def step(x: torch.Tensor):\n    return f\"{x.shape[f'{0}']}\"\n",
    "an f-string's debug form": "def step(x: torch.Tensor):\n    return f'{x.shape = !r:>{10}}'\n",
    "annotations that are no types": (
        "def step(x: 'the first', y: 3, z: [int], *, k: (lambda: 1), w: '') -> 'a number':\n"
        "    return float(x)\n"
    ),
    "a star in an index": "def step(x: torch.Tensor, i):\n    return x[*i, :]\n",
    "positional only and keyword only": "def step(a, /, b, *, c): return float(a)\n",
    "del of nothing": "def step(x):\n    del x, (y, z)\n    return float(x)\n",
    "global of nothing": "def step():\n    global gone\n    return float(gone)\n",
    "a print without parentheses in text": "def step(x):\n    'print x'\n    return float(x)\n",
    "an ellipsis index": "def step(x: torch.Tensor):\n    return x[..., None, ::2, -1]\n",
    "a matrix product in place": "def step(x: torch.Tensor, y):\n    x @= y\n    return x\n",
    "an await in an f-string": "async def step(f):\n    return f'{await f()}'\n",
    "a lambda with everything": "def step(f=lambda a, /, b=1, *c, d, **e: a): return float(f(1))\n",
    "a class in a function": (
        "def step(n):\n    class A:\n        x = n\n        def step(self): return float(self.x)\n"
        "    return A().step()\n"
    ),
    "assignment to everything": (
        "def step(a):\n    a.b, a[0], *a.c, (d, [e, *f]) = a\n    for a.b in a: pass\n"
        "    with a as a[1], a as (g, h): pass\n    a.b += 1; a[0] -= 1\n    return float(d)\n"
    ),
}


@pytest.mark.parametrize("source", list(ODD.values()), ids=list(ODD))
def test_odd_syntax(source: str) -> None:
    parse(HEAD + source)
    assert {f.code for f in survive(HEAD + source, ALL)} <= {"TPF101", "TPF900"}


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    long = "a" * 300
    path = tmp_path / "model.py"
    path.write_text(
        f"{HEAD}from {long} import b\nimport {'.'.join(['c'] * 3000)}\nfrom .{long}.d import e\n{READ}"
        f"def other_step(x):\n    return float(b(e(c.c.c(x))))\n"
    )
    assert [f.code for f in lint(path.read_text(), str(path), HOT)] == ["TPF101"]
    for name in (f"{long}.py", "/".join(["a"] * 3000), "a\0b", "", "-", "stdin", "\udcff.py"):
        assert [f.code for f in lint(HEAD + READ, name, HOT)] == ["TPF101"]


def test_neighbours_that_never_end(tmp_path: Path) -> None:
    """A link to a device, a pipe without a writer, a link to itself, a file as long as a disk."""
    (tmp_path / "endless.py").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    with open(tmp_path / "huge.py", "wb") as file:
        file.truncate(10**11)
    path = tmp_path / "model.py"
    path.write_text(
        f"{HEAD}from endless import a\nfrom pipe import b\nfrom loop import c\nfrom huge import d\n{READ}"
        "def other_step(x):\n    return float(a(b(c(d(x)))))\n"
    )
    for _ in range(2):
        run = flake8("--select=TPF", path)
        assert run.codes == ["TPF101"]


def test_a_neighbour_in_latin_1(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_bytes(
        "# coding: latin-1\n# äöü\nimport torch\ndef made() -> torch.Tensor: ...\n".encode(
            "latin-1"
        )
    )
    path = tmp_path / "model.py"
    path.write_text(
        "import torch\nfrom helper import made\ndef step():\n    return made().item()\n"
    )
    assert [f.code for f in lint(path.read_text(), str(path), HOT)] == ["TPF101"]


def test_a_message_cannot_draw_on_the_terminal() -> None:
    source = (
        HEAD
        + 'def step(x: dict[str, torch.Tensor]):\n    return x["\x1b[2J\x07\u202e\x9b"].item()\n'
    )
    (found,) = lint(source, "model.py", HOT)
    assert found.message.isprintable()
