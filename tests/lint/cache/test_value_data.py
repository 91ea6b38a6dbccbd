"""Values written as data are the same when they are made again, in all of their fields."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from flake8_torchperf.interpreter.driver.function_analysis import module_constant
from flake8_torchperf.interpreter.engine.analysis import Analysis
from flake8_torchperf.interpreter.engine.value_data import Made, NoData, Written, holds_closure
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.project.module_index import read_module
from flake8_torchperf.project.resolver import Project
from flake8_torchperf.values import values
from flake8_torchperf.values.provenance import Reason, Source, Strength

OTHER = """\
class Held:
    def shown(self, x):
        return x


def make(n):
    return lambda y: y + n
"""
LINTED = """\
import torch
from pkg.other import Held, make


def outer(x, n):
    def inner(y):
        return y + x
    return inner


total = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "other.py").write_text(OTHER)
    (package / "linted.py").write_text(LINTED)
    return package


@contextmanager
def analysis_of(folder: Path) -> Iterator[Analysis]:
    """A new analysis of the linted module, as each run has one."""
    text = (folder / "linted.py").read_text()
    lines = tuple(text.splitlines(keepends=True))
    module = read_module(ast.parse(text), lines, folder / "linted.py")
    yield Analysis(load(), Project(module), module_constant)


def values_in(analysis: Analysis) -> dict[str, object]:
    """Values of each kind, with definitions and nodes of both modules."""
    linted = analysis.project.linted
    other = analysis.project.module("pkg.other")
    assert other is not None
    outer = linted.functions["outer"].tree
    held, make = other.classes["Held"], other.functions["make"]
    shown = held.methods["shown"]
    reason = Reason("a fact", outer.args.args[0], Reason("before", outer.body[0]))
    tensor = values.Tensor(
        reason, "float", "device", True, ("isinf", "any"), "gradient", "python", "pinned", 4, 2,
        held, True,
    )  # fmt: skip
    host = values.Tensor(
        Reason("told", None, None, Strength.INFERRED, Source.DOCSTRING), device="host"
    )
    read = values.Scalar("float", read=outer.body[0], tensor=tensor, size_of="x")
    inside = next(one for one in ast.walk(make.tree) if isinstance(one, ast.Lambda))
    return {
        "tensors": values.Sequence("tuple", tensor, (tensor, host), ("a", "b"), held),
        "numbers": (read, values.literal("float", float("nan")), values.literal("bytes", b"x")),
        "a dict": values.Mapping_(values.STR, values.UNKNOWN, (("a", host),), True, held),
        "objects": (
            values.Instance(held.key, held, frozenset(("b", "a"))), values.Instance("torch.Size"),
        ),
        "callables": (
            values.Function(shown, shown.key, values.Instance(held.key, held)),
            values.Partial(values.Function(make, make.key), (host,), (("n", values.INT),), True),
            values.ClassValue(held, held.key), values.External("torch.add"),
            values.Returning(host), values.Imported("np"),
        ),
        "one of several": values.Union((host, values.NONE), met=True),
        "singles": (values.UNKNOWN, values.COMPARED, values.NONE, values.NDARRAY),
        "plain ones": (values.Device("host", False, False), values.DType("int"),
                       values.Opaque("shape")),
        "a nested function": values.Closure(
            outer.body[0], id(outer.body[0]), {"x": tensor, "z": host}, linted  # type: ignore[arg-type]
        ),
        "a lambda elsewhere": values.Closure(inside, id(inside), {"n": values.INT}, other),
        "names": {"x": tensor, "x.shape": values.SHAPE},
    }  # fmt: skip


def same(one: object, other: object) -> bool:
    """Compare all fields, also those that equality leaves out; nodes by what they say."""
    if isinstance(one, ast.AST):
        return isinstance(other, ast.AST) and ast.dump(one) == ast.dump(other)
    if type(one) is not type(other):
        return False
    if isinstance(one, values.Closure):
        assert isinstance(other, values.Closure)
        used = {name: one.env[name] for name in one.env if name != "z"}  # which no body names
        return same(one.node, other.node) and same(used, dict(other.env))
    if hasattr(one, "qualname") or hasattr(one, "methods"):
        return vars(one)["name"] == vars(other)["name"]
    if isinstance(one, dict):
        assert isinstance(other, dict)
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, frozenset)):
        assert isinstance(other, (tuple, frozenset))
        pairs = zip(sorted(one, key=repr), sorted(other, key=repr), strict=False)
        return len(one) == len(other) and all(same(*pair) for pair in pairs)
    if is_dataclass(one):
        names = [f.name for f in fields(one) if f.name != "key"]
        return not names or all(same(getattr(one, n), getattr(other, n)) for n in names)
    return repr(one) == repr(other)


KINDS = [
    "tensors", "numbers", "a dict", "objects", "callables", "one of several", "singles",
    "plain ones", "a nested function", "a lambda elsewhere", "names",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_is_made_again(kind: str, folder: Path) -> None:
    with analysis_of(folder) as first:
        value = values_in(first)[kind]
        data = json.loads(json.dumps(Written(first, again=True, now=True).data(value)))
    with analysis_of(folder) as later:
        made = Made(later).value(data)
        assert same(value, made)
        assert json.dumps(Written(later, again=True, now=True).data(made)) == json.dumps(data)


def test_every_kind_is_tried(folder: Path) -> None:
    with analysis_of(folder) as analysis:
        assert set(values_in(analysis)) == set(KINDS)


def test_lines_above_do_not_count(folder: Path) -> None:
    with analysis_of(folder) as first:
        before = Written(first, again=False, now=True).data(values_in(first))
    (folder / "other.py").write_text(f"# moved\n\n{OTHER}")
    with analysis_of(folder) as later:
        assert Written(later, again=False, now=True).data(values_in(later)) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Held", "class Other"),
        ("def shown", "def hidden"),
        ("def make", "def made"),
        ("lambda y: y + n", "lambda y: y - n"),
        ("return lambda y: y + n", "return n"),
    ],
)
def test_what_is_gone_is_not_made(old: str, new: str, folder: Path) -> None:
    with analysis_of(folder) as first:
        data = Written(first, again=True, now=True).data(values_in(first))
    (folder / "other.py").write_text(OTHER.replace(old, new))
    with analysis_of(folder) as later, pytest.raises(NoData):
        Made(later).value(data)


def test_a_nested_function_is_written_at_once_or_not(folder: Path) -> None:
    with analysis_of(folder) as analysis:
        closure = values_in(analysis)["a nested function"]
        assert holds_closure((values.Union((closure, values.NONE)),))  # type: ignore[arg-type]
        assert not holds_closure(values_in(analysis)["tensors"])
        with pytest.raises(NoData):
            Written(analysis, again=True, now=False).data(closure)


def test_a_nested_function_that_holds_itself_is_not_written(folder: Path) -> None:
    with analysis_of(folder) as analysis:
        node = analysis.project.linted.functions["outer"].tree.body[0]
        env: dict[str, values.Value] = {}
        closure = values.Closure(node, id(node), env, analysis.project.linted)  # type: ignore[arg-type]
        env["x"] = closure
        with pytest.raises(NoData):
            Written(analysis, again=True, now=True).data(closure)


def test_a_test_is_compared_but_not_made_again(folder: Path) -> None:
    with analysis_of(folder) as analysis:
        told = values.Told(ast.parse("x > 0", mode="eval").body, ())
        assert Written(analysis, again=False, now=False).data(told)[0] == "Told"
        with pytest.raises(NoData):
            Written(analysis, again=True, now=False).data(told)
