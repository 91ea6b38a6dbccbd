"""Outlines: what a module says of itself, kept by the digest of its text."""

from __future__ import annotations

import ast
import gc
import json
import tracemalloc
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from flake8_torchperf import program
from flake8_torchperf.program.outlines.nodes import packed
from flake8_torchperf.program.outlines.outline import Kind, Outline, as_data, from_data
from flake8_torchperf.program.outlines.outlining import outline_of
from flake8_torchperf.program.outlines.store import OUTLINED, outline_of_text, outline_once
from flake8_torchperf.project.stores.kept import ENTRY, Kept
from flake8_torchperf.project.stores.shelf import keep_on

TEXT = """
from functools import partial
from . import helper
from .ops import scale as again
from .layers import *


class Meter(Base):
    total: float = 0.0

    @property
    def mean(self) -> float:
        return self.total

    @staticmethod
    def of(values, *rest, start=0, **more):
        self.kept[start] = lambda x: again(x)
        for key, value in values.items():
            yield value


async def run(meter: "Meter", batches=()):
    async with meter as opened:
        a, b = await opened.read()
    return [partial(meter.of, one) for one in batches if (last := one)]
"""


class Entries:
    """Entries in memory; `refuses` makes each write fail."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.held: dict[str, str] = {}
        self.read: list[str] = []
        self.refuses = refuses

    def get(self, key: str) -> Any:
        self.read.append(key)
        return json.loads(self.held[key]) if key in self.held else None

    def put(self, key: str, value: object) -> None:
        if self.refuses:
            raise PermissionError(13, "no space", key)
        self.held[key] = json.dumps(value)


def same(one: Outline, other: Outline) -> bool:
    return as_data(one) == as_data(other)


def test_bodies_and_classes() -> None:
    outline = outline_of(ast.parse(TEXT))
    assert [(one.qualname, one.runs) for one in outline.bodies] == [
        ("", "called"),
        ("Meter.mean", "read"),
        ("Meter.of", "iterated"),
        ("Meter.of.<locals>.<lambda>", "called"),
        ("run", "called"),
    ]
    of = outline.bodies[2]
    assert (of.positional, of.named, of.rest) == (("values",), ("start",), ("rest", "more"))
    assert of.is_static
    assert outline.classes[0].methods == {"mean": 1, "of": 2}
    assert outline.imports["again"] == (1, "ops", "scale")
    assert outline.stars == ((1, "layers"),)
    assert {one.word for one in outline.nodes if one.kind == Kind.PUT} == {""}
    assert {one.word for one in outline.nodes if one.kind == Kind.UNPACKED} == {"a,b"}


def test_an_outline_survives_json() -> None:
    outline = outline_of(ast.parse(TEXT))
    restored = from_data(json.loads(json.dumps(as_data(outline))))
    assert (restored.bodies, restored.classes) == (outline.bodies, outline.classes)
    assert list(restored.nodes) == list(outline.nodes)
    assert restored.imports == outline.imports
    assert restored.stars == outline.stars


def test_a_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = Entries()
    keep_on(entries)
    try:
        first = outline_of_text(TEXT)
        monkeypatch.setattr("flake8_torchperf.program.outlines.store.outline_once", None)
        assert same(outline_of_text(TEXT), first)
        assert len(entries.held) == 1
    finally:
        keep_on(None)


ROWS = '["", "x"], [[0], [1], [-1], [0], [0], [1], [0]]'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[1]", "[2]"),  # no such word
        ("[-1]", "[1]"),  # nor such a parent
        ("[0]", "[0, 0]"),
        ('"", "x"', '"x", ""'),
        ("[1]", f"[{2**64}]"),
        ("[1]", '["x"]'),
    ],
)
def test_columns_that_do_not_fit_are_refused(old: str, new: str) -> None:
    assert list(from_data(json.loads(f"[[], [], [{ROWS}], {{}}, [], []]")).nodes)
    with pytest.raises((TypeError, ValueError)):
        from_data(json.loads(f"[[], [], [{ROWS.replace(old, new, 1)}], {{}}, [], []]"))


@pytest.mark.parametrize("damage", ["[]", "[1, 2, 3, 4, 5]", '{"a": 1}', "[[], [], [[1]], {}, []]"])
def test_a_damaged_entry_is_read_again(damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = Entries()
    keep_on(entries)
    try:
        first = outline_of_text(TEXT)
        entries.held = dict.fromkeys(entries.held, damage)
        monkeypatch.setattr("flake8_torchperf.program.outlines.store._MADE", Kept(OUTLINED))
        assert same(outline_of_text(TEXT), first)
    finally:
        keep_on(None)


def test_a_shelf_that_refuses_is_left() -> None:
    entries = Entries(refuses=True)
    keep_on(entries)
    try:
        first = outline_of_text(TEXT)
        assert same(outline_of_text(TEXT), first)
        assert len(entries.read) == 1
    finally:
        keep_on(None)


@pytest.mark.parametrize(
    ("numbers", "code"),
    [([], "b"), ([-1, 127], "b"), ([128], "h"), ([1 << 15, 0], "i"), ([0, -1 << 63], "q")],
)
def test_numbers_are_packed_into_the_smallest_type(numbers: list[int], code: str) -> None:
    found = packed(numbers)
    assert (found.typecode, found.tolist()) == (code, numbers)


def test_what_fits_no_array_is_refused() -> None:
    with pytest.raises(ValueError, match=str(1 << 63)):
        packed([0, 1 << 63])
    with pytest.raises(TypeError):
        packed([0, 1.5])  # type: ignore[list-item]


def test_nodes_are_found_by_kind_but_for_the_kinds_of_most() -> None:
    found = outline_of(ast.parse("x: int = f('text')\n"))
    [number] = found.of(Kind.TEXT, "text")
    assert found.nodes[number].word == "text"
    assert [found.nodes.kinds[one] for one in found.of(Kind.BOUND, "x")] == [Kind.BOUND]
    with pytest.raises(ValueError, match="NAME"):
        found.of(Kind.NAME, "f")


def test_deep_expressions_end() -> None:
    deep = "x = " + "f(" * 80 + ")" * 80
    outline = outline_of(ast.parse(deep))
    assert 0 < len(outline.nodes) < 200


def test_a_linted_module_is_not_outlined_again_where_another_reads_it() -> None:
    linted = outline_once(TEXT, ast.parse(TEXT))
    assert outline_of_text(TEXT) is linted
    assert outline_of_text(TEXT + "x = 1\n") is not linted


def test_only_the_outlines_made_last_stay_in_memory() -> None:
    first = outline_once(TEXT)
    large = "#" * 1_000_000
    for number in range(OUTLINED // len(large)):
        outline_once(f"x = {number}  {large}\n")
    assert outline_once(TEXT) is not first


def with_tables(outline: Outline) -> Outline:
    """Return an outline whose tables are all made."""
    for name, value in vars(Outline).items():
        if isinstance(value, cached_property):
            getattr(outline, name)
    return outline


def test_the_outlines_in_memory_take_50_megabytes() -> None:
    paths = sorted(Path(program.__path__[0]).glob("*.py"))
    texts = [path.read_text("utf-8") for path in paths]
    for text in texts:  # Python's table of interned words grows at once, for all of the process
        outline_of(ast.parse(text))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        held = [with_tables(outline_of(ast.parse(text))) for text in texts]
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    share = taken / sum(len(text) + ENTRY for text in texts)
    assert sum(len(outline.nodes) for outline in held) > 10_000
    assert share * OUTLINED < 50_000_000


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ('f"on_{event}"', "on_*"),
        ('"on_" + event', "on_*"),
        ('"on_" + event + "_end"', "on_*_end"),
        ('"on_%s_end" % event', "on_*_end"),
        ('f"{kind}_{event}"', "*_*"),
        ('f"loss: {event}"', None),
        ('f"{event}"', None),
        ("first + event", None),
        ('"on_%d" % event', None),
    ],
)
def test_names_that_are_put_together(text: str, pattern: str | None) -> None:
    found = outline_of(ast.parse(f"getattr(part, {text})"))
    assert [found.nodes.word(one) for one in found.built] == ([] if pattern is None else [pattern])
