"""Examples of the torch.compile FAQ that torch traces: one graph, and nothing to report.

The FAQ says of some that they fall back to eager; torch 2.13 no longer does. Those that still break
their graph are in `fixtures/compiled`.
"""

from __future__ import annotations

from typing import Any

import pytest
from linting import HOT, findings

torch = pytest.importorskip("torch")

HEAD = "import numpy as np\nimport torch\nfrom torch import Tensor\n\n"
EXAMPLES = {
    "a gradient inside": """
def f(x: Tensor):
    return torch.func.grad(lambda row: row.sin().sum())(x)
compiled = torch.compile(f)
given = (torch.randn(3, 3, 3),)
""",
    "vmap inside": """
def f(x: Tensor):
    return torch.vmap(lambda row: row.sum(1))(x)
compiled = torch.compile(f)
given = (torch.randn(3, 3, 3),)
""",
    "vmap inside, over a function of the module": """
def wave(x):
    return torch.sin(x)
@torch.compile
def f(x: Tensor):
    return torch.vmap(wave)(x)
given = (torch.randn(2, 3),)
""",
    "limitations 1: a tuple of tensors": """
def both(x):
    a, b = x
    return a + b
def f(x: tuple[Tensor, Tensor]):
    return torch.func.vmap(both)(x)
compiled = torch.compile(f)
given = ((torch.randn(3, 3, 3), torch.randn(3, 3, 3)),)
""",
    "limitations 2: keyword arguments": """
def total(x, y):
    return (x + y).sum()
def f(x: Tensor, y: Tensor):
    return torch.func.grad(total)(x, y=y)
compiled = torch.compile(f)
given = (torch.randn(3, 3), torch.randn(3, 3))
""",
    "limitations 3: a list made inside": """
def added(x, y):
    kept = []
    kept.append(1)
    return x + y
def f(x: Tensor, y: Tensor):
    return torch.func.vmap(added)(x, y)
compiled = torch.compile(f)
given = (torch.ones(2, 3), torch.randn(2, 3))
""",
    "limitations 4: strides under vmap": """
def asked(x):
    x.stride()
    return x
def f(x: Tensor):
    return torch.func.vmap(asked)(x)
compiled = torch.compile(f)
given = (torch.randn(3, 3, 3),)
""",
    "numpy": """
def f(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))
compiled = torch.compile(f)
given = (np.random.randn(16, 8), np.random.randn(16, 8))
""",
    "numpy over tensors": """
@torch.compile(fullgraph=True)
@torch.compiler.wrap_numpy
def f(X, Y):
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))
given = (torch.randn(16, 8), torch.randn(16, 8))
""",
    "numpy: written in place, and out=": """
def f(x: np.ndarray) -> np.ndarray:
    doubled = x * 2
    doubled += 1
    np.add(doubled, 1, out=doubled)
    return doubled
compiled = torch.compile(f)
given = (np.random.randn(16),)
""",
}


@pytest.mark.parametrize("code", list(EXAMPLES.values()), ids=list(EXAMPLES))
def test_one_graph_and_nothing_to_report(code: str) -> None:
    from flake8_torchperf.runtime.graph_breaks import explain, uncompiled

    torch._dynamo.reset()
    names: dict[str, Any] = {}
    with uncompiled():
        exec(compile(HEAD + code, "faq", "exec"), names)
    told = explain(names["f"], names["given"], {})
    assert (told.graphs, told.breaks, told.error) == (1, (), "")
    assert findings(HEAD + code, HOT) == []
