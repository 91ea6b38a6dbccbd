"""Where parameters lie, by the tensors that their function combines them with.

torch computes with tensors of one device alone; only a tensor without dimensions on the host may be
combined with any other (aten/src/ATen/TensorIterator.cpp, compute_types). So ``x * self.weight``
shows where ``x`` lies, wherever in the function it stands.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.values.devices import BESIDE_HOST, CHOSEN
from flake8_torchperf.values.values import Sequence, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionNode, ModuleMap
    from flake8_torchperf.values.arguments import Arguments

# By the identity of a function: the residence of its parameters, and those that it never rebinds.
FOUND: Cache[int, dict[str, str]] = Cache("parameters by what they are combined with")
FIXED: Cache[int, frozenset[str]] = Cache("parameters that are never rebound")
# Functions that take tensors of the host beside tensors of a device.
MIXING = frozenset(("ctc_loss", "pack_padded_sequence", "pad_packed_sequence"))


def places_of(node: FunctionNode, analysis: Analysis) -> dict[str, str]:
    """Return the residence of the parameters of a function that was interpreted, where shown."""
    return FOUND.table(analysis).get(id(node), {})


def note(sides: Iterable[tuple[ast.AST | None, Value]], ctx: Context, device: str = "") -> None:
    """Note where parameters lie that are combined with each other, and with ``device``.

    ``sides`` are the operands, each with its expression.
    """
    if ctx.node is None or ctx.compiled:
        return
    tensors = [(node, value) for node, value in sides if isinstance(value, Tensor)]
    place = device or _place([value for _, value in tensors])
    if not place:
        return
    for node, value in tensors:
        if not isinstance(node, ast.Name) or value.device != "unknown" or value.scalar is True:
            continue
        if node.id in _fixed(ctx.node, ctx):
            FOUND.table(ctx.analysis).setdefault(id(ctx.node), {}).setdefault(node.id, place)


def note_arguments(short: str, arguments: Arguments, ctx: Context) -> None:
    """Note where the parameters lie that a function of torch is given together."""
    if short not in MIXING:
        note((side for one in arguments.all() for side in _sides(one.node, one.value)), ctx)


def _sides(node: ast.AST, value: Value) -> Iterator[tuple[ast.AST, Value]]:
    """Yield an argument with its expression; of a list as written, each of its items."""
    match node, value:
        case ((ast.List(elts=written) | ast.Tuple(elts=written)), Sequence(items=items)) if items:
            yield from zip(written, items, strict=False)
        case _:
            yield node, value


def _place(tensors: list[Tensor]) -> str:
    """Return the residence that one of some tensors shows of the others; "" if none does."""
    for tensor in tensors:
        if tensor.device == "host" and tensor.scalar is False:
            return BESIDE_HOST
    placed = (one for one in tensors if one.device in ("device", CHOSEN))
    return CHOSEN if any(one.scalar is not True for one in placed) else ""


def _fixed(node: FunctionNode, ctx: Context) -> frozenset[str]:
    """Return the parameters of a function that it never rebinds; cached."""
    return FIXED.kept(ctx.analysis, id(node), lambda: _never_rebound(node, ctx.module))


def _never_rebound(node: FunctionNode, module: ModuleMap) -> frozenset[str]:
    bound = {
        one.id
        for one in module.nodes(node).of(ast.Name)
        if isinstance(one.ctx, (ast.Store, ast.Del))
    }
    return frozenset(one.arg for one in named_parameters(node.args)) - bound
