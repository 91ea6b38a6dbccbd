"""Signs that a function may read a tensor's value or index by a mask, beside the words of calls."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.moves import copies_to_device
from flake8_torchperf.suspects.words import CONVERTING
from flake8_torchperf.syntax.host_expressions import surely_host

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from flake8_torchperf.syntax.traversal import Nodes


def decides(nodes: Nodes, hosts: Container[str]) -> bool:
    """True if a branch, a loop or an assertion may test a tensor."""
    tests = nodes.of_any(ast.If, ast.While, ast.IfExp, ast.Assert)
    return any(not surely_host(one.test, hosts) for one in tests)


def converts(nodes: Nodes, hosts: Container[str]) -> bool:
    """True if a call may make a Python number of a tensor: ``float(loss)``."""
    return any(
        isinstance(call.func, ast.Name)
        and call.func.id in CONVERTING
        and call.args
        and not surely_host(call.args[0], hosts)
        for call in nodes.of(ast.Call)
    )


def places(nodes: Nodes) -> bool:
    """True if a call copies host data to a device: ``torch.tensor(x, device=d)``."""
    return any(map(copies_to_device, nodes.of(ast.Call)))


def masks(nodes: Nodes) -> bool:
    """True if something is indexed by a comparison, or by a name that says it is a mask."""
    return any(map(_is_mask, indices(nodes)))


def indices(nodes: Nodes) -> Iterator[ast.expr]:
    """Yield what something is indexed by, each of several indices by itself."""
    for item in nodes.of(ast.Subscript):
        yield from item.slice.elts if isinstance(item.slice, ast.Tuple) else (item.slice,)


def _is_mask(index: ast.expr) -> bool:
    match index:
        case ast.Compare() | ast.UnaryOp(op=ast.Invert()):
            return True
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.rpartition("_")[2] == "mask"
    return False
