"""Tests of a value's class, decided as far as the code shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.values.named_types import TENSOR_CLASSES
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.values import (
    FLOAT,
    INT,
    ClassValue,
    External,
    Mapping_,
    NDArray,
    NoneValue,
    Opaque,
    Scalar,
    Sequence,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMBER_CLASSES = {"builtins.int", "builtins.float", "builtins.bool", "builtins.complex"}


def number_but(value: Value, classes: list[Value]) -> Value:
    """Return the other type of ``int | float``, which is one value here, after a failed test."""
    if not isinstance(value, Scalar) or value.kind != "number":
        return value
    names = {kind.name for kind in classes if isinstance(kind, External)}
    if "builtins.float" in names:
        return INT
    return FLOAT if "builtins.int" in names else value


def is_one_of(value: Value, classes: list[Value]) -> bool | None:
    """True if ``value`` is an instance of one of the classes; None if that is undecided."""
    if isinstance(value, Scalar) and value.kind == "number":
        # `int | float` is one value here: the two classes cover it together.
        names = {kind.name for kind in classes if isinstance(kind, External)}
        if {"builtins.int", "builtins.float"} <= names:
            return True
    verdicts = [_is_instance(value, kind) for kind in classes]
    if any(verdict is True for verdict in verdicts):
        return True
    return None if any(verdict is None for verdict in verdicts) else False


def _is_instance(value: Value, kind: Value) -> bool | None:
    name = kind.name if isinstance(kind, External) else ""
    last = name.rpartition(".")[2]
    match value:
        case Tensor(role=role):
            if name in TENSOR_CLASSES:
                return True if last != "Parameter" or role == "parameter" else None
            if last.endswith("Tensor") or isinstance(kind, ClassValue) or last in GENERAL:
                return None
            return False
        case Scalar(kind=scalar):
            if name.startswith("builtins.") and last == scalar:
                return True
            if last in NUMBER_NAMES or last in GENERAL or name in NUMBER_CLASSES:
                return None if scalar not in ("str", "bytes") else False
            return None if scalar in ("object", "number") else False
        case NoneValue():
            return last == "NoneType"
        case Opaque(what="slice"):
            return last == "slice" or (None if last in GENERAL else False)
        case NDArray():
            return name.startswith("numpy") or (None if last in GENERAL else False)
        case Sequence(kind=found):
            if last in ("list", "tuple", "set"):
                return found == last if found in ("list", "tuple", "set") else None
            return False if name in TENSOR_CLASSES or name in NUMBER_CLASSES else None
        case Mapping_():
            if last in ("dict", "Mapping", "MutableMapping"):
                return True
            return False if name in TENSOR_CLASSES or name in NUMBER_CLASSES else None
    return None


NUMBER_NAMES = ("Number", "Real", "Integral")
GENERAL = ("object", "Iterable", "Sequence", "Sized", "Collection", "Hashable", "Container")


# The value of an object that a test has shown to be no tensor.
NO_TENSOR = Opaque("no tensor")


def declared_alone(value: Value) -> bool:
    """True for a tensor by a parameter's annotation that no operation has changed since."""
    if not isinstance(value, Tensor) or value.chain:
        return False
    return value.reason.source is Source.PARAMETER_ANNOTATION


def undeclared(before: Mapping[str, Value], after: Mapping[str, Value]) -> bool:
    """True if a test shows that a value is no tensor although it was taken for one."""
    none = [path for path, value in after.items() if value is NO_TENSOR]
    return any(isinstance(before.get(path), Tensor) for path in none)
