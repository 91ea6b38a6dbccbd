"""Programs that the linter reads and torch's tracer runs: both must name the same lines."""

from __future__ import annotations

import linecache
import logging
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from linting import ALL, expected, table

from flake8_torchperf.linter import lint
from flake8_torchperf.runtime.counting.graph_breaks import explain

pytestmark = pytest.mark.usefixtures("guards_are_not_timed")

HEAD = """
import functools
import logging
import math
import typing
import torch
import torch.nn.functional as F
from torch import Tensor, nn
"""
MODES = {
    "the values that only other modes see": """
        def f(x: Tensor, n: Tensor):
            size = torch.min(torch.tensor((3, 4))) if torch.jit.is_tracing() else min((3, 4))
            if size > 2:
                x = x + 1
            if torch.jit.is_tracing():
                length = torch.tensor(x.shape[0])
            else:
                length = x.shape[0]
            if length > 2:
                x = x + 1
            traced = torch.jit.is_tracing() and x.sum()
            if traced:
                x = x - 1
            return x
        """,
    "the values that compiled code sees": """
        def f(x: Tensor, n: Tensor):
            a = x.sum() if not torch.compiler.is_compiling() else 3
            b = torch.compiler.is_compiling() or x.sum()
            c = torch.compiler.is_compiling() and x.sum()
            if a > 2 and b:
                x = x + 1
            if torch.compiler.is_compiling():
                d = x.sum()
            else:
                d = 3
            if c:  # TPF603
                x = x + 1
            return x + 1 if d > 2 else x  # TPF603
        """,
    "tests of a mode beside other tests": """
        def f(x: Tensor, n: Tensor):
            if torch.jit.is_tracing() and x.sum() > 0:
                x = x + x.sum().item()
            if torch.jit.is_scripting() and x.sum() > 0:
                x = x + x.sum().item()
            if torch.onnx.is_in_onnx_export() and x.sum() > 0:
                x = x + x.sum().item()
            if torch.fx._symbolic_trace.is_fx_symbolic_tracing() and x.sum() > 0:
                x = x + x.sum().item()
            if torch._C._get_tracing_state() and x.sum() > 0:
                x = x + x.sum().item()
            if not torch.jit.is_tracing() and x.sum() > 0:  # TPF603
                x = x + 1
            return x
        """,
    "tests of a mode that a library wraps": """
        def is_tracing(x=None):
            return torch.compiler.is_compiling() or torch.jit.is_tracing()
        def is_torch_fx_proxy(x):
            return isinstance(x, torch.fx.Proxy)
        def is_jit_tracing():
            return torch.jit.is_tracing()
        def f(x: Tensor, n: Tensor):
            if not is_tracing(x) and x.sum() > 0:
                x = x + 1
            if is_torch_fx_proxy(x) and x.sum() > 0:
                x = x + 1
            if is_jit_tracing() and x.sum() > 0:
                x = x + 1
            return x
        """,
    "windows and padding": """
        def torch_int(x):
            return x.long() if torch.jit.is_tracing() and isinstance(x, Tensor) else int(x)
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.window_size = 3
            def set_size(self, resolution):
                if min(resolution) <= self.window_size:
                    self.window_size = (
                        torch.min(torch.tensor(resolution))
                        if torch.jit.is_tracing()
                        else min(resolution)
                    )
            def pad(self, x, height, width):
                right = (self.window_size - width % self.window_size) % self.window_size
                pad_values = (0, right, 0, 0)
                return F.pad(x, pad_values), pad_values
            def forward(self, x: Tensor):
                height, width = x.shape
                self.set_size((height, width))
                x, pad_values = self.pad(x, height, width)
                if pad_values[1] > 0:
                    x = x[:, :width].contiguous()
                return x.view(-1, torch_int(self.window_size - 2))
        layer = Layer()
        def f(x: Tensor, n: Tensor):
            return layer(x)
        """,
    "a size that only tracing computes with tensors": """
        def torch_int(x):
            return x.long() if torch.jit.is_tracing() and isinstance(x, Tensor) else int(x)
        def f(x: Tensor, n: Tensor):
            height = (
                torch_int(torch.ceil(x.shape[0] / n) * n)
                if torch.jit.is_tracing()
                else int(math.ceil(x.shape[0] / 2) * 2)
            )
            if height != x.shape[0]:
                x = x + 1
            return x
        """,
}
NUMBERS = {
    "sizes that torch divides": """
        def f(x: Tensor, n: Tensor):
            half = torch.div(x.shape[0], 2, rounding_mode="floor")
            count = torch.div(half + 1, 2, rounding_mode="trunc") - 1
            y = x.view(half, -1)
            z = x.new_zeros((half, count + 1, 2))
            return y.sum() + z.sum() + torch.arange(half) + torch.zeros(count + 1)
        """,
    "what Python asks of them": """
        def f(x: Tensor, n: Tensor):
            half = torch.div(x.shape[0], 2, rounding_mode="floor")
            if half > 1:  # TPF603
                x = x + 1
            for i in range(int(half)):  # TPF602
                x = x + i
            return x
        """,
    "a slice": """
        def f(x: Tensor, n: Tensor):
            half = torch.div(x.shape[0], 2, rounding_mode="floor")
            return x[:half]  # TPF602
        """,
    "a slice by a literal": """
        def f(x: Tensor, n: Tensor):
            return x[: torch.tensor(2)]  # TPF602
        """,
    "paddings and sizes read from tensors": """
        def f(x: Tensor, n: Tensor):
            y = F.pad(x + 1, (0, n.max()))  # TPF602
            y = y + 1
            y = F.interpolate(y[None, None], size=(n[0] + 1, n[1] + 2))  # TPF602
            return F.interpolate(y, size=(5, 6)) + F.pad(y, (0, 1))[..., :1, :1]
        """,
    "tensors as repeats": """
        def rows(x, counts):
            return x.repeat_interleave(counts, dim=0)  # TPF604
        def f(x: Tensor, n: Tensor):
            y = rows(x + 1, n.abs())
            z = y.repeat_interleave(3, dim=1)
            return torch.repeat_interleave(x, n, dim=0, output_size=5) + z.sum()
        """,
}
LOGGERS = {
    "a logger's methods": """
        log = logging.getLogger("torchperf-traced")
        def f(x: Tensor, n: Tensor):
            x = x + 1
            log.warning("a")  # TPF601
            x = x + 1
            log.debug("a")  # TPF601
            x = x + 1
            log.setLevel(40)  # TPF601
            x = x + 1
            if log.isEnabledFor(50):  # TPF601
                x = x + 1
            return x
        """,
    "a method that a project adds to loggers": """
        @functools.lru_cache(None)
        def warning_once(self, *args):
            self.warning(*args)
        logging.Logger.warning_once = warning_once
        log = logging.getLogger("torchperf-traced")
        def f(x: Tensor, n: Tensor):
            x = x + 1
            log.warning_once("a")  # TPF601
            return x
        """,
    "a logger declared by a protocol": """
        class TextLogger(typing.Protocol):
            level: int
            def warning(self, text: object) -> None: ...
        def get_logger(name: str | None = None) -> TextLogger:
            return logging.getLogger(name or "torchperf-traced")
        log = get_logger("torchperf-traced")
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.has_warned = False
            def forward(self, x: Tensor):
                x = x + 1
                if not self.has_warned:
                    log.warning("a")  # TPF601
                return x
        net = Net()
        def f(x: Tensor, n: Tensor):
            return net(x)
        """,
    "a logger that compiled code asks for": """
        def f(x: Tensor, n: Tensor):
            log = logging.getLogger("torchperf-traced")  # TPF601
            return x + 1
        """,
}
GRADIENTS = {
    "any flag": """
        def f(x: Tensor, n: Tensor, need: bool = False):
            y = x.detach() * 2
            y.requires_grad = need  # TPF608
            z = x.detach() * 2
            z.requires_grad = False  # TPF608
            return y * z
        """,
    "of a parameter": """
        layer = nn.Linear(4, 4)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x: Tensor):
                for parameter in self.layer.parameters():
                    parameter.requires_grad = False  # TPF608
                return self.layer(x)
        net = Net()
        def f(x: Tensor, n: Tensor):
            return net(x)
        """,
    "of a value that nothing else shows to be a tensor": """
        def freed(x, held):
            held["x"].requires_grad = True  # TPF608
            y = held["x"] * 2
            y = y.detach() + 1
            y.requires_grad_()  # TPF608
            return y * 2
        def f(x: Tensor, n: Tensor):
            return freed(x, {"x": x.detach() + 1})
        """,
}


@table({**MODES, **NUMBERS, **LOGGERS, **GRADIENTS})
def test_linter_names_the_lines_at_which_the_tracer_breaks(code: str, tmp_path: Path) -> None:
    source = HEAD + textwrap.dedent(code).replace("def f(", "@torch.compile\ndef f(")
    path = tmp_path / "traced.py"
    path.write_text(source)
    told = expected(source)
    found = lint(source, str(path), ALL)
    assert sorted({(f.line, f.code) for f in found if f.code.startswith("TPF6")}) == sorted(
        set(told)
    )
    assert _broken(source, str(path)) == {line for line, _ in told}


def _broken(source: str, path: str) -> set[int]:
    """Return the lines of a program at which the tracer ends a graph, by their innermost frames."""
    linecache.checkcache(path)
    names: dict[str, Any] = {"__name__": "traced"}
    torch._dynamo.reset()
    logger = logging.getLogger("torchperf-traced")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    try:
        exec(compile(source, path, "exec"), names)
        arguments = (torch.randn(4, 4), torch.tensor([1, 2, 1, 1]))
        found = explain(names["f"], arguments, {})
    finally:
        if hasattr(logging.Logger, "warning_once"):
            del logging.Logger.warning_once
    assert not found.error
    own = ([line for file, line in one.stack if file == path] for one in found.breaks)
    return {lines[-1] for lines in own if lines}
