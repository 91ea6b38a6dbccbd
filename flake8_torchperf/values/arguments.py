"""The arguments of a call, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.values.record import record
from flake8_torchperf.values.values import (
    UNKNOWN,
    Device,
    DType,
    NoneValue,
    Scalar,
    Sequence,
    Tensor,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable


@record
class Argument:
    """One argument: its expression and value."""

    node: ast.expr
    value: Value


@record
class Arguments:
    """All arguments of one call; ``open`` is True if ``*args`` or ``**kwargs`` hide some.

    ``counted`` is the number of positional arguments whose position is known. Arguments after a
    ``*args`` of unknown length may have any position.
    """

    node: ast.Call
    positional: tuple[Argument, ...]
    keywords: dict[str, Argument]
    open: bool = False
    counted: int | None = None

    def get(self, position: int, keyword: str = "") -> Argument | None:
        """Return the argument at a position or under a keyword."""
        if keyword and keyword in self.keywords:
            return self.keywords[keyword]
        if 0 <= position < len(self.placed()):
            return self.positional[position]
        return None

    def placed(self) -> tuple[Argument, ...]:
        """Return the positional arguments whose position is known."""
        return self.positional if self.counted is None else self.positional[: self.counted]

    def by_parameter(self, names: Iterable[str]) -> dict[str, Argument]:
        """Return the arguments by the parameters they go to, for ``names`` in their order."""
        return {**dict(zip(names, self.placed(), strict=False)), **self.keywords}

    def value(self, position: int, keyword: str = "") -> Value:
        """Return the argument's value at a position or under a keyword; UNKNOWN if it is absent."""
        found = self.get(position, keyword)
        return UNKNOWN if found is None else found.value

    def all(self) -> list[Argument]:
        """Return every argument, in order."""
        return [*self.positional, *self.keywords.values()]

    def tensors(self) -> list[Tensor]:
        """Return the tensors among the arguments, those inside sequences included."""
        found: list[Tensor] = []
        for argument in self.all():
            tensor = tensor_of(argument.value)
            if tensor is None and isinstance(argument.value, Sequence):
                tensor = tensor_of(argument.value.element)
                found.extend(t for t in map(tensor_of, argument.value.items or ()) if t)
            if tensor is not None:
                found.append(tensor)
        return found

    def rest(self) -> Arguments:
        """Return the arguments after the first, for a function called as a method."""
        counted = None if self.counted is None else max(0, self.counted - 1)
        return Arguments(self.node, self.positional[1:], self.keywords, self.open, counted)


def kind_of(value: Value) -> str:
    """Return the kind of a value by which the torch table distinguishes overloads."""
    if tensor_of(value) is not None:
        return "T"
    match value:
        case Scalar(kind="bool", value=bool(known)):
            return "1" if known else "0"
        case Scalar(kind=kind):
            return {"int": "i", "float": "f", "bool": "b", "str": "s", "number": "n"}.get(kind, "x")
        case Sequence(element=element):
            if tensor_of(element) is not None:
                return "Tl"
            return "Z" if isinstance(element, Scalar) and element.kind == "int" else "x"
        case NoneValue():
            return "-"
        case DType():
            return "Y"
        case Device():
            return "D"
    return "x"


def kinds(arguments: Arguments) -> tuple[list[str], dict[str, str]]:
    """Return the kinds of the positional arguments and of the keywords."""
    return (
        [kind_of(a.value) for a in arguments.positional],
        {name: kind_of(a.value) for name, a in arguments.keywords.items()},
    )
