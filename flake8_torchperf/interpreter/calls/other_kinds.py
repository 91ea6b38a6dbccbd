"""Kinds of arguments: numbers for declared tensors and the other way round, and indices."""

from __future__ import annotations

from flake8_torchperf.values.devices import MADE
from flake8_torchperf.values.values import (
    Scalar,
    Sequence,
    Tensor,
    Union,
    Value,
)


def is_of_another_kind(given: Value, declared: Value) -> bool:
    """True if all calls give numbers where tensors are declared, or the other way round."""
    return _numbers_for_tensors(given, declared) or _tensor_for_number(given, declared)


def _tensor_for_number(given: Value, declared: Value) -> bool:
    """True if all calls give a tensor, one that may be no host's, where an int is declared.

    ``for t in self.timesteps: self.step(x, t)`` gives one to ``def step(self, x, t: int)``.
    """
    if not isinstance(given, Tensor) or given.device == "host":
        return False
    return is_declared_int(declared)


def is_declared_int(declared: Value) -> bool:
    """True for a parameter that is declared to be an integer, and has no literal default."""
    return isinstance(declared, Scalar) and declared.kind == "int" and not declared.known


def _numbers_for_tensors(given: Value, declared: Value) -> bool:
    """True if all calls give numbers or text, or sequences of them, where tensors are declared."""
    match given, declared:
        case Scalar(tensor=None), Tensor():
            return True
        case Scalar(tensor=None), Union(options=options):
            return any(isinstance(option, Tensor) for option in options)
        case Sequence(kind=kind, element=Scalar(tensor=None), items=items), Tensor():
            return kind == "tuple" or bool(items)  # a shape is a tuple of any length
        case Sequence(element=Sequence(element=Scalar(tensor=None))), Tensor():
            return True
        case Sequence(element=Scalar(tensor=None)), Sequence(element=Tensor()):
            return True
    return False


# The deepest nesting of containers that are searched for indices: a list of pairs, in a tuple.
MAX_NESTING = 3


def holds_indices(value: Value, depth: int = MAX_NESTING) -> bool:
    """True for a list or tuple of integer tensors, or of pairs of them, that is made on the host.

    The rows and columns that a matcher pairs are an example.
    """
    if isinstance(value, Tensor):
        return value.device == "host" and value.origin in MADE and value.dtype == "int"
    if not isinstance(value, Sequence) or not depth:
        return False
    items = (value.element,) if value.items is None else value.items
    return any(holds_indices(item, depth - 1) for item in items)
