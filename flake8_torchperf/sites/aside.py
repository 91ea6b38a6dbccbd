"""Functions that show by what they do that no step is in them: they build, draw, measure, compare.

Enters a function; leaves a yes or no. By syntax and imports alone; must not know values or rules.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.sites.steps import TRAINING, steps_within, trains
from flake8_torchperf.suspects.walk import walk

if TYPE_CHECKING:
    from flake8_torchperf.suspects.modulemap import FunctionInfo

# Functions of torch.testing and numpy.testing that raise.
ASSERTING = frozenset(("assert_close", "assert_allclose", "assert_array_equal", "assert_equal"))
# Modules of torch.nn that hold weights.
WEIGHTED = (
    "Linear", "Bilinear", "Conv", "LazyConv", "LazyLinear", "BatchNorm", "LayerNorm", "GroupNorm",
    "RMSNorm", "Embedding", "LSTM", "GRU", "RNN", "MultiheadAttention", "Transformer",
)  # fmt: skip
# Methods that draw, of matplotlib's axes and of others.
DRAWING = ("imshow", "plot_", "subplots", "savefig", "set_xlabel")
# Methods that go through what a module holds.
PARTS = frozenset((
    "parameters", "named_parameters", "modules", "named_modules", "children", "named_children",
    "buffers", "named_buffers",
))  # fmt: skip


def is_aside(info: FunctionInfo) -> bool:
    """Is a function beside the steps by what it does, and with it every loop in it?"""
    words = info.nodes.words()
    return (
        _returns_arrays(info)
        or _prepares(info)
        or not words.isdisjoint(ASSERTING)
        or ("elapsed_time" in words and not trains(info))  # who times the device waits on purpose
        or (not words.isdisjoint(PARTS) and _hands_back_module(info))
        or (any(word.startswith(WEIGHTED) for word in words) and _makes_layers(info))
        or _draws(info)
    )


def _prepares(info: FunctionInfo) -> bool:
    """``def _prepare(self)``: of nothing that it is given, so once."""
    return info.name.lstrip("_") == "prepare" and len(info.node.args.args) == 1


def makes_functions(info: FunctionInfo) -> bool:
    """A factory or decorator: its own body runs once for the function that it returns."""
    made = {
        s.name for s in info.node.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    return bool(made) and any(
        isinstance(s, ast.Return) and isinstance(s.value, ast.Name) and s.value.id in made
        for s in info.node.body
    )


def _returns_arrays(info: FunctionInfo) -> bool:
    """``-> np.ndarray``, ``-> list[np.ndarray]``: it is made to hand arrays out.

    So is one that makes a number of an array: an optimizer of scipy's calls it.
    """
    match info.node.returns:
        case None:
            return False
        case ast.Name(id="float"):
            return any(_speaks_of_arrays(a.annotation) for a in info.node.args.args)
        case returns:
            return _speaks_of_arrays(returns)


def _speaks_of_arrays(annotation: ast.expr | None) -> bool:
    return annotation is not None and any(
        isinstance(n, ast.Attribute) and n.attr == "ndarray" for n in walk([annotation])
    )


def _hands_back_module(info: FunctionInfo) -> bool:
    """``def zero_module(module)``: does it go through a module's parts and then return the module?

    So a module is prepared where it is made: ``self.out = zero_module(nn.Linear(n, n))``.
    """
    results = [one.value for one in info.nodes.of(ast.Return)]
    returned = {result.id for result in results if isinstance(result, ast.Name)}
    prepared = returned & {a.arg for a in info.node.args.args[:1]}
    return bool(prepared) and any(
        _parts_of(loop.iter) in prepared for loop in info.nodes.of(ast.For)
    )


def _parts_of(iterated: ast.expr) -> str:
    """``module`` of ``module.parameters()``; "" for anything else."""
    match iterated:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=part)) if part in PARTS:
            return name
    return ""


def _makes_layers(info: FunctionInfo) -> bool:
    """Does it make layers with weights, ``new = nn.Conv2d(n, m, 1)``, and hand something back?

    A step has its layers already. A program makes them too, before its loop over steps.
    """
    if steps_within(info.node) or not any(one.value for one in info.nodes.of(ast.Return)):
        return False
    made = [info.module.qualify(call.func) for call in info.nodes.of(ast.Call)]
    return any(
        name.startswith("torch.nn.") and name.rpartition(".")[2].startswith(WEIGHTED)
        for name in made
    )


def _draws(info: FunctionInfo) -> bool:
    """Does it draw what it computes, for a person to look at? A training loop may do that as well.

    By matplotlib, or by a function that is called so: ``plots.plot_rankings(ranks)``.
    """
    called = [c.func for c in info.nodes.of(ast.Call) if isinstance(c.func, ast.Attribute)]
    if not TRAINING.isdisjoint([func.attr for func in called]):
        return False
    if any(func.attr.startswith(DRAWING) for func in called):
        return True
    qualify = info.module.qualify
    return any(target.startswith("matplotlib") for target in info.module.imports.values()) and any(
        qualify(func).startswith("matplotlib.") for func in called
    )
