"""What the other modules of a package say of a function: who calls it, how often, and with what.

Each package of the first table has its findings in scope `all` alone; its near neighbours in the
second are reported in both.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest
from linting import ALL, HOT, expected

from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options
from flake8_torchperf.project.file_index import MAX_TREE
from flake8_torchperf.project.texts import text_search

TORCH = "import torch\nfrom torch import Tensor, nn\n"
# What most of them lint.
RESAMPLE = """
    def resample(x: Tensor):
        return torch.linalg.pinv(x)  # TPF404
    """

# A class that is no layer, and makes something of it.
TABLE = """
    from .ops import resample

    class Table:
        def __init__(self, x: Tensor):
            self.inverse = resample(x)
    """

# A method that a base calls, which another module has.
BASE = """
    class Base(nn.Module):
        def _evaluate(self, x: Tensor):
            return x

        def forward(self, x: Tensor):
            return self._evaluate(x)
    """
LAYER = """
    from .base import Base

    class Layer(Base):
        def _evaluate(self, x: Tensor):
            return x[x > 0]  # TPF402
    """

SILENT: dict[str, dict[str, str]] = {
    "called by set-up code of other modules": {
        "ops.py": RESAMPLE,
        "net.py": """
            from .ops import resample

            class Net(nn.Module):
                def __init__(self, x: Tensor):
                    super().__init__()
                    self.weight = resample(x)
            """,
        "files.py": """
            from pkg import ops

            class Store(nn.Module):
                def load_state_dict(self, state):
                    return ops.resample(state["x"] / torch.ones(3, device="cuda"))
            """,
    },
    "by way of another function, re-exported, under another name": {
        "__init__.py": "from .ops import resample\n",
        "ops.py": RESAMPLE,
        "mid.py": """
            from pkg import resample as again

            def halve(x: Tensor):
                return again(x / 2)
            """,
        "net.py": """
            from .mid import halve

            class Net(nn.Module):
                def reset_parameters(self):
                    self.weight = halve(self.weight)
            """,
    },
    "on the first call alone": {
        "checks.py": """
            def check_sorted(x: Tensor):
                if (x[1:] < x[:-1]).any():  # TPF301
                    raise ValueError
            """,
        "net.py": """
            from .checks import check_sorted

            class Net(nn.Module):
                def forward(self, x: Tensor):
                    if not self.checked:
                        check_sorted(x)
                        self.checked = True
                    return x * 2
            """,
    },
    "of a transform that datasets call": {
        "transforms/crop.py": """
            class Crop(RandomTransform):
                def __call__(self, image: Tensor):
                    if image.min() < 0:  # TPF301
                        return image
                    return self.shrunk(image)

                def shrunk(self, image: Tensor):
                    return image[image > 0]  # TPF402
            """,
    },
    "given what lies on the host": {
        "walk.py": """
            def walk(a: Tensor, b: Tensor):
                return a[b > 0]  # TPF402
            """,
        "sampler.py": """
            from .walk import walk

            class Sampler:
                def draw(self):
                    return walk(torch.zeros(3), torch.ones(3))
            """,
    },
    "given numbers": {
        "masks.py": """
            def mask(lengths: Tensor, most=None):
                if most is None:
                    most = lengths.max()
                return torch.arange(most, device=lengths.device) < lengths[:, None]  # TPF107
            """,
        "loss.py": """
            from .masks import mask

            class Loss(nn.Module):
                def forward(self, x: Tensor, lengths: Tensor):
                    return x * mask(lengths, x.size(1))
            """,
    },
    "an option of a private function that nobody turns on": {
        "ops.py": """
            def _solve(a: Tensor, b: Tensor, reverse=False):
                if reverse:
                    return torch.linalg.inv(a) @ b  # TPF404
                return a @ b
            """,
        "net.py": """
            from .ops import _solve

            class Net(nn.Module):
                def forward(self, a: Tensor, b: Tensor):
                    return _solve(a, b)
            """,
    },
    "made by a constructor that a layer's calls": {
        "ops.py": RESAMPLE,
        "table.py": TABLE,
        "net.py": """
            from .table import Table

            class Net(nn.Module):
                def __init__(self, x: Tensor):
                    super().__init__()
                    self.table = Table(x)
            """,
    },
    "called for the result of a metric alone, after all batches": {
        "ops.py": RESAMPLE,
        "metric.py": """
            from .ops import resample

            class Spread(Metric):
                def compute(self):
                    return resample(self.total)
            """,
    },
    "loops in what set-up calls": {
        "ops.py": """
            def sample(x: Tensor, count: int):
                for _ in range(count):
                    x = x - x[x > 0].mean()  # TPF402
                return x
            """,
        "net.py": """
            from .ops import sample

            class Net(nn.Module):
                def __init__(self, x: Tensor):
                    super().__init__()
                    self.weight = sample(x, 9)
            """,
    },
    "an option that is off by default": {
        "ops.py": """
            def solve(a: Tensor, b: Tensor, reverse=False):
                if reverse:
                    return torch.linalg.inv(a) @ b  # TPF404
                return a @ b
            """,
        "net.py": """
            from .ops import solve

            class Net(nn.Module):
                def forward(self, a: Tensor, b: Tensor):
                    return solve(a, b)
            """,
    },
}

LOUD: dict[str, dict[str, str]] = {
    "what stands in a package of functions to test with, called by a step there": {
        "test_functions/base.py": BASE,
        "test_functions/layer.py": LAYER,
    },
    "private, and named nowhere": {
        "ops.py": """
            @torch.no_grad()
            def _positives(x: Tensor):
                return x[x > 0]  # TPF402

            class Layer(nn.Module):
                def _unused(self, x: Tensor):
                    return x[x > 0]  # TPF402
            """,
    },
    "private, and only defined anew": {
        "ops.py": """
            class Layer(nn.Module):
                def _unused(self, x: Tensor):
                    return x[x > 0]  # TPF402

            class Wider(Layer):
                def _unused(self, x: Tensor):
                    return x[x > 1]  # TPF402
            """,
        "other.py": """
            class Other:
                def _unused(self, x: Tensor):
                    return x[x > 0]  # TPF402
            """,
    },
    "called by what nothing in the package names": {
        "ops.py": RESAMPLE,
        "_deprecated.py": """
            from .ops import resample

            def _resample(x: Tensor):
                return resample(x)
            """,
    },
    "a transform that is no dataset's": {
        "transforms/crop.py": """
            class Crop(nn.Module):
                def forward(self, image: Tensor):
                    if image.min() < 0:  # TPF301
                        return image
                    return image + 1
            """,
    },
    "called by set-up code and by a step": {
        "ops.py": RESAMPLE,
        "net.py": """
            from .ops import resample

            class Net(nn.Module):
                def __init__(self, x: Tensor):
                    super().__init__()
                    self.weight = resample(x)

                def forward(self, x: Tensor):
                    return resample(x)
            """,
    },
    "called by a function of which nobody knows who calls it": {
        "ops.py": RESAMPLE,
        "mid.py": """
            from .ops import resample

            def halve(x: Tensor):
                return resample(x / 2)
            """,
    },
    "called by nobody in the package": {"ops.py": RESAMPLE, "net.py": "from .ops import *\n"},
    "handed on as a value": {
        "ops.py": RESAMPLE,
        "net.py": """
            from .ops import resample

            TABLE = {"resample": resample}

            class Net(nn.Module):
                def __init__(self, x: Tensor):
                    super().__init__()
                    self.weight = resample(x)
            """,
    },
    "exported under another name": {
        "__init__.py": "from .ops import resample as again\n",
        "ops.py": RESAMPLE,
        "files.py": """
            from .ops import resample

            def load_weights(path):
                return resample(torch.load(path))
            """,
        "net.py": """
            from pkg import again

            class Net(nn.Module):
                def forward(self, x: Tensor):
                    return again(x)
            """,
    },
    "another function of its name is called in set-up": {
        "ops.py": RESAMPLE,
        "net.py": """
            def resample(x):
                return x

            class Net(nn.Module):
                def __init__(self, x: Tensor):
                    super().__init__()
                    self.weight = resample(x)
            """,
    },
    "given what lies on the host by one of two": {
        "walk.py": """
            def walk(a: Tensor, b: Tensor):
                return a[b > 0]  # TPF402
            """,
        "sampler.py": """
            from .walk import walk

            class Sampler:
                def draw(self):
                    return walk(torch.zeros(3), torch.ones(3))

                def step(self, a: Tensor, b: Tensor):
                    return walk(a, b)
            """,
    },
    "one of two calls is not understood": {
        "frames.py": """
            def first(x: Tensor):
                return torch.unique(x)  # TPF404
            """,
        "run.py": """
            from .frames import first

            def rank():
                return first(torch.ones(3))

            def ranked(inputs):
                return first(*inputs)
            """,
    },
    "what calls show to be a tensor, though one of them is not understood": {
        "walk.py": """
            def _larger(x, y):
                return y if x < y else x  # TPF301

            class Walk:
                def step(self, x: Tensor, more):
                    x = _larger(x.sum(), x.mean())
                    return _larger(x, *more)
            """,
    },
    "a private function that is registered, or that a class elsewhere may call": {
        "ops.py": """
            from somewhere import Base, registered

            @registered
            def _kept(x: Tensor):
                return x[x > 0]  # TPF402

            class Layer(Base):
                def _hook(self, x: Tensor):
                    return x[x > 0]  # TPF402
            """,
    },
    "made by a constructor that a step calls": {
        "ops.py": RESAMPLE,
        "table.py": TABLE,
        "net.py": """
            from .table import Table

            class Net(nn.Module):
                def forward(self, x: Tensor):
                    return Table(x).inverse
            """,
    },
    "a method that a base of another module calls": {
        "base.py": BASE,
        "layer.py": LAYER,
    },
    "in an entry point's loop over steps, in a method that runs before such a loop elsewhere": {
        "rows.py": """
            class Rows:
                def compact(self, x: Tensor):
                    return x[x > 0]  # TPF402
            """,
        "run.py": """
            class Engine(nn.Module):
                def generate(self, x: Tensor, rows):
                    x = self._first(x, rows)
                    for step in range(9):
                        x = self(x)
                    return x

                def _first(self, x: Tensor, rows):
                    for step in range(9):
                        x = rows.compact(x)
                    return x
            """,
    },
    "a compiled function": {
        "ops.py": """
            @torch.compile
            def resample(x: Tensor):
                return x[x > 0]  # TPF604
            """,
        "net.py": """
            from .ops import resample

            class Net(nn.Module):
                def __init__(self, x: Tensor):
                    super().__init__()
                    self.weight = resample(x)
            """,
    },
    "the forward of a transform, which may be a module": {
        "transforms/crop.py": """
            class Wrap(Transform):
                def forward(self, inputs: dict[str, Tensor]):
                    return inputs["x"][inputs["x"] > 0]  # TPF402
            """,
    },
    "called by tests, which say nothing": {
        "ops.py": RESAMPLE,
        "test_ops.py": """
            from .ops import resample

            def test_resample():
                resample(torch.ones(3, 3))
            """,
    },
    "loops that take steps in what set-up calls": {
        "ops.py": """
            def fitted(net: nn.Module, x: Tensor, optimizer, count: int):
                for _ in range(count):
                    loss = net(x[x > 0]).mean()  # TPF402
                    loss.backward()
                    optimizer.step()
                return net
            """,
        "net.py": """
            from .ops import fitted

            class Net(nn.Module):
                def __init__(self, x: Tensor, net, optimizer):
                    super().__init__()
                    self.net = fitted(net, x, optimizer, 9)
            """,
    },
    "a helper that a convention calls cold, called from a step of another module": {
        "ops.py": """
            def save_scale(x: Tensor):
                return x.max().item()  # TPF101

            def export_limits(x: Tensor):
                return save_scale(x) + x.min().item()  # TPF101
            """,
        "net.py": """
            from .ops import export_limits

            class Net(nn.Module):
                def forward(self, x: Tensor):
                    return x / export_limits(x)
            """,
    },
    "a method that a function calls in a loop which a convention calls cold": {
        "layer.py": """
            class Layer(nn.Module):
                def delta(self, a: Tensor, b: Tensor):
                    return torch.linalg.solve(a, b)  # TPF404
            """,
        "files.py": """
            def save_merged(layers, a, b):
                for layer in layers:
                    layer.weight += layer.delta(a, b)
            """,
    },
    "called by a function that a convention calls cold, which says nothing of what it calls": {
        "ops.py": RESAMPLE,
        "files.py": """
            from pkg import ops

            def load_weights(path):
                return ops.resample(torch.load(path))
            """,
    },
    "of which nothing else is known, called from a step through another module": {
        "ops.py": """
            def read(n: int):
                return torch.ones(n, device="cuda").sum().item()  # TPF101
            """,
        "middle.py": """
            from .ops import read

            def through(x: Tensor):
                return x / read(3)
            """,
        "net.py": """
            from pkg.middle import through

            class Net(nn.Module):
                def forward(self, x: Tensor):
                    return through(x)
            """,
    },
    "in a class that is called a transform, wherever it stands": {
        "distributions/transforms.py": """
            class Spline(Transform):
                def __call__(self, x: Tensor):
                    return x[x > 0]  # TPF402
            """,
    },
}


def packed(folder: Path, modules: dict[str, str]) -> list[Path]:
    """Write a package of these modules."""
    package = folder / "pkg"
    package.mkdir()
    for name, code in modules.items():
        module = package / name
        module.parent.mkdir(exist_ok=True)
        module.write_text(TORCH + textwrap.dedent(code))
        for above in (package, module.parent):
            (above / "__init__.py").touch()
    return sorted(package.rglob("*.py"))


def rows(path: Path, options: Options) -> list[tuple[int, str]]:
    found = lint(path.read_text(), str(path), options)
    return sorted((f.line, f.code) for f in found)


@pytest.mark.parametrize("modules", SILENT.values(), ids=list(SILENT))
def test_silent_by_default(tmp_path: Path, modules: dict[str, str]) -> None:
    for path in packed(tmp_path, modules):
        assert rows(path, ALL) == expected(path.read_text())
        assert rows(path, HOT) == []


@pytest.mark.parametrize("modules", LOUD.values(), ids=list(LOUD))
def test_reported_by_default(tmp_path: Path, modules: dict[str, str]) -> None:
    for path in packed(tmp_path, modules):
        wanted = expected(path.read_text())
        assert rows(path, ALL) == wanted
        assert rows(path, HOT) == wanted


def test_a_file_alone_is_no_package(tmp_path: Path) -> None:
    """What stands beside a script says nothing of who calls its functions."""
    source = TORCH + textwrap.dedent(LOUD["private, and named nowhere"]["ops.py"])
    path = tmp_path / "script.py"
    path.write_text(source)
    assert rows(path, HOT) == expected(source)


def test_what_is_linted_need_not_be_on_disk(tmp_path: Path) -> None:
    """An editor hands over the text as it is now: calls that were just written count."""
    packed(tmp_path, {"ops.py": "", "net.py": ""})
    source = program = TORCH + textwrap.dedent(RESAMPLE)
    source += "\n\nclass Net(nn.Module):\n    def __init__(self, x: Tensor):\n"
    source += "        super().__init__()\n        self.weight = resample(x)\n"
    path = str(tmp_path / "pkg" / "ops.py")
    assert [f.code for f in lint(program, path, HOT)] == ["TPF404"]
    assert lint(source, path, HOT) == []


def test_a_change_elsewhere_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_search, "TRUSTED", 0.0)
    packed(tmp_path, SILENT["called by set-up code of other modules"])
    ops, net = tmp_path / "pkg" / "ops.py", tmp_path / "pkg" / "net.py"
    assert rows(ops, HOT) == []
    net.write_text(net.read_text().replace("__init__(self, x", "forward(self, x"))
    os.utime(net, (1, 1))
    assert rows(ops, HOT) == expected(ops.read_text())


def test_modules_that_cannot_be_read(tmp_path: Path) -> None:
    """No Python, no text, nothing at all: what they say of a function is not known."""
    packed(tmp_path, {"ops.py": RESAMPLE, "net.py": "def resample(:\n"})
    ops = tmp_path / "pkg" / "ops.py"
    (tmp_path / "pkg" / "bytes.py").write_bytes(b"# coding: nonsense\nresample\xff\x00")
    (tmp_path / "pkg" / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "pkg" / "endless.py").symlink_to("/dev/zero")
    assert rows(ops, HOT) == expected(ops.read_text())


def test_of_a_large_package_what_is_around_is_searched(tmp_path: Path) -> None:
    named = SILENT["called by set-up code of other modules"]
    modules = {name: code.replace("resample", "_resample") for name, code in named.items()}
    modules["public.py"] = RESAMPLE
    modules["more.py"] = named["net.py"].replace(".ops", ".public")
    inner = packed(tmp_path, modules)[0].parent
    big = tmp_path / "big"
    big.mkdir()
    (big / "__init__.py").touch()
    (big / "data.py").write_text(f"# {'x' * MAX_TREE}\n")
    inner.rename(big / "pkg")
    assert rows(big / "pkg" / "ops.py", HOT) == []
    public = big / "pkg" / "public.py"
    assert rows(public, HOT) == expected(public.read_text())  # others may call it


def test_a_name_that_is_everywhere_is_anybodys(tmp_path: Path) -> None:
    modules = dict(SILENT["called by set-up code of other modules"])
    for number in range(text_search.MOST_MODULES):
        modules[f"more{number}.py"] = modules["net.py"]
    ops = tmp_path / "pkg" / "ops.py"
    packed(tmp_path, modules)
    assert rows(ops, HOT) == expected(ops.read_text())
