"""What was read from a file onto the host, of which only that is known.

Enters the name of a member of `LOADED`; leaves its value, which lies on the host as well. Must not
know statements.
"""

from __future__ import annotations

from flake8_torchperf.absint.domain.values import (
    LOADED,
    STR,
    BoundMethod,
    Sequence,
    Value,
)

# What a checkpoint's dicts are asked for.
OF_DICTS = frozenset(("items", "keys", "values", "get", "pop", "setdefault", "copy"))
_PAIR = Sequence("tuple", LOADED, (STR, LOADED))
_RESULTS: dict[str, Value] = {
    "items": Sequence("list", _PAIR),
    "keys": Sequence("list", STR),
    "values": Sequence("list", LOADED),
}


def member(name: str, of_tensor: Value) -> Value:
    """``loaded.name``, where that of a tensor is ``of_tensor``."""
    if name in OF_DICTS:
        return BoundMethod(LOADED, name)
    return of_tensor if isinstance(of_tensor, BoundMethod) else LOADED


def call_method(name: str) -> Value:
    """``loaded.items()``, ``loaded.get("model", loaded)``."""
    return _RESULTS.get(name, LOADED)
