"""Subscripts: indexing tensors by numbers, masks, lists and slices; items of containers."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import evaluate, item_of
from flake8_torchperf.interpreter.events import transfers
from flake8_torchperf.interpreter.events.recording import emit, emit_read, note_work, tells
from flake8_torchperf.interpreter.inference.objects_of_program import of_objects
from flake8_torchperf.interpreter.inference.tensor_api import knows_arrays, told_by_index
from flake8_torchperf.interpreter.transfer import index_loops, index_writes
from flake8_torchperf.values import host_data
from flake8_torchperf.values.devices import CHOSEN, OPEN, SOMETIMES
from flake8_torchperf.values.environments import Env, path_of
from flake8_torchperf.values.host_data import host_batch_item
from flake8_torchperf.values.rank import of_item, ranked
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    CHAIN_LENGTH,
    COMPARED,
    INT,
    LOADED,
    STR,
    UNKNOWN,
    Function,
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
    UnknownValue,
    Value,
    join_all,
    tensor_of,
    weaken,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context


@dataclass(frozen=True, slots=True)
class Index:
    """One element between the brackets: its node and value; a slice has neither value nor dims."""

    node: ast.expr | None
    value: Value
    is_slice: bool = False


def subscript(node: ast.Subscript, env: Env, ctx: Context) -> Value:
    """Return the value of ``base[index]``."""
    path = path_of(node)
    if path is not None and path in env:
        return env[path]
    base = evaluate(node.value, env, ctx)
    indices = _indices(node, base, env, ctx)
    value = index_value(base, indices, node, ctx)
    if value is UNKNOWN and base is UNKNOWN:
        return of_objects(node.value, lambda one: index_value(one, indices, node, ctx), ctx)
    return value


def index_value(base: Value, indices: list[Index], node: ast.Subscript, ctx: Context) -> Value:
    """Return the item, for a base and index values that are already known."""
    if isinstance(base, Union):
        kept = [o for o in base.options if not isinstance(o, (NoneValue, Opaque, Scalar))]
        if _of_no_sequence(indices):
            kept = [o for o in kept if not isinstance(o, Sequence)] or kept
        return join_all(index_value(o, indices, node, ctx) for o in kept)
    tensor = tensor_of(base)
    if tensor is not None:
        index_loops.element_access(node, tensor, ctx)
        if any(isinstance(index.value, (Tensor, Sequence)) for index in indices):
            note_work(tensor, node, ctx)
        _tensor_reads(tensor, indices, node, ctx, "read")
        return _tensor_item(tensor, indices, node)
    match base:
        case Sequence(element=element) if _of_no_sequence(indices) and not _is_text(element):
            return _masked_unknown(indices, node, ctx)
        case Sequence():
            return _sequence_item(base, indices, ctx)
        case Mapping_():
            return _mapping_item(base, indices)
        case NDArray():
            _array_index(indices, ctx)
            return NDArray(several=any(i.is_slice or _several_numbers(i.value) for i in indices))
        case Opaque(what="host batch"):
            return host_batch_item(node)
        case Opaque(what="loaded on the host"):
            return LOADED
        case Scalar(kind="str") if not _of_no_sequence(indices):
            return STR
        case Instance(parts=Sequence() as parts):
            return _sequence_item(parts, indices, ctx)
        case Instance():
            return item_of(base, ctx)
        case UnknownValue():
            return _masked_unknown(indices, node, ctx)
    return UNKNOWN


def _is_text(element: Value) -> bool:
    """True for text, which no tensor holds, so a list of text stays a list under any index."""
    return isinstance(element, Scalar) and element.kind == "str"


def _of_no_sequence(indices: list[Index]) -> bool:
    """True for ``x[:, None]`` and ``x[mask]``, which no list, tuple or text allows."""
    if len(indices) > 1:
        return True
    return any(
        isinstance(index.value, Tensor) and index.value.dtype == "bool" and not index.value.scalar
        for index in indices
    )


def _array_index(indices: list[Index], ctx: Context) -> None:
    """Record the read of a 0-d tensor that indexes an array, which calls ``__index__``."""
    for index in indices:
        tensor = index.value
        if index.node is None or not isinstance(tensor, Tensor):
            continue
        if tensor.scalar or (tensor.scalar is None and tensor.role == "iterated"):
            emit_read(
                ctx, SiteKind.NUMBER_USE, "list-index", index.node, tensor, operand_node=index.node
            )


def _masked_unknown(indices: list[Index], node: ast.Subscript, ctx: Context) -> Value:
    """Return an item of an unknown value that its index shows to be a tensor, else UNKNOWN.

    A mask shows it, and so does an index like that of ``x[:, 0]``.
    """
    base = _by_mask(indices, node, ctx) or _by_made_index(indices, node, ctx)
    told = "" if base is not None else told_by_index(node, ctx.module)
    if told:
        base = Tensor(Reason(told, node, None, Strength.INFERRED))
    if base is None:
        return UNKNOWN
    _tensor_reads(base, indices, node, ctx, "read")
    return _tensor_item(base, indices, node)


def _by_mask(indices: list[Index], node: ast.Subscript, ctx: Context) -> Tensor | None:
    """Return the tensor that a value must be because a tensor mask indexes it, or None."""
    for index in indices:
        mask = _called_a_mask(index) or _as_mask(index.value, None, ctx)
        if mask is not None and mask.role == "inverted":
            continue  # its dtype is a guess already
        if mask is not None and index.node is not None:
            # A mask on the host shows that the tensor that it indexes lies there too.
            device = mask.device if mask.device in ("host", CHOSEN) else "unknown"
            reason = Reason("indexed by a mask", node, mask.reason, Strength.INFERRED)
            return Tensor(reason, device=device)
    return None


def _by_made_index(indices: list[Index], node: ast.Subscript, ctx: Context) -> Tensor | None:
    """Return the tensor that a value must be because integers of a tensor index it, or None.

    No container takes such an index; an array does, so functions that name arrays don't count.
    """
    if knows_arrays(ctx.module, ctx.node):
        return None
    for index in indices:
        made = _made_among(index.value) or index.value
        if isinstance(made, Tensor) and _is_made_index(made):
            reason = Reason("indexed by a tensor", node, made.reason, Strength.INFERRED)
            return Tensor(reason)
    return None


def _as_mask(value: Value, base: Tensor | None, ctx: Context) -> Tensor | None:
    """Return the boolean tensor that an index is, or None.

    The result of a comparison is one if it indexes a tensor, or if the module imports no arrays.
    """
    tensor = tensor_of(value)
    if tensor is not None:
        return tensor if tensor.dtype == "bool" else None
    if value is COMPARED and (base is not None or not knows_arrays(ctx.module)):
        reason = Reason(
            "the result of a comparison is used as an index", None, None, Strength.INFERRED
        )
        return Tensor(reason, "bool", "unknown" if base is None else base.device)
    return None


def assigned(node: ast.Subscript, base: Value, value: Value, env: Env, ctx: Context) -> None:
    """Record the sites of ``base[index] = value``."""
    indices = _indices(node, base, env, ctx)
    given = tensor_of(value)
    tensor = tensor_of(base)
    if tensor is None and base is UNKNOWN and given is not None:
        tensor = _by_mask(indices, node, ctx)
    if tensor is None:
        return
    index_loops.element_access(node, tensor, ctx)
    note_work(tensor, node, ctx)
    # One number on the host, Python's or a tensor's, is filled in as masked_fill_ does.
    number = given is None or (given.scalar and given.device == "host")
    operation = "assign-scalar" if number else "assign"
    numbers = _tensor_reads(tensor, indices, node, ctx, operation)
    others = [(i.node, INT if i.node in numbers else i.value) for i in indices]
    index_writes.written(tensor, others, node, value, ctx)


def literal_key(node: ast.Subscript) -> str | None:
    """Return the string between the brackets if it is a literal."""
    key = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return key if isinstance(key, str) else None


def _indices(node: ast.Subscript, base: Value, env: Env, ctx: Context) -> list[Index]:
    found: list[Index] = []
    for element in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
        if isinstance(element, ast.Slice):
            alone = element.lower is None or element.upper is None
            for bound in (element.lower, element.upper, element.step):
                if bound is not None:
                    _bound(bound, base, alone, env, ctx)
            found.append(Index(None, UNKNOWN, is_slice=True))
            continue
        inner = element.value if isinstance(element, ast.Starred) else element
        value = evaluate(inner, env, ctx)
        if isinstance(inner, ast.Tuple) and isinstance(value, Sequence):
            items = value.items or ()
            found.extend(Index(*pair) for pair in zip(inner.elts, items, strict=False))
        elif isinstance(element, ast.Starred) and isinstance(value, Sequence):
            items = (value.element,) if value.items is None else value.items
            found.extend(Index(inner, item) for item in items)
        else:
            found.append(Index(inner, value))
    return found


def _bound(bound: ast.expr, base: Value, alone: bool, env: Env, ctx: Context) -> None:
    """Record the read of a tensor that is a slice bound, which calls ``__index__``."""
    value = evaluate(bound, env, ctx)
    if ctx.loops and index_loops.varies(bound, value, alone, ctx):
        ctx.budget.opaque_calls += 1  # the rounds work on data of different sizes
    operation = "list-slice" if isinstance(base, Sequence) else "slice"
    emit_read(ctx, SiteKind.NUMBER_USE, operation, bound, value, operand_node=bound)


def _tensor_reads(
    tensor: Tensor, indices: list[Index], node: ast.Subscript, ctx: Context, operation: str
) -> list[ast.expr]:
    """Record the sites of the indices; return the indices that are read as numbers."""
    numbers: list[ast.expr] = []
    for index in indices:
        if index.is_slice or index.node is None:
            continue
        if isinstance(index.value, Union) and any(
            isinstance(o, Sequence) and o.kind != "tuple" for o in index.value.options
        ):
            continue
        found = (
            _mask_among(index.value)
            or _made_among(index.value)
            or _called_a_mask(index)
            or _declared_mask(index.value)
            or tensor_of(index.value)
            or _as_mask(index.value, tensor, ctx)
        )
        if found is not None:
            if _tensor_index(tensor, found, index, node, ctx, operation):
                numbers.append(index.node)
        elif tensor.device != "host" and _several_numbers(index.value):
            emit(ctx, SiteKind.LIST_INDEX, "list", index.node, tensor, operand_node=node)
    return numbers


def _mask_among(value: Value) -> Tensor | None:
    """Return the mask in a tuple of indices that was built before: ``x[tuple(where)]``."""
    if not isinstance(value, (Sequence, Union)):
        return None
    for option in value.options if isinstance(value, Union) else (value,):
        if isinstance(option, Sequence) and option.kind == "tuple":
            items = option.items or (option.element,)
            for item in items:
                for part in item.options if isinstance(item, Union) else (item,):
                    if isinstance(part, Tensor) and part.dtype == "bool":
                        return part
    return None


def _made_among(value: Value) -> Tensor | None:
    """Return an index made on the host in a tuple of indices that was built before, or None."""
    if not isinstance(value, Sequence) or value.kind != "tuple" or value.items is None:
        return None
    made = [item for item in value.items if isinstance(item, Tensor) and _is_made_index(item)]
    return replace(made[0], origin=host_data.common_origin(made)) if made else None


def _is_made_index(tensor: Tensor) -> bool:
    """True for a host tensor of several integers that the code makes of numbers or of data."""
    made = tensor.device == "host" and tensor.origin in host_data.NAMED
    return made and tensor.dtype == "int" and _several(tensor)


def _declared_mask(value: Value) -> Tensor | None:
    """Return the mask that an index declared ``int | slice | BoolTensor`` may be, or None."""
    if not isinstance(value, Union) or not all(
        isinstance(o, (Tensor, Scalar, NoneValue)) or o == SLICE for o in value.options
    ):
        return None
    masks = (o for o in value.options if isinstance(o, Tensor) and o.dtype == "bool")
    return next((weaken(mask) for mask in masks if not mask.chain), None)


SLICE = Opaque("slice")


def _called_a_mask(index: Index) -> Tensor | None:
    """Return the tensor in ``x[pad_mask]`` as a mask, if only its name shows that it is one.

    In a run of 25 libraries, all 276 statements that indexed a tensor by such a name used booleans.
    The name alone does not make an unknown value a tensor.
    """
    tensor = index.value
    if not isinstance(tensor, Tensor) or tensor.dtype != "unknown":
        return None
    node = index.node
    while isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Slice, ast.Name)):
        node = node.value  # a part of it, or a row: `x[pad_mask[1:]]`, `x[i][mask[i]]`
    path = None if node is None else path_of(node)
    named = path is not None and path.rpartition(".")[2].rpartition("_")[2] == "mask"
    return replace(weaken(tensor), dtype="bool") if named else None


def _several_numbers(value: Value) -> bool:
    """True for a list of numbers and for an array, which torch makes a tensor on the host."""
    match value:
        case NDArray(several=True):
            return True
        case Sequence(kind="list", element=Scalar(kind="int" | "number" | "bool")):
            return True
    return False


def _tensor_index(
    tensor: Tensor, index: Tensor, place: Index, node: ast.Subscript, ctx: Context, operation: str
) -> bool:
    """Record the sites of a tensor used as an index; return True if it is read as a number."""
    assert place.node is not None
    if not _several(index) or tensor.device == "host":
        pass
    elif index.origin == SOMETIMES:
        transfers.fetched(index, tensor, "index", place.node, ctx)
    elif index.device == "host":
        if index.origin in host_data.NAMED:
            transfers.fetched(index, tensor, "index", place.node, ctx)
        else:
            # If the index has no device, the residence of the indexed tensor is mostly unknown.
            indexed = tensor if tensor.device == "device" else weaken(tensor, Strength.ASSUMED)
            emit(ctx, SiteKind.LIST_INDEX, "host-tensor", place.node, indexed, operand_node=node)
        if tensor.device == "device":
            return False
    if index.dtype == "bool":
        if tensor.device == "host" and index.device != "device" and not ctx.compiled:
            return False
        if operation == "assign-scalar" and index.scalar and index.device != "host":
            # A 0-d mask becomes a Python bool first, as a 0-d integer becomes a number below.
            emit_read(ctx, SiteKind.NUMBER_USE, "index", place.node, index, operand_node=place.node)
        elif operation != "assign-scalar" and tells(index, ctx):
            emit(ctx, SiteKind.MASK_INDEX, operation, node, index, operand_node=place.node)
        return False  # filling with a number is masked_fill: nothing is counted on the host
    # A 0-d integer tensor becomes a Python number (torch/csrc/autograd/
    # python_variable_indexing.cpp, applySlicing: THPVariable_Check with dim 0).
    number = index.scalar and index.dtype in ("int", "unknown")
    if index.scalar is None:
        number = index.role == "iterated" or (index.dtype == "int" and _counted(place.node, ctx))
    if number:
        traits = (HOST_TABLE,) if tensor.device == "host" else ()
        read = place.node
        emit_read(ctx, SiteKind.NUMBER_USE, "index", read, index, operand_node=read, traits=traits)
    return bool(number)


# The trait of an index on a device into a tensor on the host.
HOST_TABLE = "host-table"


def _several(index: Tensor) -> bool:
    """True if an index may hold several numbers; a single one is used like a Python number."""
    return index.scalar is not True and index.role not in ("iterated", "element")


def _counted(node: ast.expr, ctx: Context) -> bool:
    """True for ``t[i]`` in ``for i in range(len(t))``, where ``t`` mostly has one dimension."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Name):
        return False
    over = (node.slice.id, path_of(node.value))
    return any((place.index, place.measures) == over for place in ctx.loops)


def _tensor_item(tensor: Tensor, indices: list[Index], node: ast.Subscript) -> Tensor:
    scalar: bool | None = None
    masked = any(
        i.value is COMPARED or (isinstance(i.value, Tensor) and i.value.dtype == "bool")
        for i in indices
    )
    if (
        masked
        or any(i.is_slice for i in indices)
        or any(isinstance(i.value, Tensor) and i.value.scalar is False for i in indices)
    ):
        scalar = False
    plain = all(isinstance(i.value, Scalar) for i in indices)
    role = "element" if plain and not masked else ""
    chain = (*tensor.chain, "getitem")[-CHAIN_LENGTH:]
    memory = host_data.part(tensor, node.slice)
    item = replace(tensor, scalar=scalar, chain=chain, role=role, rank=None, memory=memory)
    if tensor.device in OPEN and any(map(_copied_to_host, indices)):
        item = replace(item, device="host")  # otherwise the index would need no copy
    return ranked(item, of_item(tensor, (None if _keeps(i) else i.value for i in indices)))


def _copied_to_host(index: Index) -> bool:
    """True for an index that was brought to the host, as in ``x[t.cpu()]``."""
    value = index.value
    if not isinstance(value, Tensor) or value.device != "host":
        return False
    return value.origin not in host_data.NAMED and value.origin != host_data.EMPTY


def _keeps(index: Index) -> bool:
    """True for a slice or ``...``, which takes no dimension away."""
    return index.is_slice or (isinstance(index.node, ast.Constant) and index.node.value is ...)


def _sequence_item(base: Sequence, indices: list[Index], ctx: Context) -> Value:
    if len(indices) != 1:
        return UNKNOWN
    index = indices[0]
    if index.is_slice:
        return replace(base, items=None)
    by_number = not isinstance(index.value, Tensor) or index.value.scalar is not False
    # A tensor with dimensions is no number, so what it indexes is a tensor on another path.
    if index.node is not None and by_number and base.kind in ("list", "tuple", "sequence"):
        emit_read(
            ctx,
            SiteKind.NUMBER_USE,
            "list-index",
            index.node,
            index.value,
            operand_node=index.node,
        )
    match index.value:
        case Scalar(value=int(at)) if base.items is not None:
            if -len(base.items) <= at < len(base.items):
                return base.items[at]
    return base.element


def _are_functions(table: Mapping_) -> bool:
    """True for a table of the project's functions, one of which is called by its name."""
    return all(isinstance(value, Function) for _, value in table.items)


def _mapping_item(base: Mapping_, indices: list[Index]) -> Value:
    if len(indices) > 1:  # a TensorDict: `out["next", "reward"]`
        inner = _mapping_item(base, indices[:1])
        return _mapping_item(inner, indices[1:]) if isinstance(inner, Mapping_) else UNKNOWN
    if len(indices) == 1:
        match indices[0].value:
            case Scalar(value=str(key)):
                items = dict(base.items)
                if key in items:
                    return items[key]
            case _ if base.items and (base.made or _are_functions(base)):
                return base.any_value()
    return base.element
