"""Names whose values lie on the host, as far as the syntax of their function shows.

The name ``lengths_cpu`` shows it. ``x.numpy()`` and ``np.sort(x)`` fail with a tensor on a device
(torch/csrc/utils/tensor_numpy.cpp), so ``x`` lies on the host, before that line as well.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.bindings import times_bound
from flake8_torchperf.syntax.names import given_to

if TYPE_CHECKING:
    from flake8_torchperf.syntax.traversal import Nodes


def names_on_way(node: ast.AST | None) -> Iterator[str]:
    """Yield the names that an expression takes its value from, without those of methods."""
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
    """Return the names, bound once, that are passed to code that only takes host values.

    That code is numpy and ``pack_padded_sequence``, which takes lengths on the host. The names that
    these names are derived from by the ``methods`` of tensors are included. A name that the code
    tests for a tensor is passed to numpy where it is none.
    """
    found: set[str] = set()
    arrays: set[str] = set()
    either: set[str] = set()
    for call in nodes.of(ast.Call):
        match call:
            case ast.Call(func=ast.Attribute(value=made, attr="numpy"), keywords=[]):
                found.update(_source(made, methods))
            case ast.Call(func=ast.Attribute() | ast.Name() as func, args=args):
                called = qualify(func)
                if called.startswith("numpy."):
                    arrays.update(one.id for one in args if isinstance(one, ast.Name))
                elif classes_asked_for(call, qualify) == ["torch.Tensor"]:
                    either.update(one.id for one in args[:1] if isinstance(one, ast.Name))
                elif called == PACKING:
                    lengths = [*args[1:2], *(k.value for k in call.keywords if k.arg == "lengths")]
                    found.update(one.id for one in lengths if isinstance(one, ast.Name))
    found |= arrays - either
    if not found:
        return frozenset()
    bound = times_bound(nodes)
    bound.update(parameter.arg for parameter in nodes.of(ast.arg))
    _add_sources(nodes, bound, found, methods)
    return frozenset(name for name in found if bound[name] == 1 and name not in ("self", "cls"))


def classes_asked_for(call: ast.Call, qualify: Callable[[ast.expr], str]) -> list[str]:
    """Return the full names of the classes that a call asks a value for; none for other calls.

    Such calls are ``isinstance(x, (torch.Tensor, float))`` and ``torch.is_tensor(x)``.
    """
    called = qualify(call.func)
    if called == "torch.is_tensor":
        return ["torch.Tensor"]
    if len(call.args) != 2 or not called.endswith("isinstance"):
        return []
    kinds = call.args[1]
    return list(map(qualify, kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]))


def _add_sources(
    nodes: Nodes, bound: Counter[str], found: set[str], methods: Collection[str]
) -> None:
    """Add the names that those found are derived from: ``rows`` in ``ids, n = rows[0].unique()``.

    One pass goes from the last line up, because a source stands above the names derived from it.
    """
    for made in sorted(nodes.of(ast.Assign), key=lambda node: node.lineno, reverse=True):
        target = made.targets[0]
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        if any(name in found and bound[name] == 1 for name in names):
            found.update(_source(made.value, methods))


def _source(node: ast.expr, methods: Collection[str]) -> list[str]:
    """Return ``x`` for ``x[0].view(-1).sort()``, whose result lies where ``x`` does; no modules."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if (
                name in methods and name not in methods_of("moves")
            ):
                node = inner
            case ast.Subscript(value=inner) | ast.Attribute(value=inner, attr="T" | "mT" | "data"):
                node = inner
            case _:
                return []
    return [node.id]


def moved_later(nodes: Nodes) -> dict[str, int]:
    """Return the names that a function moves to a device, each with the line of the first move.

    Code with ``x = x.to(self.device)`` expects ``x`` to lie elsewhere before that line.
    """
    found: dict[str, int] = {}
    for call in nodes.of(ast.Call):
        match call:
            case ast.Call(func=ast.Attribute(value=owner, attr="to" | "cuda" as name)):
                given = given_to(call)
                if name == "cuda" or any(map(is_device, given)):
                    moved = root(owner)
                    if moved not in ("", "self", "cls"):
                        found[moved] = min(call.lineno, found.get(moved, call.lineno))
    return found


def computed_before_move(
    nodes: Nodes,
    moved: dict[str, int],
    qualify: Callable[[ast.expr], str],
    methods: Collection[str],
) -> frozenset[str]:
    """Return the names, bound once, of what torch computes from moved names before their moves.

    ``rms`` is one in ``rms = wav.square().mean()`` above ``wav = wav.to(device)``, and so is a list
    to which only such values are appended.
    """
    bound = times_bound(nodes)
    found: set[str] = set()
    lists: dict[str, bool] = {}

    def is_before(node: ast.expr) -> bool:
        while isinstance(node, ast.Call) and qualify(node.func).startswith("torch.") and node.args:
            node = node.args[0]
        names = _source(node, methods)
        return any(name in found or node.lineno < moved.get(name, 0) for name in names)

    for node in sorted(nodes.of_any(ast.Assign, ast.Call), key=lambda one: one.lineno):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if bound[name] == 1:
                if name not in moved and is_before(value):
                    found.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[item]):
                lists[name] = lists.get(name, True) and bound[name] == 1 and is_before(item)
    return frozenset(found.union(name for name, before in lists.items() if before))


def other_place(call: ast.Call) -> ast.expr | None:
    """Return ``x`` for a call that puts its result where ``x`` lies; None for other calls.

    Such calls are ``torch.tensor(v, device=x.device)``, ``t.to(x.device)``, ``t.type_as(x)`` and
    ``x.new_tensor(v)``.
    """
    match call:
        case ast.Call(func=ast.Attribute(value=owner, attr="new_tensor" | "new")):
            return owner
        case ast.Call(func=ast.Attribute(attr="type_as"), args=[other]):
            return other
    for given in (*call.args, *(one.value for one in call.keywords if one.arg == "device")):
        match given:
            case ast.Attribute(value=other, attr="device") if root(other) not in ("self", "cls"):
                return other
    return None


def is_device(given: ast.expr) -> bool:
    """True if an argument of ``to`` is a device by its name: ``device``, ``self.device``, "cuda".

    ``inputs["device"]`` is one as well.

    ``x.device`` does not count: another tensor's device may be where this one already lies.
    """
    match given:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
            return "device" in name.lower()
        case ast.Constant(value=str(text)):
            return text.partition(":")[0] == "cuda"
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return "device" in key.lower()
    return False


def root(node: ast.AST | None) -> str:
    """Return the name at the start of ``x[i].max()``; "" if there is none."""
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
