"""Residence: the reasons to believe that a value lies on the host."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.host_names import (
    computed_before_move,
    given_to_host,
    moved_later,
    names_on_way,
    other_place,
    root,
)
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.events.guards import HOST_ONLY
from flake8_torchperf.judgement.fate import FROM_DEVICE
from flake8_torchperf.values.devices import BESIDE_HOST
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.judgement.evidence import Evidence
    from flake8_torchperf.project.module_index import FunctionNode

# Each by the identity of the function around a site.
MOVED_LATER: Cache[int, dict[str, int]] = Cache("names moved later")
GIVEN_TO_HOST: Cache[int, frozenset[str]] = Cache("names given to the host's code")


BEFORE_MOVE: Cache[int, frozenset[str]] = Cache("names computed before a move")


def is_beside_host(e: Evidence) -> bool:
    """True if an operation with a tensor that is surely on the host shows where the value lies."""
    return isinstance(e.operand, Tensor) and e.operand.device == BESIDE_HOST


def lies_on_host(e: Evidence) -> bool:
    """True if the value lies on the host, by its name or because the function passes it to numpy.

    A name that the function moves to a device later lies on the host before, and so does what
    is computed from it before, or made where it lies.
    """
    if "to-device" in e.traits:
        return goes_where_host_is(e)
    placed = isinstance(e.operand, Tensor) and e.operand.device == "device"
    if placed or e.kind not in FROM_DEVICE:
        return False
    read: list[ast.AST] = [e.read]
    if isinstance(e.node, ast.Subscript):
        read += [e.node.value, e.node.slice]
    ctx = e.place
    table = ctx.analysis.conventions
    if any(table.says("variable", name, "on-host") for part in read for name in names_on_way(part)):
        return True
    if ctx.node is None:
        return False
    given = _given_to_host(ctx.node, ctx)
    if given and any(root(part) in given for part in read):
        return True
    moved = _moved_later(ctx.node, ctx)
    if not moved:
        return False
    before = _computed_before(ctx.node, moved, ctx)
    return any(root(part) in before for part in read) or any(
        isinstance(part, ast.expr) and part.lineno < moved.get(root(part), 0) for part in read
    )


def goes_where_host_is(e: Evidence) -> bool:
    """True for a copy to ``x.device`` if the function moves ``x`` to a device only later."""
    ctx = e.place
    if ctx.node is None or not isinstance(e.node, ast.Call):
        return False
    beside = other_place(e.node)
    moved = {} if beside is None else _moved_later(ctx.node, ctx)
    return beside is not None and beside.lineno < moved.get(root(beside), 0)


def takes_host_tensors(e: Evidence) -> bool:
    """True for an operation that fails with a tensor on a device."""
    return HOST_ONLY in e.traits


def _moved_later(function: FunctionNode, ctx: Context) -> dict[str, int]:
    """Return the names that a function moves to a device, with the lines; cached."""
    return MOVED_LATER.kept(
        ctx.analysis, id(function), lambda: moved_later(ctx.module.nodes(function))
    )


def _computed_before(function: FunctionNode, moved: dict[str, int], ctx: Context) -> frozenset[str]:
    """Return the names of what is computed from moved names before; cached."""
    return BEFORE_MOVE.kept(
        ctx.analysis,
        id(function),
        lambda: computed_before_move(
            ctx.module.nodes(function),
            moved,
            ctx.module.qualify,
            ctx.analysis.table.method_names(),
        ),
    )


def _given_to_host(function: FunctionNode, ctx: Context) -> frozenset[str]:
    """Return the names that a function passes to code that works on the host; cached."""
    return GIVEN_TO_HOST.kept(
        ctx.analysis,
        id(function),
        lambda: given_to_host(
            ctx.module.nodes(function), ctx.module.qualify, ctx.analysis.table.method_names()
        ),
    )
