"""Checks globs over function names.

A glob may hold what fnmatch understands and a qualified name can contain.
"""

from __future__ import annotations

import re
from keyword import iskeyword

_CHARACTERS = r"[\w.*?\[\]!-]+"
# Wildcards, each of which can match one letter: a set, any character, any number of characters.
_WILD = r"\[!?\]?[^\]]*\]|[*?]"


def problem_with(pattern: str) -> str:
    """Return a message for the author of the glob; "" if a function's name can match it."""
    if _can_match(pattern):
        return ""
    advice = "write for example execute_model or Engine.*"
    return f"{pattern!r} is not a function name or glob; {advice}"


def _can_match(pattern: str) -> bool:
    """True if a dotted name can match; no name matches a number or an unclosed bracket."""
    if not re.fullmatch(_CHARACTERS, pattern):
        return False
    parts = re.sub(_WILD, "x", pattern).split(".")
    return all(part.isidentifier() and not iskeyword(part) for part in parts)
