"""The decorator with which the interpreter's values are declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_options: object) -> Callable[[T], T]:
        """Stand in for the decorator that only type checkers need."""
        return lambda decorator: decorator


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[T]) -> type[T]:
    """Return the class as a dataclass whose instances never change.

    mypy treats it as frozen. Freezing it at run time would double the time to make an instance, and
    a large file makes a hundred thousand of them.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)


def changed(one: T, /, **changes: Any) -> T:
    """Return a changed copy of a record that a compiled build wrote out (`tools/native.py`)."""
    return one._changed(changes)  # type: ignore[attr-defined, no-any-return]
