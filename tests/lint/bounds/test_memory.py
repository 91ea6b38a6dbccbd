"""The linter's own stores stay within their bounds, however many files one process lints."""

from __future__ import annotations

import ast
import gc
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flake8_torchperf.linter import lint_tree
from flake8_torchperf.options import Options
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.project.lazy_index import read_outline, text_read
from flake8_torchperf.project.mapped_files import read_file
from flake8_torchperf.project.stores.collection import collection_paused
from flake8_torchperf.project.stores.kept import (
    ENTRY,
    Kept,
    is_time_to_collect,
    share,
    take_dropped_apart,
)

PACKAGE = "flake8_torchperf"
# More entries than this are no bound: a store of modules or texts says how many bytes it holds.
MOST_ENTRIES = 4096
# Each module has names of its own, so that a store by name, path or text grows with each.
MODULE = '''\
"""Module {n}."""

import numpy as np
import torch
from torch import nn

from pkg.m{before} import Meter{before}, read{before}


class Meter{n}(Meter{before}, nn.Module):
    """Holds total{n}.

    Args:
        scale{n} (torch.Tensor): a scale
    """

    def __init__(self, scale{n}: "torch.Tensor", flag{n}=False):
        super().__init__()
        self.total{n} = torch.zeros({n} + 1)
        self.scale{n} = scale{n}

    def forward(self, x{n}: "list[torch.Tensor]"):
        out{n} = []
        for one{n} in x{n}:
            if self.total{n}.sum() > 0:
                out{n}.append(read{before}(one{n}) + one{n}.item())
            custom{n}.op{n}(self.total{n}.attr{n}(one{n}))
        return np.stack(out{n})


def read{n}(x{n}: torch.Tensor, option{n}=None):
    if option{n} == "fast{n}":
        print(f"value{n}", x{n}.cpu())
    return x{n}.item()


def train{n}(model{n}: Meter{n}, loader{n}, optimizer):
    for batch{n} in loader{n}:
        loss{n} = model{n}(batch{n})
        loss{n}.backward()
        optimizer.step()
        print(read{n}(loss{n}, option{n}="fast{n}"))
'''
ROUND = 24


def in_package() -> Iterator[tuple[str, Any]]:
    """Yield all values at the top level of the package's modules, and of their classes."""
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] != PACKAGE:
            continue
        for key, value in list(vars(module).items()):
            yield f"{name}.{key}", value
            if isinstance(value, type) and value.__module__ == name:
                yield from ((f"{name}.{key}.{of}", one) for of, one in list(vars(value).items()))


def sizes() -> dict[str, int]:
    """Return the sizes of the stores without a bound, and compare the others with their bounds."""
    found: dict[str, int] = {}
    for name, value in in_package():
        value = getattr(value, "__func__", value)
        if name.rpartition(".")[2].startswith("__"):
            continue
        if isinstance(value, Kept):
            assert value.total <= value.most or len(value) == 1, name
        elif hasattr(value, "cache_info"):
            info = value.cache_info()
            if info.maxsize is None:
                found[name] = info.currsize
            else:
                assert info.maxsize <= MOST_ENTRIES, name
        elif isinstance(value, (dict, list, set)):
            found[name] = len(value)
    return found


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pkg"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "pkg"\n')
    for n in range(2 * ROUND):
        (folder / f"m{n}.py").write_text(MODULE.format(n=n, before=max(n - 1, 0)))
    return folder


def lint(paths: list[Path]) -> None:
    for path in paths:
        text = path.read_text()
        lines = tuple(text.splitlines(keepends=True))
        assert lint_tree(ast.parse(text), lines, str(path), Options())


def test_no_store_grows_with_the_files_that_were_linted(package: Path) -> None:
    paths = [package / f"m{n}.py" for n in range(2 * ROUND)]
    lint(paths[:ROUND])
    before = sizes()
    assert len(before) > 100  # the package was looked through
    lint(paths[ROUND:])
    grown = {name: (before.get(name), size) for name, size in sizes().items()}
    assert {name: both for name, both in grown.items() if (both[0] or 0) < both[1]} == {}


def test_the_tree_of_a_linted_file_goes_with_it(package: Path) -> None:
    text = (package / "m1.py").read_text()
    tree = ast.parse(text)
    gone = weakref.ref(tree)
    assert lint_tree(tree, tuple(text.splitlines(keepends=True)), "m1.py", Options())
    del tree
    gc.collect()
    assert gone() is None


def test_what_was_asked_for_longest_ago_goes_first() -> None:
    kept: Kept[str, int] = Kept(3 * ENTRY + 30)
    for number, name in enumerate("abc"):
        assert kept.put(name, number, 10) == number
    assert kept.get("a") == 0
    kept.put("d", 3, 10)
    assert [kept.get(name) for name in "abcd"] == [0, None, 2, 3]


def test_a_text_counts_by_its_size_and_replaces_itself() -> None:
    kept: Kept[str, int] = Kept(10 * ENTRY)
    kept.put("a", 1, 4 * ENTRY)
    kept.put("a", 2, 4 * ENTRY)
    kept.put("b", 3, 4 * ENTRY)
    assert (kept.get("a"), kept.get("b"), kept.total) == (2, 3, 10 * ENTRY)
    kept.put("c", 4, 100 * ENTRY)
    assert (len(kept), kept.get("c")) == (1, 4)
    kept.clear()
    assert (len(kept), kept.total, kept.get("c")) == (0, 0, None)


def test_much_garbage_is_collected_once() -> None:
    is_time_to_collect()
    kept: Kept[int, int] = Kept(ENTRY, str)
    for number in range(4):
        kept.put(number, number, 500_000)
    assert is_time_to_collect()
    assert not is_time_to_collect()


def test_what_is_taken_apart_waits_for_no_collection() -> None:
    is_time_to_collect()
    taken: list[str] = []
    kept: Kept[int, str] = Kept(2 * ENTRY, taken.append)
    for number, made in enumerate(("first", "second", "third")):
        kept.put(number, made, 2_000_000)
    assert taken == []
    take_dropped_apart()
    assert taken == ["first", "second"]
    assert not is_time_to_collect()


def test_the_plugin_takes_apart_what_a_file_pushed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    is_time_to_collect()
    taken: list[str] = []
    kept: Kept[int, str] = Kept(2 * ENTRY, taken.append)

    def linted(*_: object) -> list[object]:
        with collection_paused():
            for number, made in enumerate(("first", "second", "third")):
                kept.put(number, made, 2_000_000)
        assert taken == []  # the findings may still use it
        return []

    monkeypatch.setattr("flake8_torchperf.plugin.linted", linted)
    assert [*TorchPerfPlugin(ast.parse(""), [], "empty.py").run()] == []
    assert taken == ["first", "second"]
    assert not is_time_to_collect()


def test_what_the_file_did_not_ask_for_is_taken_apart_at_once() -> None:
    take_dropped_apart()
    taken: list[str] = []
    kept: Kept[int, str] = Kept(3 * ENTRY, taken.append)
    for number, made in enumerate(("first", "second", "third")):
        kept.put(number, made, 0)
    take_dropped_apart()
    kept.get(0)
    kept.put(3, "fourth", 0)
    assert taken == ["second"]
    kept.put(4, "fifth", 0)
    kept.put(5, "sixth", 0)
    assert taken == ["second", "third"]  # the first is still in use
    take_dropped_apart()
    assert taken == ["second", "third", "first"]


def test_what_is_shared_is_not_taken_apart() -> None:
    is_time_to_collect()
    taken: list[str] = []
    kept: Kept[int, str] = Kept(2 * ENTRY, taken.append)
    kept.put(0, "shared", 2_000_000)
    share()
    kept.put(1, "own", 2_000_000)
    kept.put(2, "last", 2_000_000)
    take_dropped_apart()
    assert taken == ["own"]
    assert is_time_to_collect()


def test_what_grows_is_weighed_again() -> None:
    kept: Kept[str, int] = Kept(3 * ENTRY)
    kept.put("a", 1, 0)
    kept.put("b", 2, 0)
    kept.weigh("b", ENTRY)
    kept.weigh("of nothing", ENTRY)
    assert kept.total == 3 * ENTRY
    kept.put("c", 3, 0)
    assert [kept.get(name) for name in "abc"] == [None, 2, 3]


def test_a_map_weighs_what_was_looked_up_in_it(tmp_path: Path) -> None:
    body = "    x = 1\n" * 200
    path = tmp_path / "some.py"
    path.write_text(f"def first():\n{body}\n\ndef second():\n{body}")
    module, _ = read_file(str(path))
    assert module is not None
    assert text_read(module) == 0
    assert "first" in module.functions
    assert len(body) < text_read(module) < 2 * len(body)


def test_a_map_that_is_taken_apart_is_freed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text("class Net:\n    def forward(self):\n        return self.x\n\n\ndef f(): ...\n")
    module = read_outline(path.read_text(), path)
    node = weakref.ref(module.classes["Net"].methods["forward"].node)
    assert "f" in module.functions
    gc.disable()
    try:
        module.forget()
        del module
        assert node() is None
    finally:
        gc.enable()


def test_a_file_that_changed_is_mapped_again(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text("def first(): ...\n")
    module, _ = read_file(str(path))
    assert read_file(str(path))[0] is module
    path.write_text("def second_one(): ...\n")
    again, _ = read_file(str(path))
    assert again is not None
    assert "second_one" in again.functions
