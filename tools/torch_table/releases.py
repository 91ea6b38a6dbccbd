"""The answers of older torch releases that differ from those of the newest, which are the table.

One file for each older release: the answers that differ, null where that release has none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("releases")
SECTIONS = ("functions", "methods", "attributes", "aliases")
# Parts of a class that hold one answer for each name, and those that are an answer themselves.
_NAMED, _WHOLE = ("m", "a"), ("kind", "b")


def answers(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table's answers by place: `methods item`, `classes torch.nn.LSTM m forward`."""
    found: dict[str, Any] = {}
    for section in SECTIONS:
        for name, value in table[section].items():
            found[f"{section} {name}"] = value
    for name, parts in table["classes"].items():
        for part in _WHOLE:
            if part in parts:
                found[f"classes {name} {part}"] = parts[part]
        for part in _NAMED:
            for member, value in parts.get(part, {}).items():
                found[f"classes {name} {part} {member}"] = value
    return found


def differences(older: dict[str, Any], newest: dict[str, Any]) -> dict[str, Any]:
    """Return the older table's answers that differ from the newest's; None if it has none."""
    before, after = answers(older), answers(newest)
    return {
        name: before.get(name)
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    }


def carried(found: dict[str, Any], recorded: dict[str, Any]) -> dict[str, Any]:
    """Return the answers of an older torch that are new since its differences were recorded.

    ``found`` and ``recorded`` are its differences now and then. torch did not change in between,
    so the supplement or the measurements did, of which the newest torch would get the same
    answers: an operation that both releases have, and that answered the same until now.
    """
    return {
        name: answer
        for name, answer in found.items()
        if answer is not None and name not in recorded
    }


def with_answers(table: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    """Return a table with other answers of functions and methods.

    Another name of what the table has may be new. Raises LookupError for any other answer that the
    table does not have.
    """
    result = {section: dict(table[section]) for section in SECTIONS}
    named = {*table["functions"], *table["classes"]}
    for place, answer in changed.items():
        section, _, name = place.partition(" ")
        is_alias = section == "aliases" and answer in named
        if name not in result.get(section, {}) and not is_alias:
            raise LookupError(f"the newest torch does not have {place}")
        result[section][name] = answer
    return {**table, **result}


def render(found: dict[str, Any], newest: str) -> str:
    """Return the file's text, one answer a line."""
    lines = [
        f"{json.dumps(name)}:{json.dumps(value, separators=(',', ':'))}"
        for name, value in found.items()
    ]
    body = ",\n".join(lines)
    return f'{{\n"newest":{json.dumps(newest)},\n"differs":{{\n{body}\n}}\n}}\n'


def path_of(version: str) -> Path:
    """Return the file that holds the differences of an older release."""
    return FOLDER / f"{version}.json"


def is_older(version: str, than: str) -> bool:
    """True if one release of torch is older than another, both as `2.13.0`."""
    return _numbers(version) < _numbers(than)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
