"""Specs: descriptions of inputs, as plain data that crosses to the child.

A spec says what to build ("a float tensor of shape (n, 4)"); the child builds it at each probe
size. Dimensions are integers or ``"n"``, the probe size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

InputSpec: TypeAlias = "dict[str, Any]"
Shape: TypeAlias = "tuple[int | str, ...]"

# The kind of what a recorded call was given.
KEPT = "kept"
# Devices of a call's inputs on CUDA: that device, or the host, since some code moves them.
PLACE, HOST = "(inputs)", "on the host"
# Shapes of tensors without further hints, likeliest first. 4 is the width that modules and
# sizes get too, so that a guessed layer fits a guessed batch.
WIDTH = 4
INPUT_SHAPES: tuple[Shape, ...] = (
    ("n",),
    ("n", 4),
    (1,),
    (),
    ("n", "n"),
    (4,),
    (4, 4),
    (2, "n", 4),
    (2, 4, "n"),
    ("n", 4, 4),
    ("n", 4, 8, 8),
)
ITEM_SHAPES: tuple[Shape, ...] = ((4,), (4, 4), (), (1,), ("n",), ("n", 4))


def tensor(
    shape: Shape, dtype: str = "float", data: str = "unit", parameter: bool = False
) -> InputSpec:
    """Return the spec of a tensor.

    ``data`` "unit" lies in (0.1, 0.9), "normal" has both signs and no zeros.
    """
    made: InputSpec = {"kind": "tensor", "shape": list(shape), "dtype": dtype, "data": data}
    if parameter:
        made["parameter"] = True
    return made


def listing(item: InputSpec, length: int | str = "n", form: str = "list") -> InputSpec:
    """Return the spec of ``length`` objects of the same spec, as a list, tuple, iterator ..."""
    return {"kind": "list", "item": item, "length": length, "form": form}


def fixed(items: Iterable[InputSpec], form: str = "tuple") -> InputSpec:
    """Return the spec of a tuple or list whose items each have a spec of their own."""
    return {"kind": "items", "items": list(items), "form": form}


def mapping(items: dict[str, InputSpec]) -> InputSpec:
    """Return the spec of a dict with known string keys."""
    return {"kind": "dict", "items": items}


def value(literal: object) -> InputSpec:
    """Return the spec of a number, string, bool or None."""
    return {"kind": "value", "value": literal}


def values(literals: Iterable[object]) -> list[InputSpec]:
    """Return several literals, one spec each."""
    return [value(one) for one in literals]


def simple(kind: str) -> InputSpec:
    """Return the spec of a thing without further choices: a module, an optimizer, a callable ..."""
    return {"kind": kind}


def instance(name: str) -> InputSpec:
    """Return the spec of an object of a class, by its dotted name; its inputs are made too."""
    return {"kind": "instance", "name": name}


def kept(call: Mapping[str, Any], name: str) -> InputSpec:
    """Return the spec of an argument of a recorded call (`KeptCall`), by the parameter's name."""
    return {"kind": KEPT, "call": dict(call), "name": name}


def source(text: str) -> InputSpec:
    """Return the spec of the user's own expression over n, torch and the module's names."""
    return {"kind": "source", "text": text}


def tensors(
    dtype: str = "unknown",
    ranks: Sequence[int] = (),
    scalar: bool | None = None,
    parameter: bool = False,
) -> list[InputSpec]:
    """Return candidates for a tensor: shapes of the hinted ranks first, floats before integers."""
    shapes = list(INPUT_SHAPES)
    if scalar:
        shapes.sort(key=lambda shape: shape not in ((), (1,)))
    if ranks:
        shapes.sort(key=lambda shape: len(shape) not in ranks)
    if dtype in ("float", "complex", "int", "bool"):
        made = [tensor(shape, dtype, parameter=parameter) for shape in shapes]
        if dtype == "float":
            made[3:3] = [tensor(shapes[0], data="normal"), tensor(shapes[1], data="normal")]
        return made
    made = [tensor(shape, parameter=parameter) for shape in shapes]
    made[4:4] = [tensor(shapes[0], "int"), tensor(shapes[1], "int"), tensor(shapes[0], "bool")]
    made[2:2] = [tensor(shapes[0], data="normal")]
    made += [tensor(shape, "int") for shape in shapes[2:5]]
    return [*made, tensor(shapes[1], "bool"), value(None)]


# For sizes, cutoffs and milestones, which must be different and in order.
ASCENDING: InputSpec = fixed(values((1, 2, 3)), "list")


def unique(specs: Iterable[InputSpec]) -> list[InputSpec]:
    """Return the specs in order, each once."""
    kept: list[InputSpec] = []
    for one in specs:
        if one not in kept:
            kept.append(one)
    return kept


def describe(spec: InputSpec) -> str:
    """Describe a spec in a few words, for reports."""
    match spec:
        case {"kind": "tensor", "shape": shape, "dtype": dtype}:
            what = "parameter" if spec.get("parameter") else "tensor"
            return f"{dtype} {what} ({', '.join(str(size) for size in shape)})"
        case {"kind": "list", "item": item, "length": length, "form": form}:
            return f"{form} of {length} x {describe(item)}"
        case {"kind": "items", "items": items}:
            return "(" + ", ".join(describe(item) for item in items) + ")"
        case {"kind": "dict", "items": items}:
            return "{" + ", ".join(f"{key}: {describe(item)}" for key, item in items.items()) + "}"
        case {"kind": "value", "value": literal}:
            return repr(literal)
        case {"kind": "source", "text": text}:
            return str(text)
        case {"kind": "instance", "name": name}:
            return f"{name}(...)"
        case {"kind": "kept"}:
            return "as recorded"
    return str(spec["kind"])
