"""The attributes of values: of tensors, modules, classes of the project and imported names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flake8_torchperf.interpreter.calls import instances
from flake8_torchperf.interpreter.engine.dispatch import attribute_of
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.values import host_data
from flake8_torchperf.values.from_signature import value_of_return
from flake8_torchperf.values.host_data import EMPTY, MOVES, host_batch_item
from flake8_torchperf.values.named_types import DTYPES
from flake8_torchperf.values.provenance import Source, Strength
from flake8_torchperf.values.values import (
    BOOL,
    LOADED_TENSOR,
    NONE,
    SHAPE,
    STR,
    UNKNOWN,
    BoundMethod,
    ClassValue,
    Device,
    DType,
    External,
    Function,
    Instance,
    Mapping_,
    NDArray,
    NoneValue,
    Opaque,
    Reason,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Value,
    join_all,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import ClassInfo

# Attributes of numpy arrays that are not arrays themselves.
NDARRAY_FACTS: dict[str, Value] = {"shape": SHAPE, "ndim": Scalar("int"), "size": Scalar("int")}


def _of_tensor(owner: Tensor, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    return tensor_attribute(owner, name, node, ctx)


def _of_external(owner: External, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    dotted = f"{owner.name}.{name}"
    if owner.name == "torch" and name in DTYPES:
        return DType(DTYPES[name])
    constant = EXTERNAL_CONSTANTS.get(dotted)
    return constant if constant is not None else ctx.analysis.external(dotted)


def _of_instance(owner: Instance, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    return _movable(instances.instance_attribute(owner, name, ctx))


def _of_class(owner: ClassValue, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    return instances.class_member(owner.info, name, ctx)


def _of_sequence(owner: Sequence, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    if name in owner.names and owner.items is not None:
        return owner.items[owner.names.index(name)]
    if owner.info is not None:
        found = instances.record_attribute(owner, name, ctx)
        if found is not None:
            return found
    return _bound(owner, name, node, ctx)


def _bound(
    owner: Sequence | Mapping_ | Scalar, name: str, node: ast.Attribute | None, ctx: Context
) -> Value:
    return BoundMethod(owner, name, node.value if node is not None else None)


def _of_mapping(owner: Mapping_, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    """Return a method of a dict, or the value that a `ModuleDict` holds: ``modules.layers``.

    A dict of the project's own class has its methods and attributes too.
    """
    own = instances.record_attribute(owner, name, ctx)
    held = dict(owner.items).get(name)
    if own is not None or hasattr(dict, name) or (held is None and owner.info is None):
        return own or _bound(owner, name, node, ctx)
    if held is not None and held is not NONE:
        return held
    found = None if owner.info is None else instances.class_attribute(owner.info, name, ctx)
    return found or held or _bound(owner, name, node, ctx)


def _of_array(owner: NDArray, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    return NDARRAY_FACTS.get(name) or BoundMethod(owner, name)


def _of_device(owner: Device, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    return Scalar("str") if name == "type" else UNKNOWN


def _of_function(owner: Function, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    return BoundMethod(owner, name)


def _of_opaque(owner: Opaque, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    match owner.what:
        case "host batch":
            return UNKNOWN if name in MOVES else host_batch_item(node)
        case "loaded on the host":
            return host_data.member(name, tensor_attribute(LOADED_TENSOR, name, node, ctx))
    return of_any(owner, name, node, ctx)


def of_any(owner: Value, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    """Return the value of an attribute that means the same for every owner, else UNKNOWN."""
    if name == "saved_tensors":
        # torch.autograd.Function: the tensors that `ctx.save_for_backward` stored
        reason = Reason("`saved_tensors` of an autograd context", node)
        return Sequence("tuple", Tensor(reason))
    return UNKNOWN_ATTRIBUTES.get(name, UNKNOWN)


def _movable(value: Value) -> Value:
    """Return a value held by an object; a host tensor is no evidence of where its operands lie.

    The object may have been moved since it was made, together with those operands.
    """
    if isinstance(value, Tensor) and value.device == "host" and value.scalar is False:
        return replace(value, scalar=None)
    return value


# The values of attributes that mean the same for every owner.
UNKNOWN_ATTRIBUTES: dict[str, Value] = {
    "requires_grad": BOOL,
    "shape": SHAPE,
    "ndim": Scalar("int"),
}


def tensor_attribute(tensor: Tensor, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    """Return an attribute of a tensor, by torch's own table.

    Code that goes on after the access has shown that the value is a tensor there.
    """
    if tensor.partly:
        tensor = replace(tensor, partly=False)
    match name:
        case "device" if tensor.origin == EMPTY:
            return Device("unknown")  # the code only looks up the default device
        case "device":
            sure = tensor.reason.strength >= Strength.INFERRED
            return Device(tensor.device, stated=tensor.device != "host", sure=sure)
        case "dtype":
            return DType(tensor.dtype)
        case "grad":
            # A gradient lies where its tensor lies.
            reason = Reason("`.grad` of a tensor", node, tensor.reason, tensor.reason.strength)
            return replace(tensor, role="gradient", dtype="float", reason=reason, chain=())
        case "data":
            return tensor
        case "is_cuda" | "is_cpu" | "requires_grad" | "is_leaf":
            return BOOL
    if name in ("items", "keys", "get") and tensor.reason.source is Source.LOADER_BATCH:
        return BoundMethod(Mapping_(STR, tensor), name)  # a batch that is a dict of tensors
    own = None if tensor.info is None else _of_subclass(tensor.info, name, ctx)
    if own is not None:
        return own
    known = ctx.analysis.table.attribute(name)
    if known is not None:
        return value_of_return(known, tensor.reason, [tensor], tensor.device)
    if ctx.analysis.table.method(name) is not None or name in methods_of("of-distributed-tensors"):
        return BoundMethod(tensor, name, node.value if node is not None else None)
    return UNKNOWN


def _of_subclass(info: ClassInfo, name: str, ctx: Context) -> Value | None:
    """Return a member of the project's own subclass of a torch class; None if it has none.

    A method that overrides one of torch's counts only if its return type is annotated: torch's
    table is better than a body that may be unclear.
    """
    method = find_method(info, name, ctx.analysis)
    if method is None:
        return None
    known = ctx.analysis.table.method(name) or ctx.analysis.table.attribute(name)
    if known is not None and method.info.tree.returns is None:
        return None
    return instances.instance_attribute(Instance(info.key, info), name, ctx)


EXTERNAL_CONSTANTS: dict[str, Value] = {
    "math.inf": Scalar("float"), "math.nan": Scalar("float"), "math.pi": Scalar("float"),
    "math.e": Scalar("float"), "torch.inf": Scalar("float"), "torch.nan": Scalar("float"),
    "torch.pi": Scalar("float"), "torch.e": Scalar("float"), "torch.newaxis": NONE,
    "numpy.inf": Scalar("float"), "numpy.nan": Scalar("float"), "numpy.pi": Scalar("float"),
    "sys.maxsize": Scalar("int"), "numpy.newaxis": NONE,
}  # fmt: skip


def _of_union(owner: Union, name: str, node: ast.Attribute | None, ctx: Context) -> Value:
    """Return the attribute by the options that can have it; None and numbers cannot."""
    options, table = owner.options, ctx.analysis.table
    if table.method(name) is not None or table.attribute(name) is not None:
        tensors = [o for o in options if isinstance(o, Tensor)]
        others = [
            o
            for o in options
            if isinstance(o, (Sequence, Mapping_, Instance, NDArray)) and name not in _TENSOR_ONLY
        ]
        if tensors and not others:
            return tensor_attribute(tensors[0], name, node, ctx)
        if tensors:
            return UNKNOWN
    kept = [o for o in options if not isinstance(o, NoneValue)]
    return join_all(attribute_of(o, name, node, ctx) for o in kept)


_TENSOR_ONLY = methods_of("of-tensors-alone")


MEMBER_HANDLERS: dict[type[Any], Callable[[Any, str, ast.Attribute | None, Context], Value]] = {
    Tensor: _of_tensor,
    External: _of_external,
    Instance: _of_instance,
    ClassValue: _of_class,
    Sequence: _of_sequence,
    Mapping_: _of_mapping,
    Scalar: _bound,
    NDArray: _of_array,
    Union: _of_union,
    Device: _of_device,
    Opaque: _of_opaque,
    Function: _of_function,
}
