"""Fate of copies to a device: data that is new has to be copied, and some is not copied at all."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.data_freshness import DataFreshness
from flake8_torchperf.idioms.number_or_tensor import made_a_tensor
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.events.guards import WAITED_FOR
from flake8_torchperf.interpreter.events.transfers import (
    CHOSEN,
    NUMPY,
    PINNED,
    PYTHON,
    STRIDED,
)
from flake8_torchperf.syntax.traversal import changes_in
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.devices import SOMETIMES
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flake8_torchperf.interpreter.engine.place import Context, Site

# Data that has to be copied once it exists, and that its loader can pin.
NEW_EACH_TIME = (Source.LOADER_BATCH, Source.TOKENIZER)


def causes_of_copy(site: Site) -> Iterator[Cause]:
    """Yield the reasons that a copy to a device is needed, or is none; the first one counts."""
    tensor, ctx = site.operand, site.place
    if not isinstance(tensor, Tensor):
        return
    if tensor.origin == PYTHON and ctx.compiled and "vmap" not in ctx.traits:
        # torch.compile writes a few numbers into the kernel that computes with them.
        yield Cause.COMPILED
    if tensor.origin in (CHOSEN, SOMETIMES) and not {STRIDED, "non-blocking"} <= site.traits:
        yield Cause.HOST_MADE
    elif tensor.memory != PINNED and tensor.reason.root().source in NEW_EACH_TIME:
        if "non-blocking" not in site.traits:
            yield Cause.NEW_DATA
    else:
        yield from _of_data(site, tensor, _made_of(tensor, ctx))


def varies(site: Site, causes: Sequence[Cause]) -> bool:
    """True if what a copy to a device holds may differ from call to call.

    ``causes`` are those that `causes_of_copy` yields; any about the data says why it is copied.
    """
    tensor, ctx = site.operand, site.place
    if not isinstance(tensor, Tensor) or tensor.scalar or "non-blocking" in site.traits:
        return False
    if any(cause is not Cause.COMPILED for cause in causes):
        return False
    data = _made_of(tensor, ctx)
    return data is not None and _fresh(ctx).varies(data)


def _of_data(site: Site, tensor: Tensor, data: ast.expr | None) -> Iterator[Cause]:
    ctx = site.place
    if data is None or ctx.node is None:
        return
    if tensor.origin == PYTHON and made_a_tensor(data, ctx.node):
        yield Cause.EITHER
    if WAITED_FOR in ctx.traits and _written_out(data):
        yield Cause.WAITED_FOR
    if tensor.scalar or "non-blocking" in site.traits:
        return
    if _new_each_time(tensor, data, ctx) and not _same_in_each_round(data, ctx):
        yield Cause.NEW_DATA


def _written_out(data: ast.expr) -> bool:
    """True if the data is nothing but literals: ``0.0``, ``[0.0]``."""
    if isinstance(data, (ast.List, ast.Tuple)):
        return all(map(_written_out, data.elts))
    return isinstance(data, ast.Constant)


def _made_of(tensor: Tensor, ctx: Context) -> ast.expr | None:
    """Return the host data that a call in this same function made the tensor of, if one did."""
    if tensor.origin not in (PYTHON, NUMPY):
        return None
    made = tensor.reason.node
    if ctx.node is None or not isinstance(made, ast.Call) or not made.args:
        return None
    return made.args[0] if _fresh(ctx).holds(made) else None


FRESHNESS: Cache[int, DataFreshness] = Cache("where data comes from")


def _fresh(ctx: Context) -> DataFreshness:
    """Return the sources of the data in the current function; cached."""
    function, module = ctx.node, ctx.module
    assert function is not None
    return FRESHNESS.kept(
        ctx.analysis,
        id(function),
        lambda: DataFreshness(function, module.nodes(function), module, ctx.self_name),
    )


def _new_each_time(tensor: Tensor, data: ast.expr, ctx: Context) -> bool:
    """True for data that is passed to the function, or that another library returned."""
    known = _fresh(ctx)
    return known.array(data) if tensor.origin == NUMPY else known.listed(data)


def _same_in_each_round(data: ast.expr, ctx: Context) -> bool:
    """True if the loop around the copy copies the same data in each round."""
    return bool(ctx.loops) and not changes_in(data, ctx.loops[-1].node)
