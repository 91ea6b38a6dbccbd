"""What holds modules and parameters: torch's lists, dicts and rows of them.

Enters the name of a container of torch's and what it was given; leaves the value of one. Must not
know calls or statements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.interpret.iteration import element_of, paired
from flake8_torchperf.interpret.types import MODULE_HOLDERS
from flake8_torchperf.interpret.values import (
    STR,
    UNKNOWN,
    Instance,
    Mapping_,
    Sequence,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpret.arguments import Arguments

HOLDERS = {"torch.nn.Sequential", *(f"torch.nn.{name}" for name in MODULE_HOLDERS)}


def module_holder(qualified: str, arguments: Arguments) -> Value:
    """``nn.ModuleList(layers)`` and its kin: a list, a dict, or modules in a row."""
    first = next(arguments.all(), None)
    given = UNKNOWN if first is None else first.value
    if qualified.endswith("List"):
        items = given.items if isinstance(given, Sequence) else None
        return Sequence("list", element_of(given), () if first is None else items)
    if qualified.endswith("Dict"):
        return Mapping_(STR, UNKNOWN, made=True) if first is None else _named(given)
    return Instance(qualified, parts=_row(arguments, given))


def _named(given: Value) -> Value:
    held = paired(given)
    return held if isinstance(held, Mapping_) else Mapping_(STR, UNKNOWN)


def _row(arguments: Arguments, given: Value) -> Sequence | None:
    """The modules of ``Sequential(a, b)``, ``Sequential(*layers)`` and of a dict of them."""
    held = paired(given)
    if isinstance(held, Mapping_):
        values = tuple(value for _, value in held.items)
        return Sequence("list", held.any_value(), values or None)
    modules = [argument.value for argument in arguments.positional]
    if not modules or UNKNOWN in modules:
        return None
    return Sequence("list", join_all(modules), None if arguments.open else tuple(modules))
