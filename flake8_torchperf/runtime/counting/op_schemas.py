"""Facts about an aten operation before it runs, from its schema and its tags.

Describes an OpOverload as an `Operation`; nothing here looks at tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

aten = torch.ops.aten

# These carry the tag whatever their index is (torch 2.13, aten/src/ATen/native/tags.yaml); with an
# integer index the output's shape is the index's, so `masked_index` looks at the arguments.
_INDEXED = frozenset({"aten::index", "aten::_unsafe_index"})
MASKED_WRITES = frozenset(
    {
        "aten::index_put",
        "aten::index_put_",
        "aten::_index_put_impl_",
        "aten::_unsafe_index_put",
    }
)
MASK_SENSITIVE = _INDEXED | MASKED_WRITES
TRANSFERS = frozenset({"aten::_to_copy", "aten::copy_"})
# torch.tensor fills its storage below the dispatcher; this is the one dispatch that it shows.
_LITERAL = "aten::lift_fresh"
# Their schemas call the output new, yet it shares its input's storage (native_functions.yaml).
_ALIASES_UNSAID = frozenset(
    {
        "aten::lift",
        "aten::_unsafe_view",
        "aten::unsafe_chunk",
        "aten::unsafe_split",
        "aten::unsafe_split_with_sizes",
    }
)
# Shape and dtype come from the tensor they are given, never its elements.
_FROM_SHAPE = ("_like", "aten::new_")


@dataclass(frozen=True)
class Operation:
    """One aten operation: its name without the overload, and which counters a dispatch raises."""

    name: str
    call: Callable[..., Any]
    reads: bool
    dynamic: bool
    allocates: bool
    factory: bool


def operation(func: Any) -> Operation:
    """Describe an OpOverload; a higher-order operator is counted as one dispatch by its name."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return Operation(f"higher_order::{func.name()}", func, False, False, False, False)
    name = str(schema.name)
    allocates = name == _LITERAL or (
        name not in _ALIASES_UNSAID and any(_is_new_tensor(one) for one in schema.returns)
    )
    return Operation(
        name=name,
        # Skips OpOverload.__call__, a Python frame for each dispatch.
        call=func._op,
        reads=torch.Tag.data_dependent_output in func.tags,
        dynamic=torch.Tag.dynamic_output_shape in func.tags and name not in _INDEXED,
        allocates=allocates,
        factory=allocates and (name == _LITERAL or _takes_no_tensor(schema) or _from_shape(name)),
    )


@functools.cache
def is_composite(func: Any) -> bool:
    """True if torch makes this operation of others, except in inference mode.

    Autograd's keys do that, which are excluded there (c10/core/InferenceMode.h).
    """
    if not isinstance(func, torch._ops.OpOverload) or func.namespace == "prim":
        return False  # prim::device and its like are no operations of the dispatcher
    has_kernel: Any = torch._C._dispatch_has_kernel_for_dispatch_key
    name: Any = func.name  # untyped in torch
    if not has_kernel(name(), "CompositeImplicitAutograd"):
        return False
    return not any(has_kernel(name(), device) for device in ("CPU", "CUDA"))


def _is_new_tensor(returned: Any) -> bool:
    return returned.alias_info is None and "Tensor" in str(returned.type)


def _takes_no_tensor(schema: Any) -> bool:
    return not any("Tensor" in str(one.type) for one in schema.arguments)


def _from_shape(name: str) -> bool:
    return name.endswith(_FROM_SHAPE[0]) or name.startswith(_FROM_SHAPE[1])


def looks_at_elements(func: Any, name: str, args: tuple[Any, ...], kwargs: Any) -> bool:
    """True if the host itself reads the elements of an operation's arguments.

    A view does not, nor does an operation that uses only shape and dtype (or asks a subclass of
    Tensor for them, `prim::device`). The device makes a copy to or from a device, after the copies
    that were queued before.
    """
    if getattr(func, "is_view", False) or _from_shape(name) or name.startswith("prim::"):
        return False
    if name == "aten::copy_":
        return all(one.device.type == "cpu" for one in args[:2])
    if name == "aten::_to_copy":
        target = (kwargs or {}).get("device")
        return target is None or torch.device(target).type == "cpu"
    return True


def masked_index(args: tuple[Any, ...]) -> bool:
    """True if an index or index_put call selects by a boolean (or uint8) mask.

    The kernels expand a mask by `nonzero`, whose output size only the device knows
    (aten/src/ATen/native/IndexingUtils.h, expandTensors).
    """
    return any(one is not None and one.dtype in (torch.bool, torch.uint8) for one in args[1])
