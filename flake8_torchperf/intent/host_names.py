"""Names that lie on the host as far as their function tells without its flow.

``lengths_cpu`` says where it lies. ``x.numpy()`` and ``np.sort(x)`` fail with a tensor on a device
(torch/csrc/utils/tensor_numpy.cpp), so ``x`` is on none, before that line as well.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.syntax.traversal import Nodes


def names_on_way(node: ast.AST | None) -> Iterator[str]:
    """The names that an expression takes its value from; those of methods are none."""
    while node is not None:
        match node:
            case ast.Call(func=ast.Attribute(value=owner)):
                node = owner
            case ast.Attribute(value=owner, attr=name):
                yield name
                node = owner
            case ast.Subscript(value=owner) | ast.UnaryOp(operand=owner):
                node = owner
            case ast.Compare(left=owner) | ast.BinOp(left=owner):
                node = owner
            case ast.Name(id=name):
                yield name
                return
            case _:
                return


# Lengths in a tensor have to lie on the host (aten/src/ATen/native/PackedSequence.cpp).
PACKING = "torch.nn.utils.rnn.pack_padded_sequence"


def given_to_host(
    nodes: Nodes, qualify: Callable[[ast.expr], str], methods: Collection[str]
) -> frozenset[str]:
    """The names of a function, bound once, that are given to what takes the host's.

    That is numpy, and what packs sequences of such lengths. What they are made of by the
    ``methods`` of tensors is there too.
    """
    found: set[str] = set()
    for call in nodes.of(ast.Call):
        match call:
            case ast.Call(func=ast.Attribute(value=made, attr="numpy"), keywords=[]):
                found.update(_source(made, methods))
            case ast.Call(func=ast.Attribute() | ast.Name() as func, args=args):
                called = qualify(func)
                if called.startswith("numpy."):
                    found.update(argument.id for argument in args if isinstance(argument, ast.Name))
                elif called == PACKING:
                    lengths = [*args[1:2], *(k.value for k in call.keywords if k.arg == "lengths")]
                    found.update(one.id for one in lengths if isinstance(one, ast.Name))
    if not found:
        return frozenset()
    bound = Counter(name.id for name in nodes.of(ast.Name) if isinstance(name.ctx, ast.Store))
    bound.update(parameter.arg for parameter in nodes.of(ast.arg))
    _add_sources(nodes, bound, found, methods)
    return frozenset(name for name in found if bound[name] == 1 and name not in ("self", "cls"))


def _add_sources(
    nodes: Nodes, bound: Counter[str], found: set[str], methods: Collection[str]
) -> None:
    """Add what the names found are made of: ``rows`` of ``ids, counts = rows[0].unique()``.

    From the last line up, once: what a name is made of stands above it.
    """
    for made in sorted(nodes.of(ast.Assign), key=lambda node: node.lineno, reverse=True):
        target = made.targets[0]
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        if any(name in found and bound[name] == 1 for name in names):
            found.update(_source(made.value, methods))


def _source(node: ast.expr, methods: Collection[str]) -> list[str]:
    """``x`` of ``x[0].view(-1).sort()``, whose result lies where ``x`` does; no modules."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if (
                name in methods and name not in MOVING
            ):
                node = inner
            case ast.Subscript(value=inner) | ast.Attribute(value=inner, attr="T" | "mT" | "data"):
                node = inner
            case _:
                return []
    return [node.id]


# Methods whose result need not lie where the tensor does.
MOVING = frozenset(("cpu", "to", "cuda", "type"))


def moved_later(nodes: Nodes) -> dict[str, int]:
    """The names that a function moves to a device, and the line from which on they lie there.

    Whoever writes ``x = x.to(self.device)`` expects ``x`` to be elsewhere before.
    """
    found: dict[str, int] = {}
    for call in nodes.of(ast.Call):
        match call:
            case ast.Call(func=ast.Attribute(value=owner, attr="to" | "cuda" as name)):
                given = [*call.args, *(keyword.value for keyword in call.keywords)]
                if name == "cuda" or any(map(_is_device, given)):
                    moved = root(owner)
                    if moved not in ("", "self", "cls"):
                        found[moved] = min(call.lineno, found.get(moved, call.lineno))
    return found


def _is_device(given: ast.expr) -> bool:
    """``device``, ``self.device``, ``"cuda"``: is an argument of ``to`` a device by its name?

    That of another tensor, ``x.device``, may be the one it lies on already.
    """
    match given:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
            return "device" in name.lower()
        case ast.Constant(value=str(text)):
            return text.partition(":")[0] == "cuda"
    return False


def root(node: ast.AST | None) -> str:
    """The name at the start of ``x[i].max()``; "" where there is none."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case ast.Attribute(value=inner) | ast.Subscript(value=inner):
                node = inner
            case ast.UnaryOp(operand=inner):
                node = inner
            case ast.BinOp(left=inner) | ast.Compare(left=inner):
                node = inner
            case _:
                return ""
    return node.id
