"""In the child: other arguments that a caller could pass than those of the inputs found.

Annotations do not bind callers: a number may be of another kind, a tensor of another length or
dtype, a list longer. Each choice differs from the inputs found in one argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.specs.input_specs import InputSpec, tensor, value
from flake8_torchperf.runtime.verify.child.variations import Variation

# A choice: the argument, its new spec, and the name of the variation for the call.
Choice = tuple[str, InputSpec, str]

# By name, so that both texts are called alike.
OTHER_CALLS = {
    "other": Variation("as another caller may pass it"),
    "rounds": Variation("1,000 rounds in bfloat16", dtype=torch.bfloat16),
    "wide": Variation("in several dtypes", mixed=True),
}
# Rounds of a loop after which a total in bfloat16 has long stopped growing.
ROUNDS = 1000
# Lengths that differ from the size of the other arguments: none, one, and some.
LENGTHS = (1, 0, 5)
MOST_CHOICES = 24


def other_calls(specs: dict[str, InputSpec], defaults: dict[str, Any]) -> list[Choice]:
    """Return the choices for one set of inputs; ``defaults`` are those of the parameters."""
    made: list[Choice] = []
    for name, spec in specs.items():
        if not name.startswith("("):
            made += _of(name, spec, defaults.get(name.removeprefix("self.")))
    if any(spec["kind"] in ("tensor", "list", "items") for spec in specs.values()):
        made.append(("", {}, "wide"))
    return made[:MOST_CHOICES]


def with_choice(specs: dict[str, InputSpec], choice: Choice) -> dict[str, InputSpec]:
    """Return the inputs with one argument replaced by the choice."""
    name, spec, _ = choice
    return {**specs, name: spec} if name else specs


def _of(name: str, spec: InputSpec, default: Any) -> Iterator[Choice]:
    match spec:
        case {"kind": "default"} if type(default) is int:
            yield from _for_integer(name, default)
        case {"kind": "value", "value": int() as number} if type(number) is int:
            yield from _for_integer(name, number)
        case {"kind": "tensor", "shape": shape} if "n" in shape:
            place = shape.index("n")
            for length in LENGTHS:
                changed = [*shape[:place], length, *shape[place + 1 :]]
                yield name, {**spec, "shape": changed}, "other"
        case {"kind": "list", "length": "n", "item": {"kind": "tensor", "shape": shape}}:
            for length in LENGTHS[:2]:
                yield name, {**spec, "length": length}, "other"
            if shape.count("n") <= 1:
                yield name, {**spec, "length": ROUNDS}, "rounds"


def _for_integer(name: str, number: int) -> Iterator[Choice]:
    """Return a float, a bool and a 0-d tensor: Python's arithmetic takes them for an integer."""
    yield name, value(number + 0.5), "other"
    yield name, value(True), "other"
    yield name, tensor((), "int"), "other"
