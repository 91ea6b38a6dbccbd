"""What iterating or unpacking a value yields, and the sites that iterating a tensor makes.

Enters a value; leaves the value of its elements. Must not know statements.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.provenance import Source
from flake8_torchperf.absint.domain.rank import ranked
from flake8_torchperf.absint.domain.values import (
    LOADED,
    NDARRAY,
    STR,
    UNKNOWN,
    ClassValue,
    External,
    Instance,
    Mapping_,
    NDArray,
    NoneValue,
    Opaque,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Union,
    Value,
    join_all,
)
from flake8_torchperf.absint.inference.parameters import parameters_of
from flake8_torchperf.absint.inference.usage_inference import evidence_of
from flake8_torchperf.events.recording import emit_read
from flake8_torchperf.events.site import SiteKind
from flake8_torchperf.hotness.model import Cause
from flake8_torchperf.syntax.traversal import once, walk

if TYPE_CHECKING:
    from flake8_torchperf.absint.engine.analysis import Context

# torch.nn containers whose iteration yields modules or parameters
PARAMETER_HOLDERS = {"torch.nn.ParameterList", "torch.nn.modules.container.ParameterList"}


def element_of(value: Value) -> Value:
    """What ``for x in value`` gives ``x``, and ``value[i]`` with an integer."""
    match value:
        case Tensor():
            return replace(element_of_tensor(value), role="iterated")
        case Sequence(element=element):
            return element
        case Mapping_(key=key):
            return key
        case NDArray():
            return NDARRAY
        case Opaque(what="loaded on the host"):
            return LOADED
        case Scalar(kind="str"):
            return STR
        case Instance(name=name) if name in PARAMETER_HOLDERS:
            reason = Reason("element of a ParameterList")
            return Tensor(reason, role="parameter")
        case Instance(name="torch.utils.data.DataLoader", facts=facts):
            # A batch, or any part of one: loaded by workers, so on the host until it is moved.
            reason = Reason(
                "batch of a DataLoader", None, None, Strength.INFERRED, Source.LOADER_BATCH
            )
            memory = next((m for m in ("pinned", "pageable") if m in facts), "")
            return Tensor(reason, device="host", memory=memory)
        case Instance(name="torch.nn.Sequential" | "torch.nn.ModuleList", parts=parts):
            return Instance("torch.nn.Module") if parts is None else parts.element
        case Union(options=options, met=met):
            tensors = [o for o in options if not isinstance(o, (NoneValue, Scalar))]
            elements = join_all(element_of(o) for o in tensors)
            # Which of the declared options it is, nobody has seen: no more so of its elements.
            return replace(elements, met=met) if isinstance(elements, Union) else elements
        case External() | ClassValue():
            return UNKNOWN
    return UNKNOWN


def element_of_tensor(tensor: Tensor) -> Tensor:
    """One element or row of a tensor: one dimension less, where its number is known."""
    # What had two dimensions to exchange has rows.
    scalar = False if tensor.chain[-1:] and tensor.chain[-1] in EXCHANGING else None
    row = replace(tensor, scalar=scalar, chain=(), role="element", rank=None)
    return ranked(row, tensor.rank - 1) if tensor.rank else row


EXCHANGING = ("transpose", "transpose_", "swapaxes", "swapdims", "permute", "movedim", "moveaxis")


def paired(value: Value) -> Value:
    """What ``dict(value)`` holds: a dict's own, or that of pairs; Unknown of anything else."""
    if isinstance(value, Mapping_) or not isinstance(value, Sequence):
        return value if isinstance(value, Mapping_) else UNKNOWN
    match value.element:
        case Sequence(items=(key, held)) if value.items is None:
            return Mapping_(key, held)
    pairs = [p.items for p in value.items or () if isinstance(p, Sequence) and p.items]
    if not pairs or len(pairs) < len(value.items or ()) or any(len(p) != 2 for p in pairs):
        return UNKNOWN
    named = {key.value: v for key, v in pairs if isinstance(key, Scalar) and key.kind == "str"}
    if len(named) == len(pairs) and all(isinstance(name, str) for name in named):
        return Mapping_(STR, UNKNOWN, tuple(named.items()), made=True)
    return Mapping_(join_all(k for k, _ in pairs), join_all(v for _, v in pairs))


def values_of(value: Value, count: int) -> list[Value]:
    """What each of ``count`` targets gets when ``value`` is unpacked."""
    if isinstance(value, Sequence) and value.items is not None and len(value.items) == count:
        return list(value.items)
    if isinstance(value, Union):
        options = [o for o in value.options if isinstance(o, Sequence) and o.items is not None]
        fitting = [o for o in options if len(o.items or ()) == count]
        if fitting:
            return [join_all((o.items or ())[i] for o in fitting) for i in range(count)]
    if isinstance(value, Tensor):
        # `x, y = points.T` gives rows more often than numbers.
        return [element_of_tensor(value)] * count
    return [element_of(value)] * count


# Ways to take all of something apart at once.
WHOLE = ("unpack", "star", "list", "tuple")


def _never_tested(value: Value) -> bool:
    """Is it taken apart although a declaration allows None? Then it says little of the truth.

    ``rotary: Tensor | None = None`` above ``cos, sin = rotary`` is a pair.
    """
    return (
        isinstance(value, Union)
        and not value.met
        and any(isinstance(option, NoneValue) for option in value.options)
    )


def _left_out(value: Value, ctx: Context) -> bool:
    """Is it an optional parameter as it was given, tested for None or not? The same goes for it."""
    if not isinstance(value, Tensor) or value.chain or value.role or ctx.node is None:
        return False
    return any(
        isinstance(default, ast.Constant) and default.value is None
        for parameter, default in parameters_of(ctx.node.args)
        if value.reason.node is parameter and parameter.annotation is not None
    )


def _only_declared(value: Value, ctx: Context) -> bool:
    """A parameter that is declared a tensor, and that nothing but this taking apart is done with.

    ``def forward(self, x: Tensor, rotary: Tensor)`` above ``cos, sin = rotary`` is given a pair.
    """
    if not isinstance(value, Tensor) or value.chain or ctx.node is None:
        return False
    node = value.reason.node
    if not isinstance(node, ast.arg) or value.reason.source is not Source.PARAMETER_ANNOTATION:
        return False
    use = evidence_of(ctx.node, ctx.module, ctx.analysis).uses.get(node.arg)
    return use is None or not (use.told or use.hints or use.method)


def unpack_reads(
    value: Value,
    operation: str,
    node: ast.expr,
    ctx: Context,
    traits: tuple[str, ...] = (),
) -> None:
    """Record that a tensor is iterated by Python."""
    kind = SiteKind.TENSOR_ITERATION
    declared = _never_tested(value) or _left_out(value, ctx) or _only_declared(value, ctx)
    if operation in WHOLE and declared:
        return
    if operation == "unpack" or (operation == "list" and not ctx.loops and not _row_of(value)):
        # torch/_tensor.py, `__iter__`: one `unbind`, whatever the number of names.
        ctx = ctx.demote(Cause.AT_ONCE)
    if operation == "tuple" and _as_index(node, ctx):
        ctx = ctx.demote(Cause.AT_ONCE)
    emit_read(ctx, kind, operation, node, value, operand_node=node, traits=traits)


def _row_of(value: Value) -> bool:
    """Is it a tensor of one dimension, of which a list holds as many tensors as it has numbers?"""
    return isinstance(value, Tensor) and value.rank == 1


def _as_index(node: ast.expr, ctx: Context) -> bool:
    """``x[tuple(indices)]``, or of ``index_put_``: one for each dimension, which are few."""
    return ctx.node is not None and id(node) in _in_index_tuples(ctx.node)


@once
def _in_index_tuples(function: ast.AST) -> frozenset[int]:
    """The calls that are indices themselves, and what each is given, by identity."""
    found: set[int] = set()
    for inner in walk([function]):
        match inner:
            case (
                ast.Subscript(slice=ast.Call(args=[given]) as call)
                | ast.Call(
                    func=ast.Attribute(attr="index_put" | "index_put_"),
                    args=[ast.Call(args=[given]) as call, *_],
                )
            ):
                found.update((id(call), id(given)))
    return frozenset(found)
