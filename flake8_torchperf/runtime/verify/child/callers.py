"""In the child: other arguments that a caller could pass than those of the inputs found.

Annotations do not bind callers: a number may be of another kind, a tensor of another length or
dtype, a list longer. Each choice differs from the inputs found in one argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.specs.input_specs import WIDTH, InputSpec, tensor, value
from flake8_torchperf.runtime.verify.child.variations import Variation

# A choice: the argument, its new spec, and the name of the variation for the call.
Choice = tuple[str, InputSpec, str]

# By name, so that both texts are called alike.
OTHER_CALLS = {
    "other": Variation("as another caller may pass it"),
    "rank": Variation("as another caller may pass it", lenient=True),
    "gradients": Variation("as another caller may pass it, with gradients", gradients=True),
    "zero": Variation("with one zero and gradients", data="zero", gradients=True),
    "nan": Variation("with one NaN and gradients", data="nan", gradients=True),
    "double": Variation("as another caller may pass it, in float64", dtype=torch.float64),
    "rounds": Variation("1,000 rounds in bfloat16", dtype=torch.bfloat16),
    "wide": Variation("in several dtypes", mixed=True),
}
# Rounds of a loop after which a total in bfloat16 has long stopped growing.
ROUNDS = 1000
# Lengths that differ from the size of the other arguments: none, one, and some.
LENGTHS = (1, 0, 5)
MOST_CHOICES = 48
# Things that a loop may find nothing in.
_MAY_BE_EMPTY = ("module", "optimizer", "parameters", "loader")


def other_calls(specs: dict[str, InputSpec], defaults: dict[str, Any]) -> list[Choice]:
    """Return the choices for one set of inputs; ``defaults`` are those of the parameters."""
    own = {name: spec for name, spec in specs.items() if not name.startswith("(")}
    each = [list(_of(name, spec, defaults.get(name))) for name, spec in own.items()]
    # In turn, so that many choices of one argument leave room for those of the others.
    made = [one for turn in zip_longest(*each) for one in turn if one is not None]
    if any(spec["kind"] in ("tensor", "list", "items") for spec in specs.values()):
        made.append(("", {}, "wide"))
    return made[:MOST_CHOICES]


def with_choice(specs: dict[str, InputSpec], choice: Choice) -> dict[str, InputSpec]:
    """Return the inputs with one argument replaced by the choice."""
    name, spec, _ = choice
    return {**specs, name: spec} if name else specs


def _of(name: str, spec: InputSpec, default: Any) -> Iterator[Choice]:
    match spec:
        case {"kind": "default"} if type(default) in (int, float):
            yield from _for_number(name, default)
        case {"kind": "value", "value": int() | float() as number} if type(number) is not bool:
            yield from _for_number(name, number)
        case {"kind": "tensor", "shape": shape}:
            yield from _for_tensor(name, spec, shape)
        case {"kind": "list", "length": length, "item": item}:
            yield name, {**spec, "length": 0}, "other"
            yield name, {**spec, "length": 1}, "other"
            if length == "n" and item["kind"] == "tensor" and item["shape"].count("n") <= 1:
                yield name, {**spec, "length": ROUNDS}, "rounds"
        case {"kind": "items", "form": "list"}:
            yield name, {**spec, "items": []}, "other"
        case {"kind": "dict"}:
            yield name, {**spec, "items": {}}, "other"
        case {"kind": kind} if kind in _MAY_BE_EMPTY:
            yield name, {**spec, "empty": True}, "other"


def _for_tensor(name: str, spec: InputSpec, shape: list[int | str]) -> Iterator[Choice]:
    """Return tensors of other lengths, and of fewer dimensions down to none, as masks may have."""
    if "n" in shape:
        place = shape.index("n")
        for length in LENGTHS:
            changed = [*shape[:place], length, *shape[place + 1 :]]
            yield name, {**spec, "shape": changed}, "other"
    for rank in range(len(shape)):
        yield name, {**spec, "shape": shape[:rank]}, "rank"
    yield name, {**spec, "shape": [*shape, WIDTH]}, "rank"
    if spec["dtype"] == "int":
        yield name, {**spec, "dtype": "bool"}, "other"
    if spec["dtype"] in ("int", "bool"):
        for how in ("other", "gradients", "zero", "nan"):
            yield name, {**spec, "dtype": "float"}, how


def _for_number(name: str, number: float) -> Iterator[Choice]:
    """Return other numbers, of the same kind and of others, which Python takes for one another.

    For an integer that is a float, a bool and a 0-d tensor. For a float, one of those which float32
    does not hold.
    """
    yield name, value(type(number)(0)), "other"
    if type(number) is float:
        yield name, value(number + 0.1), "double"
        return
    yield name, value(number + 0.5), "other"
    yield name, value(True), "other"
    yield name, tensor((), "int"), "other"
