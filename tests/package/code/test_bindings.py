"""`syntax/bindings.py` finds every name that a statement of Python binds."""

import ast

import pytest

from flake8_torchperf.syntax.bindings import all_bound_by, bound_in

STATEMENTS = {
    "x = 1": {"x"},
    "x: int = 1": {"x"},
    "x += 1": {"x"},
    "x, (y, *z) = w": {"x", "y", "z"},
    "x.a = w[y] = 1": set(),
    "del x": {"x"},
    "for x in y: pass": {"x"},
    "with y as x: pass": {"x"},
    "f(x := 1)": {"x"},
    "import a.b, c.d as e": {"a", "e"},
    "from a import b, c as d": {"b", "d"},
    "def f(x): y = 1": {"f", "y"},
    "async def f():\n    async for x in y: pass": {"f", "x"},
    "class A: x = 1": {"A", "x"},
    "try: pass\nexcept E as x: pass": {"x"},
    "try: pass\nexcept E: pass": set(),
    "match y:\n    case [x, *z]: pass": {"x", "z"},
    "match y:\n    case {'a': x, **z}: pass": {"x", "z"},
    "match y:\n    case _: pass": set(),
    "global x": {"x"},
}


@pytest.mark.parametrize(("code", "names"), STATEMENTS.items(), ids=STATEMENTS)
def test_bound_names(code, names):
    assert all_bound_by(ast.parse(code).body) == names


def test_given_a_value():
    """Definitions, imports and declarations give a name no value that a loop could change."""
    code = ast.parse("import a\ndef f(): pass\nfor x in y:\n    z = w")
    assert bound_in(code) == {"x", "z"}
