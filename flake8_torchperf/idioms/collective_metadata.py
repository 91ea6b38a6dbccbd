"""Numbers that processes exchange as tensors: they start on the host, which needs them back.

With NCCL, a size or a flag can only travel through the device, so the host has to wait for it. The
analysis is by syntax alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import once, plain_names, walk

if TYPE_CHECKING:
    from flake8_torchperf.syntax.traversal import Nodes

# Functions that make a tensor from numbers of the host.
METADATA_MAKERS = frozenset((
    "torch.tensor", "torch.as_tensor", "torch.LongTensor", "torch.IntTensor", "torch.FloatTensor",
    "torch.cuda.LongTensor", "torch.cuda.IntTensor", "torch.cuda.FloatTensor",
    "torch.cuda.ByteTensor",
))  # fmt: skip


def exchanged(nodes: Nodes, qualify: Callable[[ast.expr], str]) -> frozenset[str]:
    """Return the names that a collective exchanges, if it is passed a number from the host.

    Names that loops bind to parts of these are included.
    """
    return _given(
        [call for call in nodes.of(ast.Call) if _collective(call, qualify)], nodes, qualify
    )


def reduced(code: ast.AST, nodes: Nodes, qualify: Callable[[ast.expr], str]) -> frozenset[str]:
    """Return the names of numbers from the host that a reduction changes, and that decide later.

    A total or a mean can be used on the device, but a length that decides how the host goes on has
    to come back. ``nodes`` are those of ``code``.
    """
    calls = [call for call in nodes.of(ast.Call) if _reduces(call, qualify)]
    if not calls:
        return frozenset()
    deciding = _deciding(code)
    names = (node for node in nodes.of(ast.Name) if id(node) in deciding)
    return _given(calls, nodes, qualify) & {one.id for one in names if isinstance(one, ast.Name)}


def _given(
    calls: list[ast.Call], nodes: Nodes, qualify: Callable[[ast.expr], str]
) -> frozenset[str]:
    """Return the names passed to these calls, if one of the values is made of numbers."""
    if not calls:
        return frozenset()
    numbers = _numbers(nodes, qualify)
    found: set[str] = set()
    for call in calls:
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        named = {one.id for one in given if isinstance(one, ast.Name)}
        if not numbers.isdisjoint(named) or any(_makes(one, qualify) for one in given):
            found |= named
    return frozenset(found | _parts(nodes, found))


def _reduces(call: ast.Call, qualify: Callable[[ast.expr], str]) -> bool:
    """True for ``torch.distributed.all_reduce(x)`` and methods that are named like it."""
    name = qualify(call.func)
    return name == "torch.distributed.all_reduce" or (
        isinstance(call.func, ast.Attribute) and call.func.attr in ("all_reduce", "allreduce")
    )


@once
def _deciding(code: ast.AST) -> frozenset[int]:
    """Return the nodes, by identity, that decide how code goes on: in tests, in ``range(...)``."""
    tests: list[ast.AST] = []
    for node in walk([code]):
        match node:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                tests.append(test)
            case ast.Call(func=ast.Name(id="range")):
                tests += node.args
    decided = walk(tests)
    names = {node.id for node in decided if isinstance(node, ast.Name)}
    tests = [
        node.value
        for node in walk([code])
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id in names for target in node.targets)
    ]
    return frozenset(map(id, (*decided, *walk(tests))))


def controls(code: ast.AST, node: ast.AST) -> bool:
    """True if an expression is part of what decides how the code goes on, even by a name."""
    return id(node) in _deciding(code)


def _collective(call: ast.Call, qualify: Callable[[ast.expr], str]) -> bool:
    """True for a collective that passes numbers on unchanged; sums can be used on the device.

    A method of a user's own object or module counts if it has the name of one of these collectives.
    """
    name = qualify(call.func)
    if name.startswith("torch.distributed."):
        return "reduce" not in name
    return isinstance(call.func, ast.Attribute) and call.func.attr in HANDING_ON


# The methods of a user's own objects that pass tensors on unchanged.
HANDING_ON = frozenset(("broadcast", "all_gather", "allgather"))
# Functions that make tensors of a given size.
METADATA_BUFFERS = frozenset(("torch.zeros", "torch.ones", "torch.empty", "torch.full"))


def _makes(node: ast.AST, qualify: Callable[[ast.expr], str]) -> bool:
    """True for a tensor of numbers alone: ``torch.tensor([n])``, ``torch.tensor([n]).cuda()``."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr in ("to", "cuda", "long", "int"))
    ):
        node = node.func.value
    if not isinstance(node, ast.Call):
        return False
    name = qualify(node.func)
    return name in METADATA_MAKERS or (
        name in METADATA_BUFFERS and bool(node.args) and _of_one(node.args[0])
    )


def _of_one(size: ast.expr) -> bool:
    """True for a size of one number: ``torch.zeros(1)``, ``torch.empty((1,))``."""
    if isinstance(size, (ast.Tuple, ast.List)):
        return len(size.elts) == 1 and _of_one(size.elts[0])
    return isinstance(size, ast.Constant) and size.value == 1


def _numbers(nodes: Nodes, qualify: Callable[[ast.expr], str]) -> set[str]:
    """Return the names bound only to tensors made of numbers, and never written into."""
    made: dict[str, bool] = {}
    for node in nodes.of_any(ast.Assign, ast.AugAssign):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                made[name] = made.get(name, True) and _makes(value, qualify)
            case ast.AugAssign(target=written) | ast.Assign(targets=[ast.Subscript() as written]):
                into: ast.expr = written
                while isinstance(into, ast.Subscript):
                    into = into.value
                if isinstance(into, ast.Name):
                    made[into.id] = False
    return {name for name, alone in made.items() if alone}


def _parts(nodes: Nodes, found: set[str]) -> set[str]:
    """Return the names that loops over the names found bind, at any depth.

    ``for rank, size in enumerate(sizes)``, and ``for length in size`` within it.
    """
    taken: set[str] = set()
    for node in nodes.of_any(ast.For, ast.comprehension):
        if not plain_names(node.iter).isdisjoint(found | taken):
            taken |= plain_names(node.target)
    return taken
