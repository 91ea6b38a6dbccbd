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
def wrapper_fn(x: Tensor):
    return torch.func.grad(lambda x: x.sin().sum())(x)
compiled = torch.compile(wrapper_fn)
given = (torch.randn(3, 3, 3),)
""",
    "vmap inside": """
def my_fn(x: Tensor):
    return torch.vmap(lambda x: x.sum(1))(x)
compiled = torch.compile(my_fn)
given = (torch.randn(3, 3, 3),)
""",
    "vmap inside, over a function of the module": """
def f(x):
    return torch.sin(x)
@torch.compile
def g(x: Tensor):
    return torch.vmap(f)(x)
compiled = g
given = (torch.randn(2, 3),)
""",
    "limitations 1: a tuple of tensors": """
def fn(x):
    x1, x2 = x
    return x1 + x2
def my_fn(x: tuple[Tensor, Tensor]):
    return torch.func.vmap(fn)(x)
compiled = torch.compile(my_fn)
given = ((torch.randn(3, 3, 3), torch.randn(3, 3, 3)),)
""",
    "limitations 2: keyword arguments": """
def fn(x, y):
    return (x + y).sum()
def my_fn(x: Tensor, y: Tensor):
    return torch.func.grad(fn)(x, y=y)
compiled = torch.compile(my_fn)
given = (torch.randn(3, 3), torch.randn(3, 3))
""",
    "limitations 3: a list made inside": """
def f(x, y):
    some_list = []
    some_list.append(1)
    return x + y
def my_fn(x: Tensor, y: Tensor):
    return torch.func.vmap(f)(x, y)
compiled = torch.compile(my_fn)
given = (torch.ones(2, 3), torch.randn(2, 3))
""",
    "limitations 4: strides under vmap": """
def bad_fn(x):
    x.stride()
    return x
def my_fn(x: Tensor):
    return torch.func.vmap(bad_fn)(x)
compiled = torch.compile(my_fn)
given = (torch.randn(3, 3, 3),)
""",
    "numpy": """
def numpy_fn(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))
compiled = torch.compile(numpy_fn)
given = (np.random.randn(16, 8), np.random.randn(16, 8))
""",
    "numpy over tensors": """
@torch.compile(fullgraph=True)
@torch.compiler.wrap_numpy
def numpy_fn(X, Y):
    return np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))
compiled = numpy_fn
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
    from flake8_torchperf.runtime.counting.graph_breaks import explain, uncompiled

    torch._dynamo.reset()
    names: dict[str, Any] = {}
    with uncompiled():
        exec(compile(HEAD + code, "faq", "exec"), names)
    told = explain(names["compiled"], names["given"], {})
    assert (told.graphs, told.breaks, told.error) == (1, (), "")
    assert findings(HEAD + code, HOT) == []
