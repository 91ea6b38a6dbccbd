"""Copies of tensors on the host, which engines keep beside them: `seq_lens` and `seq_lens_cpu`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.syntax.traversal import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# How the name of a copy on the host differs from that of its tensor, as in vLLM and sglang. That of
# a list says less: it may hold tensors of the device.
ENDINGS = ("_cpu", "_host", "_np", "_on_host")
BEGINNINGS = ("cpu_", "host_")


def host_twin(read: ast.expr, around: Sequence[ast.AST]) -> str:
    """Return the copy on the host of the tensor that an expression reads; "" if none is known.

    ``around`` are the nodes of the function that reads it. It knows the copy before the read: as a
    parameter, or because an earlier line uses or binds it, or an attribute beside the tensor.
    """
    tensor = _base(read)
    owner, _, name = tensor.rpartition(".")
    if not name:
        return ""
    wanted = {
        f"{owner}.{twin}" if owner else twin
        for twin in (*(f"{name}{one}" for one in ENDINGS), *(f"{one}{name}" for one in BEGINNINGS))
    }
    return next(
        (name for name, line in _named(around) if name in wanted and line < read.lineno), ""
    )


def _base(node: ast.expr) -> str:
    """Return the name of the tensor on which the methods and indices of an expression act."""
    while True:
        match node:
            case ast.Call(func=function, args=[value, *_]) if _is_function(function):
                node = value
            case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value):
                node = value
            case _:
                return dotted_name(node)


def _is_function(node: ast.expr) -> bool:
    """True for a function of Python's or torch's own, as `int` or `torch.sum`."""
    return isinstance(node, ast.Name) or dotted_name(node).partition(".")[0] == "torch"


def _named(around: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """Yield the names of a function, each with its line."""
    for node in walk(around):
        match node:
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.Name() | ast.Attribute():
                yield dotted_name(node), node.lineno
