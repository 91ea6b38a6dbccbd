"""torch's lists, dicts and sequences of modules and parameters; distributions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.values.elements import element_of, paired
from flake8_torchperf.values.named_types import MODULE_HOLDERS
from flake8_torchperf.values.values import (
    NUMBER_KINDS,
    STR,
    UNKNOWN,
    BoundMethod,
    Instance,
    Mapping_,
    Scalar,
    Sequence,
    Tensor,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from flake8_torchperf.values.arguments import Arguments

HOLDERS = {"torch.nn.Sequential", *(f"torch.nn.{name}" for name in MODULE_HOLDERS)}


def module_holder(qualified: str, arguments: Arguments) -> Value:
    """Return the list, dict or row of modules that ``nn.ModuleList(layers)`` and others make."""
    first = next(iter(arguments.all()), None)
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
    """Return the modules of ``Sequential(a, b)``, ``Sequential(*layers)`` and of a dict of them."""
    held = paired(given)
    if isinstance(held, Mapping_):
        values = tuple(value for _, value in held.items)
        return Sequence("list", held.any_value(), values or None)
    modules = [argument.value for argument in arguments.positional]
    if not modules or UNKNOWN in modules:
        return None
    return Sequence("list", join_all(modules), None if arguments.open else tuple(modules))


# The fact of a distribution whose parameters and results lie on the host.
_ON_HOST = "of the host"


def distribution(made: Value, arguments: Arguments) -> Value:
    """Return a distribution, marked if its parameters lie on the host: ``Beta(0.2, 0.2)``.

    `torch.distributions.utils.broadcast_all` makes host tensors of numbers and moves no tensor.
    """
    given = [a.value for a in arguments.positional]
    given += [a.value for name, a in arguments.keywords.items() if name != "validate_args"]
    if not isinstance(made, Instance) or arguments.open or not given:
        return made
    if not all(map(lies_on_host, given)):
        return made
    return replace(made, facts=made.facts | {_ON_HOST})


def lies_on_host(value: Value) -> bool:
    """True for a number, a tensor on the host, or a distribution made only of those."""
    match value:
        case Scalar(kind=kind):
            return kind in NUMBER_KINDS
        case Tensor(device=device):
            return device == "host"
        case Instance(facts=facts):
            return _ON_HOST in facts
    return False


def given_by(owner: Instance, value: Value) -> Value:
    """Return a value that a torch object gives; a tensor is on the host if the object is."""
    if isinstance(value, BoundMethod):
        return replace(value, owner=owner)
    if isinstance(value, Tensor) and _ON_HOST in owner.facts:
        return replace(value, device="host")
    return value
