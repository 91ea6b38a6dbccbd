"""Wrappers of modules and functions, which behave like the object that they wrap."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.stated_types.class_hierarchy import is_module
from flake8_torchperf.values.devices import OPEN
from flake8_torchperf.values.named_types import KEEPERS, MODULE_WRAPPERS
from flake8_torchperf.values.values import (
    HOST_BATCH,
    LOADED,
    NONE,
    UNKNOWN,
    BoundMethod,
    Closure,
    External,
    Function,
    Instance,
    Mapping_,
    Opaque,
    Partial,
    Returning,
    Sequence,
    Tensor,
    Union,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Arguments

# The names of the parameter that takes the wrapped object.
KEYWORDS = ("module", "model", "func", "function", "fn", "obj")
# Under these names a wrapper holds what it wraps: torch/nn/parallel/distributed.py,
# torch/_dynamo/eval_frame.py, torch/distributed/fsdp/fully_sharded_data_parallel.py,
# lightning/fabric/wrappers.py
INSIDE = frozenset(("module", "_orig_mod", "_fsdp_wrapped_module", "_forward_module"))


def wrapped(arguments: Arguments) -> Value | None:
    """Return the object that a wrapper's call is given to wrap; None if it is unknown."""
    for keyword in KEYWORDS:
        given = arguments.value(0, keyword)
        if isinstance(given, (Function, Closure, Instance, Returning, Partial, BoundMethod)):
            return given
    return None


def wrap(name: str, arguments: Arguments) -> Value | None:
    """Return the object that a wrapper wraps: ``torch.compile(f)`` behaves like ``f``.

    ``torch.compile(mode=...)`` returns the wrapper, which takes the function later. Return None for
    a function that is no wrapper, and if the wrapped object is unknown.
    """
    if name not in MODULE_WRAPPERS:
        return None
    given = wrapped(arguments)
    if isinstance(given, Instance) and _moves(name, arguments):
        return replace(given, facts=given.facts | {MOVES_GIVEN})
    later = given is None and not (arguments.positional or arguments.open)
    return External(name) if later else given


# The fact of a module inside a wrapper that moves what it is given to its device.
MOVES_GIVEN = "moves its arguments"


def _moves(name: str, arguments: Arguments) -> bool:
    """True for a wrapper that moves the tensors that it is given, in lists and dicts as well.

    torch/nn/parallel/data_parallel.py scatters them over its devices, all that there are unless it
    is told which; torch/nn/parallel/distributed.py, `_pre_forward`, moves them to ``device_ids``.
    """
    kind = name.rpartition(".")[2]
    if kind == "DataParallel":
        return True
    ids = arguments.get(1, "device_ids")
    return kind == "DistributedDataParallel" and ids is not None and ids.value is not NONE


def moving(arguments: Arguments) -> Arguments:
    """Return the arguments of a call as such a wrapper moves them to its device."""
    return replace(
        arguments,
        positional=tuple(replace(one, value=_moved(one.value)) for one in arguments.positional),
        keywords={
            name: replace(one, value=_moved(one.value)) for name, one in arguments.keywords.items()
        },
    )


def _moved(value: Value) -> Value:
    match value:
        case Tensor(device=device) if device == "host" or device in OPEN:
            return replace(value, device="device", origin="", memory="", arrives=0)
        case Sequence(element=element, items=items):
            inside = None if items is None else tuple(map(_moved, items))
            return replace(value, element=_moved(element), items=inside)
        case Mapping_(element=element, items=items):
            named = tuple((key, _moved(one)) for key, one in items)
            return replace(value, element=_moved(element), items=named)
        case Union(options=options):
            return replace(value, options=tuple(map(_moved, options)))
        case Opaque() if value in (HOST_BATCH, LOADED):
            return UNKNOWN
    return value


def prepared(owner: Value, name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return the modules that ``fabric.setup(model, optimizer)`` or ``prepare(...)`` is given.

    A single argument is returned alone. Loaders become UNKNOWN, because their batches are moved.
    """
    if not isinstance(owner, Instance) or name not in KEEPERS.get(owner.name, ()):
        return UNKNOWN
    items = [a.value if is_module(a.value, ctx.analysis) else UNKNOWN for a in arguments.positional]
    if len(items) == 1 or name not in SEVERAL:
        return items[0] if items else UNKNOWN
    return UNKNOWN if arguments.open else Sequence("tuple", join_all(items), tuple(items))


# Methods that return all their arguments.
SEVERAL = frozenset(("prepare", "setup"))
