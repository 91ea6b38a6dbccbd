"""The contents of a value: its elements, the pairs for a dict, the parts it unpacks into."""

from __future__ import annotations

from dataclasses import replace

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.knowledge.objects import object_kind
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.rank import ranked
from flake8_torchperf.values.values import (
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

# The class of data loaders; those of other libraries are taken for it.
DATA_LOADER = "torch.utils.data.DataLoader"
# torch.nn containers whose iteration yields modules or parameters
PARAMETER_HOLDERS = {"torch.nn.ParameterList", "torch.nn.modules.container.ParameterList"}

# Roles of tensors of which a module has at least one for each layer.
OF_MODULES = ("parameter", "gradient", "state")


def goes_through_layers(iterated: Value) -> bool:
    """True if a loop over the value iterates a module's tensors, alone or with other items."""
    round_ = element_of(iterated) if isinstance(iterated, Sequence) else UNKNOWN
    items = round_.items or () if isinstance(round_, Sequence) else (round_,)
    return any(isinstance(item, Tensor) and item.role in OF_MODULES for item in items)


def element_of(value: Value) -> Value:
    """Return the value of ``x`` in ``for x in value``, and of ``value[i]`` for an integer ``i``."""
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
        case Instance(facts=facts) if is_loader(value):
            # Workers load a batch, so it and its parts lie on the host until they are moved.
            source = Source.LOADER_BATCH
            reason = Reason("batch of a DataLoader", None, None, Strength.INFERRED, source)
            memory = next((m for m in ("pinned", "pageable") if m in facts), "")
            return Tensor(reason, device="host", memory=memory)
        case Instance(name="torch.nn.Sequential" | "torch.nn.ModuleList", parts=parts):
            return Instance("torch.nn.Module") if parts is None else parts.element
        case Union(options=options, met=met):
            tensors = [o for o in options if not isinstance(o, (NoneValue, Scalar))]
            elements = join_all(element_of(o) for o in tensors)
            # If the options are only declared, those of the elements are only declared too.
            return replace(elements, met=met) if isinstance(elements, Union) else elements
        case External() | ClassValue():
            return UNKNOWN
    return UNKNOWN


def is_loader(value: Value) -> bool:
    """True for a data loader, and for an object of a class derived directly from one.

    A class that iterates in a way of its own may move what it yields.
    """
    if not isinstance(value, Instance):
        return False
    if value.info is None:
        return value.name == DATA_LOADER
    of_loader = any(object_kind(base) == "loader" for base in value.info.bases)
    return of_loader and "__iter__" not in value.info.methods


def element_of_tensor(tensor: Tensor) -> Tensor:
    """Return an element or row of a tensor, with one dimension less if their number is known."""
    # A tensor whose dimensions were exchanged has at least two, so its items are rows.
    exchanged = not methods_of("exchanges-dimensions").isdisjoint(tensor.chain[-1:])
    scalar = False if exchanged else None
    row = replace(tensor, scalar=scalar, chain=(), role="element", rank=None)
    return ranked(row, tensor.rank - 1) if tensor.rank else row


def with_attribute(owner: Value, name: str, value: Value) -> Value | None:
    """Return an object of the project, a namespace or an attribute dict with one attribute more.

    None for values that hold no attributes of their own.
    """
    match owner:
        case Instance(held=held) if held is not None or owner.info is not None:
            fields = {} if held is None else dict(held.items)
            return replace(owner, held=fields_of({**fields, name: value}))
        case Mapping_():  # an attribute can be set, so it is an attribute dict
            return replace(owner, items=tuple({**dict(owner.items), name: value}.items()))
    return None


def fields_of(fields: dict[str, Value]) -> Mapping_ | None:
    """Return the attributes of an object, by name; None if there are none.

    Objects in objects in objects are cut off, so that a chain of them ends.
    """
    kept = {name: _flat(value) for name, value in fields.items()}
    return Mapping_(STR, UNKNOWN, tuple(kept.items()), made=True) if kept else None


def _flat(value: Value) -> Value:
    """Return a value without the attributes of objects in it, if these hold objects too."""
    if not isinstance(value, Instance) or value.held is None:
        return value
    deep = any(isinstance(v, Instance) and v.held is not None for _, v in value.held.items)
    return replace(value, held=None) if deep else value


def paired(value: Value) -> Value:
    """Return the dict that ``dict(value)`` makes of a dict or of pairs, else UNKNOWN."""
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
    """Return the value of each of ``count`` targets that ``value`` is unpacked into."""
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
