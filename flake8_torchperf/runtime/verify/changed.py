"""The lines of a text that a fix changes."""

from __future__ import annotations

from difflib import SequenceMatcher


def changed_lines(before: str, after: str) -> set[int]:
    """Return the lines of the text before that the other text replaces or leaves out, from 1."""
    found: set[int] = set()
    for tag, first, last in _differences(before, after):
        if tag in ("replace", "delete"):
            found.update(range(first + 1, last + 1))
    return found


def lines_before_new(before: str, after: str) -> set[int]:
    """Return the lines of the text before that follow on lines which only the other text has."""
    return {first + 1 for tag, first, _ in _differences(before, after) if tag == "insert"}


def _differences(before: str, after: str) -> list[tuple[str, int, int]]:
    old, new = before.splitlines(), after.splitlines()
    found = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(tag, first, last) for tag, first, last, _, _ in found]
