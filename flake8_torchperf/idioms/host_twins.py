"""Copies of tensors on the host, which engines keep beside them: `seq_lens` and `seq_lens_cpu`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.syntax.traversal import once, walk

if TYPE_CHECKING:
    from collections.abc import Sequence

# How the name of a copy on the host differs from that of its tensor, as in vLLM and sglang. That of
# a list says less: it may hold tensors of the device.
OF_COPIES = ("_cpu", "_host", "_np", "_on_host")
BEFORE_COPIES = ("cpu_", "host_")


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
        for twin in (
            *(f"{name}{one}" for one in OF_COPIES),
            *(f"{one}{name}" for one in BEFORE_COPIES),
        )
    }
    for names in map(_first_lines, around):
        for name in sorted(wanted & names.keys()):
            if names[name] < read.lineno:
                return name
    return ""


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


@once
def _first_lines(function: ast.AST) -> dict[str, int]:
    """Return the names of a function that may be those of copies, each with its first line."""
    found: dict[str, int] = {}
    for node in walk([function]):
        match node:
            case ast.arg(arg=name):
                pass
            case ast.Name() | ast.Attribute():
                name = dotted_name(node)
            case _:
                continue
        last = name.rpartition(".")[2]
        if last.endswith(OF_COPIES) or last.startswith(BEFORE_COPIES):
            found[name] = min(found.get(name, node.lineno), node.lineno)
    return found
