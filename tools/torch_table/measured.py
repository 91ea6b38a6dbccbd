"""Folds what was measured on CUDA into the entries: a measurement outweighs every document.

Enters: the entries and the file that `tools/measure_syncs.py` wrote, if there is one. Leaves: flag
`s` where the operation was seen to wait, none where it was seen not to, and in `why` whether that
was measured or is documented.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch_table.measure import CASES, METHOD, key_of
from torch_table.model import Entry
from torch_table.witness import WAITED_BY
from torch_table.workers import LOST

MEASURED = (
    Path(__file__).resolve().parents[2] / "flake8_torchperf" / "knowledge" / "measured_syncs.json"
)


def read_measured(path: Path = MEASURED) -> dict[str, Any]:
    """The file's content; nothing measured where there is none."""
    if not path.is_file():
        return {"operations": {}}
    return dict(json.loads(path.read_bytes()))


def fold_measured(
    functions: Mapping[str, Entry],
    methods: Mapping[str, Entry],
    classes: Mapping[str, Any],
    measured: Mapping[str, Any],
) -> None:
    """Decide flag `s` of every entry that was measured, and say of the others who documents it."""
    decided = {case.decides: f"case: {case.words}" for case in CASES.values() if case.decides}
    rows = measured["operations"]
    entries = {**functions, **{METHOD + name: entry for name, entry in methods.items()}}
    for name, entry in entries.items():
        seen = rows.get(decided.get(name, name)) or {}
        # A method without parameters has the key "", so what tells a row is its outcome.
        outcomes = {key: how != "none" for key, how in seen.items() if how in WAITED_BY}
        if outcomes:
            entry.why = _origin(measured)
            _decide(entry, outcomes, whole=name in decided)
        elif entry.why:
            entry.why = f"documented: {entry.why}"
    for case in CASES.values():
        operation, parameter = case.spares
        spared = entries.get(operation)
        outcomes_here = rows.get(f"case: {case.words}") or {}
        if spared is not None and any(how not in ("none", LOST) for how in outcomes_here.values()):
            spared.unless.discard(parameter)  # it waits although the parameter is given
    for data in classes.values():
        for method in data.get("m", {}).values():
            if isinstance(method, dict) and method.get("why"):
                method["why"] = f"documented: {method['why']}"


def _origin(measured: Mapping[str, Any]) -> str:
    device = measured["device"]
    return f"measured: torch {measured['torch']}, CUDA {measured['cuda']}, {device}"


def _decide(entry: Entry, outcomes: Mapping[str, bool], *, whole: bool) -> None:
    """Place `s` on the overloads that waited; an overload that was not called keeps what it had."""
    general = "s" in entry.flags
    waits: list[bool] = []
    for signature in entry.signatures:
        before = general or "s" in signature.costs
        seen = any(outcomes.values()) if whole else outcomes.get(key_of(signature), before)
        waits.append(seen)
    if whole and entry.flags.isdisjoint("s") and any("s" in s.costs for s in entry.signatures):
        # The case is one of the overloads that were documented, and speaks for those alone.
        waits = [w and "s" in s.costs for w, s in zip(waits, entry.signatures, strict=True)]
    entry.flags -= {"s"}
    entry.signatures = [replace(s, costs=s.costs - {"s"}) for s in entry.signatures]
    if all(waits):
        entry.flags |= {"s"}
    else:
        entry.signatures = [
            replace(s, costs=s.costs | {"s"}) if wait else s
            for s, wait in zip(entry.signatures, waits, strict=True)
        ]
