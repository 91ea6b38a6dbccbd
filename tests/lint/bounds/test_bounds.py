"""Deep nesting, long chains, circles: each ends in findings or silence, and soon."""

from __future__ import annotations

import ast
import io
import sys
import threading

import pytest
from fuzzing.check import check
from linting import ALL, HOT

from flake8_torchperf.interpreter.engine.analysis import STEPS_PER_FUNCTION
from flake8_torchperf.linter import lint
from flake8_torchperf.plugin import TorchPerfPlugin

HEAD = "import torch\n"
STEP = "def step(x: torch.Tensor, n=0):\n    "
END = "\n    return x.item()\n"

# An expression each, as deep as Python's own parser lets it be, or longer than its stack, a thousand.
EXPRESSIONS = {
    "minus": "-" * 900 + "x",
    "not": "not " * 900 + "x",
    "invert": "~" * 2500 + "x",
    "power": "x ** " * 900 + "x",
    "conditional": "x if n else " * 900 + "x",
    "conditional test": "(" * 90 + "x" + " if n else x)" * 90,
    "lambda": "lambda: " * 900 + "x",
    "lambda with default": "lambda y=x: " * 500 + "x",
    "subscripts": "x" + "[0]" * 900,
    "subscripts in subscripts": "x[" * 90 + "0" + "]" * 90,
    "calls": "x" + "()" * 900,
    "calls in calls": "torch.relu(" * 90 + "x" + ")" * 90,
    "methods in methods": "x.add(" * 90 + "x" + ")" * 90,
    "attributes": "x" + ".T" * 2500,
    "comparisons": "x < " * 1200 + "x",
    "and": "x and " * 1200 + "x",
    "or of and": "x and x or " * 600 + "x",
    "and in and": "(x and " * 90 + "x" + ")" * 90,
    "strings": "'a' " * 1200,
    "f-strings": " ".join(["f'{x}'"] * 1200),
    "sum": "x + " * 2500 + "x",
    "strings added": "'a' + " * 2500 + "str(x)",
    "matrix products": "x @ " * 2500 + "x",
    "walrus": "(y := " * 90 + "x" + ")" * 90,
    "tuples": "(" * 90 + "x" + ",)" * 90,
    "dicts": "{0: " * 90 + "x" + "}" * 90,
    "comprehensions": "[" * 15 + "x" + " for y in x]" * 15,
    "one comprehension": "[x" + " for y in x" * 600 + "]",
    "comprehension with tests": "[y for y in x" + " if y" * 1200 + "]",
    "stars": "[*" * 90 + "x" + "]" * 90,
    "awaits and yields": "(yield " * 90 + "x" + ")" * 90,
    "arguments": "torch.stack([" + "x, " * 1200 + "])",
    "keywords": "f(" + ", ".join(f"k{i}=x" for i in range(1200)) + ")",
    "slices": "x[" + "0:1, " * 3000 + "]",
    "list": "[" + "x, " * 2_500 + "]",
    "dict": "{" + ", ".join(f"{i}: x" for i in range(2_500)) + "}",
    "partial": "functools.partial(" * 90 + "torch.relu" + ", x)" * 90,
    "super": "super()." * 1 + "f" + ".f()" * 900,
}
STATEMENTS = {
    "targets": "y = " * 3000 + "x",
    "target attributes": "x" + ".a" * 900 + " = x",
    "target subscripts": "x" + "[0]" * 900 + " = x",
    "target tuple": "(" * 90 + "y," + ")" * 90 + " = x",
    "targets in a row": ", ".join(f"y{i}" for i in range(1200)) + " = x",
    "augmented": "x += 1; " * 1200,
    "annotation": "y: " + "list[" * 90 + "torch.Tensor" + "]" * 90 + " = x",
    "string annotation": "y: '" + "list[" * 90 + "torch.Tensor" + "]" * 90 + "' = x",
    "string in string annotation": "y: " + repr("torch.Tensor" + " | None" * 2000) + " = x",
    "unions": "y: torch.Tensor" + " | None" * 2500 + " = x",
    "with items": "with " + ", ".join(["x"] * 2000) + ": pass",
    "deletes": "del " + ", ".join(f"x.a{i}" for i in range(1200)),
    "globals": "global " + ", ".join(f"g{i}" for i in range(1200)),
    "imports": "import " + ".".join(["a"] * 2000),
    "names imported": "from torch import " + ", ".join(f"a{i}" for i in range(1200)),
    "asserts": "assert x, x; " * 500,
    "excepts": "try: pass\n" + "".join(f"    except E{i}: x = x + 1\n" for i in range(900)) + "    pass",
    "match": "match x:\n" + "".join(f"        case {i}: x = x + 1\n" for i in range(900)) + "    pass",
    "or patterns": "match x:\n        case " + " | ".join(str(i) for i in range(2500)) + ": pass",
    "deep patterns": "match x:\n        case " + "[" * 90 + "y" + "]" * 90 + ": pass",
    "returns": "if n: return x\n    " * 1200,
    "whiles": "while x.any(): x = x - 1\n    " * 300,
    "prints": "print(x)\n    " * 1200,
}  # fmt: skip


def nested(opening: str, count: int) -> str:
    """Statements inside each other, by one blank each: Python allows a hundred indents."""
    return (
        "".join(f"{' ' * (4 + i)}{opening}\n" for i in range(count))
        + " " * (4 + count)
        + "x = x + 1"
    )


BLOCKS = {
    "if": "if x.any():",
    "for": "for y in x:",
    "while": "while x.any():",
    "with": "with torch.no_grad():",
    "def": "def f(y=x):",
    "async def": "async def f():",
    "class": "class A:",
    "try": "try:",
    "match": "match x:",
}
for _name, _opening in BLOCKS.items():
    if _name in ("try", "match"):
        continue
    depth = 18 if _name in ("for", "while", "with") else 85
    STATEMENTS[f"{_name} in {_name}"] = nested(_opening, depth).lstrip()
STATEMENTS["if, beyond what compiles"] = nested("for y in x:", 85).lstrip()


def parsed(source: str) -> str:
    try:
        ast.parse(source)
    except (RecursionError, MemoryError, SyntaxError) as error:
        pytest.skip(f"this Python's parser refuses it: {type(error).__name__}")
    return source


SOURCES = {name: f"{STEP}y = {text}{END}" for name, text in EXPRESSIONS.items()} | {
    name: f"{STEP}{text}{END}" for name, text in STATEMENTS.items()
}


@pytest.mark.parametrize("source", list(SOURCES.values()), ids=list(SOURCES))
def test_in_a_function(source: str) -> None:
    """Once: that two lints say the same, `test_elsewhere` and `test_fuzz.py` ask."""
    check(parsed(HEAD + source), twice=False)


@pytest.mark.thorough
@pytest.mark.parametrize("source", list(EXPRESSIONS.values()), ids=list(EXPRESSIONS))
def test_elsewhere(source: str) -> None:
    """At module level, as a default, in a class body, as what a decorator or an attribute is."""
    check(parsed(
        f"{HEAD}x = torch.ones(3).cuda()\nCONSTANT = {source}\n@torch.compile({source})\n"
        f"def step(x: torch.Tensor, y={source}, z=CONSTANT):\n    return (x + CONSTANT).item()\n"
        f"class Net(torch.nn.Module):\n    field = {source}\n    def __init__(self, x: torch.Tensor):\n"
        f"        self.y = {source}\n    def forward(self, x: torch.Tensor):\n"
        f"        return self.y.item() + self.field.item() if {source} else x.item()\n"
    ))  # fmt: skip


@pytest.mark.parametrize("name", ["minus", "attributes", "sum", "calls", "if in if"])
def test_on_a_stack_that_is_nearly_used_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors call flake8 from deep inside: where the stack ends, TPF900 says so and no more."""
    monkeypatch.delenv("TORCHPERF_DEBUG", raising=False)
    text = HEAD + SOURCES[name]
    tree, lines = ast.parse(parsed(text)), list(io.StringIO(text))

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            rows = list(TorchPerfPlugin(tree, lines, "deep.py").run())
            assert all(row[2][:6] != "TPF900" or "RecursionError" in row[2] for row in rows)

    used = 40
    for levels in (300, 600, 700, 800, 850):
        if levels + used < sys.getrecursionlimit():
            deep(levels)


def test_in_a_thread() -> None:
    """A thread's stack is smaller than the main one's."""
    texts = [HEAD + SOURCES[name] for name in ("minus", "sum", "calls", "if in if", "lambda")]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for text in texts:
                lint(parsed(text), "thread.py", ALL)
        except BaseException as error:
            failures.append(error)

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert failures == []


def test_beyond_the_budget_nothing_is_known() -> None:
    """What stands before the budget's end is found; what stands behind it is Unknown."""
    count = STEPS_PER_FUNCTION // 4
    source = HEAD + STEP + "x.item()\n" + "    n = n + 1 + 2\n" * count + "    x.item()\n"
    assert [f.line for f in lint(source, "model.py", ALL)] == [3]
    shorter = HEAD + STEP + "x.item()\n" + "    n = n + 1 + 2\n" * (count // 3) + "    x.item()\n"
    assert len(lint(shorter, "model.py", ALL)) == 2


def test_the_next_function_has_a_budget_of_its_own() -> None:
    count = STEPS_PER_FUNCTION // 4
    source = HEAD + STEP + "    n = n + 1 + 2\n".lstrip() + "    n = n + 1 + 2\n" * count
    source += "\n" + STEP.replace("step", "other_step") + "return x.item()\n"
    assert [f.code for f in lint(source, "model.py", HOT)] == ["TPF101"]


def test_nested_functions_that_call_themselves_in_many_places() -> None:
    """Five calls in each of five levels would be three thousand walks of the body."""
    calls = " + ".join(["walk(y[0])"] * 8)
    source = (
        f"{HEAD}def step(x: torch.Tensor):\n    def walk(y):\n        if y:\n"
        f"            return {calls}\n        return torch.ones(3).cuda()\n"
        "    return walk(x).item()\n"
    )
    spent: list[int] = []

    def count(frame: object, event: str, argument: object) -> None:
        if event == "call":
            spent.append(1)

    lint(source, "model.py", HOT)  # whatever is loaded once is loaded
    sys.setprofile(count)
    try:
        lint(source, "model.py", HOT)
    finally:
        sys.setprofile(None)
    assert len(spent) < 20_000
