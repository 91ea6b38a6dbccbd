"""Values known only to lie on the host: data read from a file, and a tokenizer's batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    LOADED,
    STR,
    BoundMethod,
    Reason,
    Sequence,
    Strength,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    import ast

# Methods of a checkpoint's dicts.
OF_DICTS = frozenset(("items", "keys", "values", "get", "pop", "setdefault", "copy"))
_PAIR = Sequence("tuple", LOADED, (STR, LOADED))
_RESULTS: dict[str, Value] = {
    "items": Sequence("list", _PAIR),
    "keys": Sequence("list", STR),
    "values": Sequence("list", LOADED),
}


def member(name: str, of_tensor: Value) -> Value:
    """Return ``loaded.name``, given the same attribute of a tensor."""
    if name in OF_DICTS:
        return BoundMethod(LOADED, name)
    return of_tensor if isinstance(of_tensor, BoundMethod) else LOADED


def call_method(name: str) -> Value:
    """Return the value of ``loaded.items()``, ``loaded.get("model", loaded)`` and others."""
    return _RESULTS.get(name, LOADED)


# Methods of a batch after which its tensors no longer lie on the host.
MOVES = ("to", "cuda", "pin_memory", "convert_to_tensors")


def host_batch_item(node: ast.AST | None) -> Tensor:
    """Return a tensor of a tokenizer's batch."""
    told = 'part of what `return_tensors="pt"` asks for'
    reason = Reason(told, node, None, Strength.INFERRED, Source.TOKENIZER)
    return Tensor(reason, device="host")
