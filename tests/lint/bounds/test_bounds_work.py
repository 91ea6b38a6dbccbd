"""Programs with more of one thing take more work in proportion: calls are counted, not seconds."""

from __future__ import annotations

import ast
import cProfile
import inspect
import sys
from pathlib import Path

import pytest
from linting import ALL, HOT

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

from shapes import PLACES, SHAPES

# Each counts the steps of many modules.
pytestmark = pytest.mark.slow

COMPILED = Options(scope=Level.COLD, assume_compiled=True)
# The thorough tests double them, but for the loops: their bound begins to hold beyond half of that.
SIZES = {
    "file": 60, "names": 1_250, "closures": 4, "classes": 10, "loops": 120, "chain of names": 30,
}  # fmt: skip
SIZE = 10
# Each method leads to all before it: what it may write is as long a list, up to 400 methods.
IN_SQUARE = ("chain of methods",)
# How much more the third part may take than the second: in proportion, as much; the square, 1.67.
AT_MOST = 1.3
# The same shapes elsewhere than in a function are as much work. What is looked for in compiled code,
# wherever it stands, is all that is looked for in hot code, and more.
CASES = [
    pytest.param(name, place, times, options, marks=marks)
    for name, shape in SHAPES.items()
    if name not in IN_SQUARE
    for place in (PLACES if "place" in inspect.signature(shape.make).parameters else [""])
    for times in ((1,) if name == "loops" else (1, 2) if place in ("", "function") else (2,))
    for options in ((COMPILED, HOT) if place in ("", "function") else (ALL,))
    for marks in ([] if times == 1 and options is COMPILED else [pytest.mark.thorough],)
]


def program(name: str, count: int, place: str) -> str:
    make = SHAPES[name].make
    source = make(count, place) if place else make(count)  # type: ignore[call-arg]
    ast.parse(source)
    return source


def work(source: str, options: Options) -> int:
    """The calls of functions, Python's own included, that linting a program takes."""
    profile = cProfile.Profile()  # counts in C: a function of ours would take most of the time
    profile.enable(subcalls=False)  # who calls whom is not asked
    try:
        lint(source, "model.py", options)
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())


def _named(value: object) -> str:
    return value.scope.name.lower() if isinstance(value, Options) else str(value)


@pytest.mark.parametrize(("name", "place", "times", "options"), CASES, ids=_named)
def test_work_grows_in_proportion(name: str, place: str, times: int, options: Options) -> None:
    size = times * SIZES.get(name, SIZE)
    texts = [program(name, count * size, place) for count in (1, 2, 3)]
    lint(texts[0], "model.py", options)  # whatever is loaded once is loaded
    one, two, three = (work(text, options) for text in texts)
    assert three - two < AT_MOST * (two - one) + 250, f"{one:,}, {two:,}, {three:,} calls"


@pytest.mark.parametrize(
    ("length", "options"),
    [
        pytest.param(
            length,
            options,
            marks=[] if (length, options) == (200, COMPILED) else [pytest.mark.thorough],
        )
        for length in (200, 1_000)
        for options in (COMPILED, HOT)
    ],
    ids=_named,
)
@pytest.mark.parametrize("name", [n for n in SHAPES if n.startswith(("chain", "layers", "circ"))])
def test_a_long_chain_ends_well(name: str, length: int, options: Options) -> None:
    """Each names the one before, hundreds of times: nothing follows that to its end by recursion."""
    lint(program(name, length, ""), "model.py", options)
