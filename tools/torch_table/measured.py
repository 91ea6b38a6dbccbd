"""Folds measurements on CUDA into the entries: a measurement outweighs every document and tag.

The table states once where all of them were measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch_table.measure import CASES, COPIES, METHOD, key_of
from torch_table.model import Entry
from torch_table.witness import WAITED_BY
from torch_table.workers import LOST

MEASURED = Path(__file__).resolve().parents[2] / "benchmarks" / "measured_syncs.json"
# The letters that a measurement without a wait rules out on a device: reading an element, a size
# that depends on data, synchronising.
_NEEDS_THE_DEVICE = frozenset("dhsy")


def read_measured(path: Path = MEASURED) -> dict[str, Any]:
    """Return the file's content; an empty measurement if there is no file."""
    if not path.is_file():
        return {"operations": {}}
    return dict(json.loads(path.read_bytes()))


def origin(measured: Mapping[str, Any]) -> str:
    """Return where it was measured; "" if nothing was."""
    if not measured["operations"]:
        return ""
    return f"torch {measured['torch']}, CUDA {measured['cuda']}, {measured['device']}"


def fold_measured(
    functions: Mapping[str, Entry],
    methods: Mapping[str, Entry],
    classes: Mapping[str, Any],
    measured: Mapping[str, Any],
) -> None:
    """Decide flag `s` of every entry that was measured; for the others, say who documents it.

    An entry that waits and names no source was measured.
    """
    decided = {case.decides: f"case: {case.words}" for case in CASES.values() if case.decides}
    rows = measured["operations"]
    entries = {**functions, **{METHOD + name: entry for name, entry in methods.items()}}
    for name, entry in entries.items():
        # For copies only the cases decide, not the overloads that an earlier tool measured.
        row = decided.get(name, "" if name in COPIES else name)
        # A method without parameters has the key "", so the outcome distinguishes a row.
        outcomes = {k: how != "none" for k, how in rows.get(row, {}).items() if how in WAITED_BY}
        if outcomes and name in decided:
            _decide_whole(entry, waits=any(outcomes.values()))
        elif outcomes:
            _decide(entry, outcomes)
        entry.why = "" if outcomes else entry.why and f"documented: {entry.why}"
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


def _decide(entry: Entry, outcomes: Mapping[str, bool]) -> None:
    """Set the letters of each overload that was called; the other overloads keep theirs."""
    alike = {_types(key): waited for key, waited in outcomes.items()}
    letters: list[set[str]] = []
    for signature in entry.signatures:
        own = (entry.flags | signature.costs) & _NEEDS_THE_DEVICE
        key = key_of(signature)
        waited = outcomes.get(key, alike.get(_types(key)))
        if waited is not None:
            own = own | {"s"} if waited else set()
        letters.append(own)
    _place(entry, letters)


def _types(key: str) -> str:
    """Return the parameters of a key with their types, without the marks of optional ones.

    Whether an option must be given affects only the return.
    """
    return key.replace("=", "")


def _decide_whole(entry: Entry, *, waits: bool) -> None:
    """Decide the whole operation by a case, or only overloads that are documented, if any are."""
    documented = ["s" in entry.flags or "s" in s.costs for s in entry.signatures]
    _place(
        entry,
        [
            ((entry.flags | s.costs) & _NEEDS_THE_DEVICE - {"s"})
            | ({"s"} if waits and (known or not any(documented)) else set())
            for s, known in zip(entry.signatures, documented, strict=True)
        ],
    )


def _place(entry: Entry, letters: list[set[str]]) -> None:
    """Give letters that all overloads share to the entry, and other letters to their overloads."""
    shared = set.intersection(*letters)
    entry.flags = (entry.flags - _NEEDS_THE_DEVICE) | shared
    entry.signatures = [
        replace(s, costs=(s.costs - _NEEDS_THE_DEVICE) | (own - shared))
        for s, own in zip(entry.signatures, letters, strict=True)
    ]
