"""Compiled code reaches into the other modules of its package, by the calls that it makes."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from linting import ALL, HOT, expected, in_package, program

from flake8_torchperf.linter import lint
from flake8_torchperf.project.texts import text_search

ASSUMED = replace(ALL, assume_compiled=True)
PACKAGE = {
    "__init__.py": """
        from .ops import sized
        """,
    "ops.py": """
        import torch
        from torch import Tensor

        def sized(index: Tensor) -> int:
            return int(index.max()) + 1  # TPF602

        def unused(index: Tensor) -> int:
            return int(index.max()) + 1

        def deeper(x: Tensor) -> Tensor:
            return _deepest(x)

        def _deepest(x: Tensor) -> Tensor:
            return x[x > 0]  # TPF604

        @torch.compiler.disable
        def kept_out(x: Tensor) -> float:
            return x.sum().item()

        def only_eager(x: Tensor) -> float:
            return x.sum().item()

        def by_star(x: Tensor) -> float:
            return x.sum().item()  # TPF602

        def imported_inside(x: Tensor) -> float:
            return x.sum().item()  # TPF602

        class Meter:
            def __init__(self, x: Tensor):
                self.top = x.max().item()  # TPF602

            def update(self, x: Tensor):
                self.top = x.max().item()  # TPF602

            def reset(self, x: Tensor):
                self.top = x.max().item()
        """,
    "base.py": """
        from torch import Tensor, nn

        class Base(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                if self.enabled:
                    x = self.transform(x)
                return self.scale(x) * self.factor

            def transform(self, x: Tensor) -> Tensor:
                raise NotImplementedError

            def scale(self, x: Tensor) -> Tensor:
                return x

            @property
            def factor(self) -> float:
                return self.weight.sum().item()  # TPF602

            def extra_repr(self) -> str:
                return str(self.weight.sum().item())

            def helper(self, x: Tensor) -> float:
                return x.sum().item()  # TPF602
        """,
    "net.py": """
        import torch
        from torch import Tensor, nn
        import package as pk
        from package import sized
        from . import ops
        from .ops import *
        from .base import Base
        from .ops import deeper as deep, kept_out, only_eager, Meter

        class Net(Base):
            def __init__(self, meter: Meter):
                super().__init__()
                self.meter = meter
                self.part = Part()

            def transform(self, x: Tensor) -> Tensor:
                from .ops import imported_inside
                n = sized(x) + pk.sized(x)
                kept_out(x)
                if not torch.compiler.is_compiling():
                    only_eager(x)
                imported_inside(x)
                by_star(x)
                return deep(x) * self.helper(x) * x.mean().item()  # TPF602

            def scale(self, x: Tensor) -> Tensor:
                self.meter.update(x)
                Meter(x)
                self.part.run(x)
                return super().scale(x)

        class Part(nn.Module):
            def run(self, x: Tensor) -> float:
                return x.sum().item()  # TPF602

            def stop(self, x: Tensor) -> float:
                return x.sum().item()
        """,
    "called.py": """
        from torch import Tensor, nn

        class Aggregation(nn.Module):
            def __call__(self, x: Tensor, n=None):
                n = int(x.max())  # TPF602
                return super().__call__(x, n)

            def forward(self, x: Tensor, n: int):
                return x * n
        """,
    "log.py": """
        import logging

        def get_logger(name=None):
            _configure()
            return logging.getLogger(name or "package")

        def _configure():
            pass
        """,
    "helpers.py": """
        import torch

        def rows(x, counts):
            return torch.repeat_interleave(x, counts, dim=0)  # TPF604

        def sized(x, counts, total):
            return torch.repeat_interleave(x, counts, dim=0, output_size=total)

        def torch_int(x):
            return x.long() if torch.jit.is_tracing() and torch.is_tensor(x) else int(x)
        """,
    "model.py": """
        import math
        import torch
        from torch import Tensor, nn
        from .helpers import rows, sized, torch_int

        class Model(nn.Module):
            def forward(self, x: Tensor, counts: Tensor):
                height = x.shape[0]
                new = (
                    torch_int(torch.ceil(height / counts))
                    if torch.jit.is_tracing()
                    else torch_int(height / 2)
                )
                return rows(x, counts.cumsum(0)) + sized(x, counts, new)
        """,
    "stated.py": """
        import logging
        import typing

        class TextLogger(typing.Protocol):
            def warning(self, text: object) -> None: ...

        def get_logger(name: str | None = None) -> TextLogger:
            return logging.getLogger(name or "package")
        """,
    "stating.py": """
        from torch import Tensor, nn
        from . import stated as logging

        logger = logging.get_logger(__name__)

        class Net(nn.Module):
            def forward(self, x: Tensor):
                if not self.flag_warned:
                    logger.warning_once("text")  # TPF601
                return x
        """,
    "logs.py": """
        from torch import Tensor, nn
        from .log import get_logger
        from . import log as logging

        logger = get_logger(__name__)
        other = logging.get_logger(__name__)

        class Net(nn.Module):
            def forward(self, x: Tensor):
                logger.info("text")  # TPF601
                other.warning("text")  # TPF601
                return x
        """,
}


def test_what_forward_calls_in_other_modules_is_compiled(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    texts = {name: textwrap.dedent(text) for name, text in PACKAGE.items()}
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name, text in texts.items():
        found = lint(text, str(folder / name), ASSUMED)
        compiled = [(f.line, f.code) for f in found if f.code.startswith("TPF6")]
        assert compiled == expected(text), name
        plain = lint(text, str(folder / name), HOT)
        assert not [f for f in plain if f.code.startswith("TPF6")]
    told = lint(texts["ops.py"], str(folder / "ops.py"), ASSUMED)[0].message
    assert "called by the compiled Net.forward" in told or "Base.forward" in told


def test_a_change_in_another_module_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_search, "TRUSTED", 0.0)
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    helper = "import torch\n\n\ndef helper(x: torch.Tensor):\n    return x.sum().item()\n"
    (folder / "ops.py").write_text(helper)
    net = "from torch import nn\nfrom .ops import helper\n\nclass Net(nn.Module):\n"
    net += "    def forward(self, x):\n        return {}\n"
    (folder / "net.py").write_text(net.format("x"))

    def codes() -> set[str]:
        return {f.code for f in lint(helper, str(folder / "ops.py"), ASSUMED)}

    assert "TPF602" not in codes()
    (folder / "net.py").write_text(net.format("helper(x)"))
    assert "TPF602" in codes()


@pytest.mark.parametrize(
    ("name", "reported"), [("inductor/graph.py", False), ("exporting/graph.py", True)]
)
def test_a_compilers_own_modules_stay_cold(tmp_path: Path, name: str, reported: bool) -> None:
    """By the effect `cold-if-compiled` of their row; a module that is only cold does not."""
    code = program("""
        def outer(x: Tensor):
            def inner(y: Tensor):
                return y.sum().item()
            return torch.compile(inner)(x)
        """)
    found = lint(code, in_package(tmp_path, name, code), HOT)
    assert bool(found) is reported
