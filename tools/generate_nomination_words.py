"""Derives from the torch table the few words that nomination needs, so that it need not load it.

    python tools/generate_nomination_words.py

Enters the committed table; leaves `flake8_torchperf/knowledge/nomination_words.json`. Run it after
`tools/generate_torch_table.py`; a test fails where the two no longer agree. Names are last parts:
functions of the same name in several modules of torch share what any of them does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from flake8_torchperf.knowledge.table import (
    InstanceReturn,
    ListReturn,
    Op,
    Return,
    TensorReturn,
    TorchTable,
    TupleReturn,
    load,
)
from flake8_torchperf.suspects.grades import TENSOR, TORCH, holding

PATH = Path(__file__).parents[1] / "flake8_torchperf" / "knowledge" / "nomination_words.json"
# What makes the host wait, as `interpret/torch_calls.py` reads the table's flags.
COSTLY = frozenset("hys")
# Those that wait only where they copy, which is judged by their arguments.
COPYING = {"copy_", "to", "cuda", "xpu", "cpu", "new_tensor", "index_put", "index_put_"}
NUMBERS = frozenset("ifnZb10")
# A call with more arguments than this is not looked at argument by argument.
MAX_POSITION = 12


def words(table: TorchTable) -> dict[str, object]:
    """Everything nomination asks of torch's functions, methods and classes."""
    functions = [table.function(name) for name in table.function_names()]
    methods = [table.method(name) for name in table.method_names()]
    members, attributes = _members(table)
    return {
        "functions": _operations(op for op in functions if op is not None),
        "methods": _operations(op for op in methods if op is not None),
        "classes": sorted({_short(name) for name in table.class_names()}),
        "members": members,
        "attributes": attributes,
    }


def _operations(ops: Iterable[Op]) -> dict[str, object]:
    by_name: dict[str, list[Op]] = {}
    for op in ops:
        by_name.setdefault(_short(op.name), []).append(op)
    masks: dict[str, list[str]] = {}
    results: dict[str, list[str]] = {}
    for name, group in sorted(by_name.items()):
        mask = (1 << MAX_POSITION) - 1
        grade = 0
        for op in group:
            mask &= _tensor_positions(op)
            for overload in op.overloads:
                grade |= _grade(overload.returns)
        masks.setdefault(str(mask), []).append(name)
        results.setdefault(str(grade), []).append(name)
    return {
        "costly": sorted(
            name
            for name, group in by_name.items()
            if name not in COPYING and any(COSTLY & op.flags for op in group)
        ),
        "results": results,
        "tensors_at": masks,
        "number_keywords": sorted(_number_keywords(by_name)),
        "factories": sorted(n for n, group in by_name.items() if any(op.factory for op in group)),
    }


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _grade(returned: Return) -> int:
    """What a call returns, as `suspects/grades.py` counts it."""
    match returned:
        case TensorReturn():
            return TENSOR
        case InstanceReturn(qualified=qualified):
            return TENSOR if qualified.endswith("Tensor") else TORCH
        case TupleReturn(items=items):
            grade = 0
            for item in items:
                grade |= holding(_grade(item))
            return grade
        case ListReturn(item=item):
            return holding(_grade(item))
    return 0


def _tensor_positions(op: Op) -> int:
    """Bit per position: set where some overload takes more than a number there."""
    mask = 0
    for position in range(MAX_POSITION):
        types: set[str] = set()
        for overload in op.overloads:
            slots = [p for p in overload.params if p.form in ("positional", "variadic")]
            if position < len(slots):
                types.add(slots[position].type)
            elif slots and slots[-1].form == "variadic":
                types.add(slots[-1].type)
        if not types or not types <= NUMBERS:
            mask |= 1 << position
    return mask


def _number_keywords(by_name: dict[str, list[Op]]) -> set[str]:
    """Keywords under which some operation takes a number alone."""
    numbers: set[str] = set()
    for group in by_name.values():
        for op in group:
            types: dict[str, set[str]] = {}
            for overload in op.overloads:
                for parameter in overload.params:
                    types.setdefault(parameter.name, set()).add(parameter.type)
            for name, found in types.items():
                if found <= NUMBERS:
                    numbers.add(name)
    return numbers


def _members(table: TorchTable) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Methods and attributes of torch's classes by grade; those that are host facts left out."""
    methods: dict[str, int] = {}
    attributes: dict[str, int] = {}
    for name in table.class_names():
        klass = table.klass(name)
        assert klass is not None
        for method in klass.own_methods:
            op = klass.method(method)
            for overload in op.overloads if op is not None else ():
                methods[method] = methods.get(method, 0) | _grade(overload.returns)
        for attribute in klass.own_attributes:
            returned = klass.attribute(attribute)
            if returned is not None:
                attributes[attribute] = attributes.get(attribute, 0) | _grade(returned)
    return _by_grade(methods), _by_grade(attributes)


def _by_grade(grades: dict[str, int]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, grade in sorted(grades.items()):
        found.setdefault(str(grade), []).append(name)
    return found


def main() -> int:
    """Write the words."""
    PATH.write_text(json.dumps(words(load()), separators=(",", ":")) + "\n")
    print(f"{PATH}: {PATH.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
