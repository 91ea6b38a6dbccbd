"""Names of torch however they came into the module, and names that only look like torch's."""

import subprocess
import sys

import pytest
from linting import check, findings, table

IMPORTS = {
    "torch as th": """
        import torch as th

        def step(x: th.Tensor):
            return th.sum(x).item()  # TPF101
        """,
    "from torch import Tensor as T": """
        from torch import Tensor as T

        def step(x: T):
            return x.item()  # TPF101
        """,
    "from torch import isinf, and another name": """
        from torch import isinf, isnan as nan

        def step(x):
            if nan(x).any():  # TPF301
                return x.item()  # TPF101
            return isinf(x).any().item()  # TPF101
        """,
    "the functional module": """
        import torch.nn.functional as F
        from torch.nn import functional

        def step(x, y):
            loss = F.cross_entropy(x, y)
            other = functional.mse_loss(x, y)
            return loss.item() + other.item()  # TPF101, TPF101
        """,
    "torch.nn, imported by parts": """
        from torch.nn import Linear, Module, Parameter

        class Net(Module):
            def __init__(self):
                super().__init__()
                self.head = Linear(3, 1)
                self.scale = Parameter(Linear(3, 1).weight)

            def forward(self, x):
                return self.head(x).item() + self.scale.item()  # TPF101, TPF101
        """,
    "import torch.nn binds torch": """
        import torch.nn

        def step(x: torch.Tensor):
            return torch.nn.functional.relu(x).item()  # TPF101
        """,
    "inside the function": """
        def step(x):
            import torch
            from torch import nn

            y = torch.relu(x)
            return y.item(), nn.functional.relu(x).tolist()  # TPF101, TPF102
        """,
    "a star import": """
        from torch import *

        def step(x: Tensor):
            return relu(x).item()  # TPF101
        """,
    "optional": """
        try:
            import torch
        except ImportError:
            torch = None

        def step(x: "torch.Tensor"):
            if torch is None:
                return 0
            return torch.relu(x).item()  # TPF101
        """,
    "behind TYPE_CHECKING": """
        from __future__ import annotations

        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            import torch
            from torch import Tensor

        def step(x: Tensor, y: torch.Tensor):
            return x.item() + y.item()  # TPF101, TPF101
        """,
    "an alias by assignment": """
        import torch

        Tensor = torch.Tensor
        relu = torch.relu

        def step(x: Tensor):
            return relu(x).item()  # TPF101
        """,
    "under another module's name": """
        import torch
        import torch.distributed as dist
        from torch import linalg as LA

        def step(x: torch.Tensor):
            dist.barrier()  # TPF106
            return LA.norm(x).item()  # TPF101
        """,
    "torch.cuda under a name": """
        from torch import cuda
        from torch.cuda import synchronize

        def step():
            cuda.synchronize()  # TPF106
            synchronize()  # TPF106
        """,
    "math under names": """
        import math as m
        from math import sqrt, isnan as nan
        import torch

        def step(x: torch.Tensor):
            return m.exp(x) + sqrt(x) + nan(x)  # TPF101, TPF101, TPF101
        """,
}


@table(IMPORTS)
def test_imports(code: str) -> None:
    check(code, prelude="")


NOT_TORCH = {
    "numpy": """
        import numpy as np
        import torch

        def step(n: int):
            x = np.linspace(0, 1, n)
            if x.sum() > 3 and x.any():
                return x.tolist(), float(x[0]), max(x), x[x > 0].item()
            for v in x:
                print(v)
        """,
    "jax": """
        import jax.numpy as jnp
        import torch

        def step(n: int):
            x = jnp.ones(n)
            return float(x.sum()), x.tolist()
        """,
    "a module of one's own called torch": """
        from mine import torch

        def step(x: torch.Tensor):
            return x.item()
        """,
    "a class of one's own called Tensor": """
        import torch

        class Tensor:
            def item(self):
                return 3

        def step(x: Tensor):
            return float(x.item())
        """,
    "a local called torch": """
        import torch

        def step(torch, x):
            return int(torch.relu(x))
        """,
    "pandas and PIL": """
        import pandas as pd
        import torch
        from PIL import Image

        def step(df: pd.DataFrame, image: Image.Image):
            return df["x"].item(), df.to_numpy(), image.convert("RGB").tobytes()
        """,
    "triton": """
        import torch
        import triton
        import triton.language as tl

        @triton.jit
        def step_kernel(x_ptr, n, block: tl.constexpr):
            i = tl.program_id(0)
            if i > n:
                return
            for j in range(n):
                tl.store(x_ptr + j, 0)
        """,
}


@table(NOT_TORCH)
def test_what_is_not_torch(code: str) -> None:
    check(code, prelude="")


@pytest.mark.parametrize(
    "source", ["", "\n", "# torch\n", "x = 1\n", '"""About torch."""\n', "import torch\n"]
)
def test_nothing_to_find(source: str) -> None:
    assert findings(source) == []


@pytest.mark.parametrize(
    "module",
    [
        "interpreter.driver.function_analysis",
        "interpreter.calls.summaries",
        "interpreter.events.graph_breaks",
        "interpreter.events.host_consumers",
        "judgement.frequency.function_heat",
    ],
)
def test_the_interpreter_may_be_entered_at(module: str) -> None:
    """Its parts import each other: what a caller names first must find the others."""
    code = f"import flake8_torchperf.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
