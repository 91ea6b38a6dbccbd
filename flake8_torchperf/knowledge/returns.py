"""The returns of torch calls, as small frozen values, with their compact text form.

Text enters (`T=0`, `<values:T==,indices:Ti=>`, `[T??]`), typed values leave; nothing here knows the
table.

Letters of a tensor, written `T` dtype rank:

- dtype: `b` bool, `i` integer, `f` floating, `c` complex, `=` that of the first tensor argument,
  `n` likewise but bool becomes integer (`sum`; without a tensor argument, that of the number
  arguments), `^` promoted over all tensor and number arguments, `?` unknown.
- rank: `0` always zero-dimensional, `=` that of the first tensor argument, `^` the largest rank
  among the tensor arguments (broadcasting), `?` unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

SCALAR_KINDS = frozenset("bifns")
HOST_KINDS = frozenset("ZALNDY")


@dataclass(frozen=True, slots=True)
class TensorReturn:
    """A tensor; the module docstring explains both letters."""

    dtype: str = "?"
    rank: str = "?"


@dataclass(frozen=True, slots=True)
class TupleReturn:
    """A tuple of known length; `names` are its field names where it is a named tuple."""

    items: tuple[Return, ...]
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ListReturn:
    """A list, an iterator or a tuple of unknown length, whose items all have the same form."""

    item: Return


@dataclass(frozen=True, slots=True)
class ScalarReturn:
    """A Python scalar: `b` bool, `i` int, `f` float, `n` some number, `s` str."""

    kind: str


@dataclass(frozen=True, slots=True)
class HostReturn:
    """Any other host value: `Z` Size, `A` ndarray, `L` nested list, `N` None, `D` device, `Y`
    dtype.
    """

    kind: str


@dataclass(frozen=True, slots=True)
class InstanceReturn:
    """An instance of a torch class, by its public qualified name."""

    qualified: str


@dataclass(frozen=True, slots=True)
class UnknownReturn:
    """Nothing is known."""


Return: TypeAlias = (
    TensorReturn
    | TupleReturn
    | ListReturn
    | ScalarReturn
    | HostReturn
    | InstanceReturn
    | UnknownReturn
)

UNKNOWN = UnknownReturn()


@cache
def parse_return(text: str) -> Return:
    """Return the value of a compact text form; raises ValueError if it is malformed."""
    value, end = _parse(text, 0)
    if end != len(text):
        raise ValueError(f"trailing text in return {text!r} at {end}")
    return value


def _parse(text: str, at: int) -> tuple[Return, int]:
    head = text[at : at + 1]
    if head == "T":
        if len(text) < at + 3:
            raise ValueError(f"a tensor needs two letters in {text!r}")
        return TensorReturn(text[at + 1], text[at + 2]), at + 3
    if head == "(":
        items, _, end = _parse_items(text, at + 1, ")", named=False)
        return TupleReturn(items), end
    if head == "<":
        items, names, end = _parse_items(text, at + 1, ">", named=True)
        return TupleReturn(items, names), end
    if head == "[":
        item, end = _parse(text, at + 1)
        if text[end : end + 1] != "]":
            raise ValueError(f"unclosed list in {text!r}")
        return ListReturn(item), end + 1
    if head == "@":
        end = at + 1
        while end < len(text) and (text[end].isalnum() or text[end] in "._"):
            end += 1
        return InstanceReturn(text[at + 1 : end]), end
    if head == "?":
        return UNKNOWN, at + 1
    if head and head in SCALAR_KINDS:
        return ScalarReturn(head), at + 1
    if head and head in HOST_KINDS:
        return HostReturn(head), at + 1
    raise ValueError(f"no return form at {at} in {text!r}")


def _parse_items(
    text: str, at: int, close: str, *, named: bool
) -> tuple[tuple[Return, ...], tuple[str, ...], int]:
    items: list[Return] = []
    names: list[str] = []
    while text[at : at + 1] != close:
        if items:
            if text[at : at + 1] != ",":
                raise ValueError(f"expected a comma at {at} in {text!r}")
            at += 1
        if named:
            colon = text.index(":", at)
            names.append(text[at:colon])
            at = colon + 1
        item, at = _parse(text, at)
        items.append(item)
    return tuple(items), tuple(names), at + 1


def render_return(value: Return) -> str:
    """Return the compact text form; `parse_return` is its inverse."""
    match value:
        case TensorReturn(dtype=dtype, rank=rank):
            return f"T{dtype}{rank}"
        case TupleReturn(items=items, names=None):
            return "(" + ",".join(map(render_return, items)) + ")"
        case TupleReturn(items=items, names=names):
            fields = zip(names or (), items, strict=True)
            return "<" + ",".join(f"{name}:{render_return(item)}" for name, item in fields) + ">"
        case ListReturn(item=item):
            return f"[{render_return(item)}]"
        case ScalarReturn(kind=kind) | HostReturn(kind=kind):
            return kind
        case InstanceReturn(qualified=qualified):
            return f"@{qualified}"
        case UnknownReturn():
            return "?"


def common_return(values: Iterable[Return]) -> Return:
    """Return what all values have in common; Unknown if they differ in form or there are none."""
    result: Return | None = None
    for value in values:
        result = value if result is None else _common(result, value)
    return UNKNOWN if result is None else result


def _common(a: Return, b: Return) -> Return:
    if a == b:
        return a
    match a, b:
        case TensorReturn(), TensorReturn():
            dtype = a.dtype if a.dtype == b.dtype else "?"
            return TensorReturn(dtype, a.rank if a.rank == b.rank else "?")
        case TupleReturn(), TupleReturn() if len(a.items) == len(b.items):
            items = tuple(_common(x, y) for x, y in zip(a.items, b.items, strict=True))
            return TupleReturn(items, a.names if a.names == b.names else None)
        case ((TupleReturn() | ListReturn()), (TupleReturn() | ListReturn())):
            item = common_return(_items(a) + _items(b))
            return UNKNOWN if item == UNKNOWN else ListReturn(item)
        case ScalarReturn(kind=x), ScalarReturn(kind=y) if "s" not in x + y:
            return ScalarReturn("n")
    return UNKNOWN


def _items(value: TupleReturn | ListReturn) -> tuple[Return, ...]:
    return value.items if isinstance(value, TupleReturn) else (value.item,)
