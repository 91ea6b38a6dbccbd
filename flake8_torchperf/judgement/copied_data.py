"""Copies to a device whose data may differ from call to call."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.data_freshness import DataFreshness
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.values.devices import SOMETIMES
from flake8_torchperf.values.host_data import CHOSEN, NUMPY, PYTHON
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context, Site

FRESHNESS: Cache[int, DataFreshness] = Cache("where data comes from")


def is_compiled_in(site: Site) -> bool:
    """True for a few numbers in compiled code, which are written into the kernel that uses them."""
    tensor, ctx = site.operand, site.place
    made = isinstance(tensor, Tensor) and tensor.origin == PYTHON and "to-device" in site.traits
    return made and bool(ctx.compiled) and "vmap" not in ctx.traits


def varies(site: Site) -> bool:
    """True if what a copy to a device holds may differ from call to call."""
    tensor = site.operand
    if not isinstance(tensor, Tensor) or tensor.scalar or "non-blocking" in site.traits:
        return False
    if tensor.origin in (CHOSEN, SOMETIMES):
        return False
    data = _made_of(tensor, site.place)
    return data is not None and _fresh(site.place).varies(data)


def _made_of(tensor: Tensor, ctx: Context) -> ast.expr | None:
    """Return the host data that a call in this same function made the tensor of, if one did."""
    if tensor.origin not in (PYTHON, NUMPY):
        return None
    made = tensor.reason.node
    if ctx.node is None or not isinstance(made, ast.Call) or not made.args:
        return None
    return made.args[0] if _fresh(ctx).holds(made) else None


def _fresh(ctx: Context) -> DataFreshness:
    """Return the sources of the data in the current function; cached."""
    function, module = ctx.node, ctx.module
    assert function is not None
    return FRESHNESS.kept(
        ctx.analysis,
        id(function),
        lambda: DataFreshness(function, module.nodes(function), ctx.self_name),
    )
