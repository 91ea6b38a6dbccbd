"""Wrappers of modules and functions, which behave like the object that they wrap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.stated_types.class_hierarchy import is_module
from flake8_torchperf.values.named_types import KEEPERS, MODULE_WRAPPERS
from flake8_torchperf.values.values import (
    UNKNOWN,
    BoundMethod,
    Closure,
    External,
    Function,
    Instance,
    Partial,
    Returning,
    Sequence,
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
    later = given is None and not (arguments.positional or arguments.open)
    return External(name) if later else given


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
