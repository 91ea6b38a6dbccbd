"""Methods are as hot as the calls on objects of their class, wherever these are made and kept."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from linting import HOT, expected

from flake8_torchperf.linter import lint

METERS = """
    import torch

    class Meter:
        def __init__(self):
            self.sum = 0.0

        def update(self, *values):
            for value in values:
                if isinstance(value, torch.Tensor):
                    value = value.item(){}
                self.sum += value

    class Other:
        def __init__(self):
            self.last = None

        def update(self, value):
            self.last = value

    class Twice(Meter):
        def __init__(self):
            super().__init__()
            self.first = 0.0
    """
TRAIN = """
    from collections import defaultdict
    from torch import nn
    from .meters import Meter, Other, Twice

    SHARED = Meter()

    class Trainer:
        def __init__(self, model: nn.Module, loader, opt):
            self.model, self.loader, self.opt = model, loader, opt
            self.meter = Meter()
            self.other = Other()
            self.by_name = defaultdict(Meter)
            self.named = {{"loss": Meter(), "error": Meter()}}
            self.stated: Meter | None = None

        def train(self, given: Meter):
            local = Meter()
            first, second = Other(), Meter()
            for batch in self.loader:
                loss = self.model(batch)
                loss.backward()
                self.opt.step()
                {}

        def once(self, loss):
            self.meter.update(loss)

    def note(meter, loss):
        meter.update(loss)

    def main(model, loader, opt):
        Trainer(model, loader, opt).train(Meter())
    """
WAITS = "  # TPF101"
CALLS = {
    "self.meter.update(loss)": WAITS,
    "self.other.update(loss)": "",
    "self.by_name['loss'].update(loss)": WAITS,
    "self.named['loss'].update(loss)": WAITS,
    "self.stated.update(loss)": WAITS,
    "local.update(loss)": WAITS,
    "first.update(loss)": "",
    "second.update(loss)": WAITS,
    "given.update(loss)": WAITS,
    "SHARED.update(loss)": WAITS,
    "Meter().update(loss)": WAITS,
    "Twice().update(loss)": WAITS,
    "[m.update(loss) for m in self.named.values()]": WAITS,
    "unknown.update(loss)": "",
    "note(local, loss)": WAITS,
    "note(first, loss)": "",
    "print(loss.shape)": "",
}


def package(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    return folder


def told(path: Path) -> list[tuple[int, str]]:
    return [(one.line, one.code) for one in lint(path.read_text(), str(path), HOT)]


@pytest.mark.parametrize(("call", "waits"), list(CALLS.items()))
def test_objects_of_another_module(call: str, waits: str, tmp_path: Path) -> None:
    texts = {"meters": METERS.format(waits), "train": TRAIN.format(call)}
    path = package(tmp_path / "package", **texts) / "meters.py"
    assert told(path) == expected(path.read_text())


@pytest.mark.parametrize(("call", "waits"), list(CALLS.items()))
def test_objects_of_the_same_module(call: str, waits: str, tmp_path: Path) -> None:
    whole = METERS.format(waits) + TRAIN.format(call).replace("from .meters import", "# ")
    path = package(tmp_path / "package", whole=whole) / "whole.py"
    assert [one for one in told(path) if one[1] == "TPF101"] == expected(path.read_text())


LOSSES = """
    import torch
    from torch.nn import functional as F

    def masked(logits, labels, mask):
        return F.cross_entropy(logits[mask], labels[mask]){}

    def compute(model, criterion, x, labels):
        return criterion(model(x), labels, {})
    """
HANDED = """
    from functools import partial
    from torch import nn
    from .losses import compute, masked

    def train(model: nn.Module, criterion, loader, opt):
        for x, labels in loader:
            loss = compute(model, criterion, x, labels)
            loss.backward()
            opt.step()

    def main(model, loader, opt):
        criterion = {}
        train(model, criterion, loader, opt)
    """


@pytest.mark.parametrize("criterion", ["masked", "partial(masked)"])
@pytest.mark.parametrize(("mask", "codes"), [("labels != -100", "TPF402, TPF402"), ("0", "")])
def test_functions_handed_on_by_name(criterion: str, mask: str, codes: str, tmp_path: Path) -> None:
    text = LOSSES.format(f"  # {codes}" if codes else "", mask)
    path = package(tmp_path / "package", losses=text, train=HANDED.format(criterion)) / "losses.py"
    assert told(path) == expected(path.read_text())


KEYWORDS = """
    import torch

    class Log:
        def __init__(self):
            self.sums = {{}}

        def update(self, **values):
            for name, value in values.items():
                self.sums[name] = float(value){}
    """
LOGGED = """
    from torch import nn
    from .log import Log

    def train(model: nn.Module, loader, opt):
        log = Log()
        for x in loader:
            loss = model(x)
            loss.backward()
            opt.step()
            log.update(lr=0.1, {})
    """


@pytest.mark.parametrize(("given", "waits"), [("loss=loss", WAITS), ("n=len(x)", "")])
def test_values_given_by_keyword(given: str, waits: str, tmp_path: Path) -> None:
    texts = {"log": KEYWORDS.format(waits), "train": LOGGED.format(given)}
    path = package(tmp_path / "package", **texts) / "log.py"
    assert told(path) == expected(path.read_text())


CACHE = """
    import torch

    class Cache:
        def __init__(self):
            self.k = None
            self.scale = torch.ones(1)

        def put(self, k, v):
            if self.k is not None:
                {}
            self.k = k
    """
DECODE = """
    import torch
    from .cache import Cache

    def decode(model, x, longest):
        cache = Cache()
        for _ in range(longest):
            {}
            x = model(x)
    """
GROWS = "k = torch.cat([self.k, k], dim=1)  # TPF205"


@pytest.mark.parametrize(
    ("growth", "call"),
    [
        (GROWS, "cache.put(x, x)"),
        ("self.k = torch.cat([self.k, k])  # TPF205", "cache.put(x, x)"),
        (GROWS.partition("  #")[0], "pass"),
        ("k = torch.cat([self.k[1:], k])", "cache.put(x, x)"),
        ("k = torch.cat([self.k, self.scale])", "cache.put(x, x)"),
        ("k = torch.cat([k, v])", "cache.put(x, x)"),
    ],
)
def test_tensors_that_an_object_keeps(growth: str, call: str, tmp_path: Path) -> None:
    texts = {"cache": CACHE.format(growth), "decode": DECODE.format(call)}
    path = package(tmp_path / "package", **texts) / "cache.py"
    assert told(path) == expected(path.read_text())


SUMS = """
    def train(model, loader, opt, weight):
        kept = 0.0
        for x in loader:
            out = model(x)
            loss, aux = out.loss, out.aux
            {}
            total.backward()
            opt.step()
            {}
        return kept
    """


@pytest.mark.parametrize(
    ("total", "kept"),
    [
        ("total = loss + aux", "kept += aux  # TPF507"),
        ("total = loss + 0.1 * aux", "kept += aux  # TPF507"),
        ("total = (loss + aux / 2) * 0.5", "kept += loss  # TPF507"),
        ("total = out.loss + out.aux", "kept += out.aux  # TPF507"),
        ("total = loss + aux", "kept += aux.detach()"),
        ("total = loss + weight * aux", "kept += weight"),
        ("total = loss + aux.detach()", "kept += aux"),
    ],
)
def test_backward_runs_through_the_terms_of_a_sum(total: str, kept: str) -> None:
    source = textwrap.dedent(SUMS.format(total, kept))
    found = [(f.line, f.code) for f in lint(f"import torch\n{source}", "train.py", HOT)]
    assert [one for one in found if one[1] == "TPF507"] == expected(f"import torch\n{source}")
