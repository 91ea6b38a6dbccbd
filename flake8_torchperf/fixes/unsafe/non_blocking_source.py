"""``pinned.to(d)`` -> ``pinned.to(d, non_blocking=True)``: the memory must then be left alone.

Only for memory that is pinned anew each time the copy runs, in the same function or by a loader: a
buffer that lives longer may be written again before the copy has read it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.safe.non_blocking import planned, rewrite
from flake8_torchperf.fixes.shared.tensors import bindings
from flake8_torchperf.syntax.traversal import below
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

__all__ = ["plan", "rewrite"]

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def plan(place: FixPlace) -> Edit | None:
    """Apply to a copy from memory that is pinned for it, and not written after it."""
    call = planned(place)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    source = call.func.value
    if isinstance(source, ast.Call):
        return Edit((call,)) if _pins(source) else None
    root = _root(source)
    if root is None or not _is_made_each_time(root, place) or _is_written_after(root, call, place):
        return None
    return Edit((call,))


def _root(node: ast.expr) -> ast.Name | None:
    """Return the name that an item or an attribute belongs to."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node if isinstance(node, ast.Name) and node.id not in ("self", "cls") else None


def _pins(node: ast.expr) -> bool:
    """True for ``x.pin_memory()`` and ``torch.empty(n, pin_memory=True)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="pin_memory")):
            return True
        case ast.Call(keywords=keywords):
            return any(
                one.arg == "pin_memory"
                and isinstance(one.value, ast.Constant)
                and one.value.value is True
                for one in keywords
            )
    return False


def _is_made_each_time(name: ast.Name, place: FixPlace) -> bool:
    """True if the round or call that copies a name has also made it, or took it from a loader."""
    function = place.around.function(name)
    if function is None:
        return False
    loop = _loop(name, place)
    if _comes_from_loader(place):
        return isinstance(loop, ast.For) and name.id in {
            one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)
        }
    found = bindings(function, name.id)
    return bool(found) and all(
        isinstance(one, ast.expr) and _pins(one) and _loop(one, place) is loop for one in found
    )


def _comes_from_loader(place: FixPlace) -> bool:
    operand = place.site.operand
    assert isinstance(operand, Tensor)
    return operand.reason.root().source is Source.LOADER_BATCH


def _loop(node: ast.AST, place: FixPlace) -> ast.AST | None:
    """Return the innermost loop around a node in its function."""
    function = place.around.function(node)
    here: ast.AST | None = node
    while here is not None and here is not function:
        if isinstance(here, _LOOPS):
            return here
        here = place.around.parent(here)
    return None


def _is_written_after(name: ast.Name, call: ast.Call, place: FixPlace) -> bool:
    """True if code behind a copy writes into the memory of a name."""
    function = place.around.function(name)
    assert function is not None
    return any(
        isinstance(owner, ast.Name) and owner.id == name.id
        for node in below(function)
        if getattr(node, "lineno", 0) > call.lineno
        for owner in _written(node)
    )


def _written(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the tensors that a node writes into: ``x[i] = v``, ``x += v`` and ``x.copy_(v)``."""
    match node:
        case ast.Subscript(value=owner, ctx=ast.Store()):
            yield owner
        case ast.AugAssign(target=ast.Name() as owner):
            yield owner
        case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr.endswith("_"):
            yield owner
