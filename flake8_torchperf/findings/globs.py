"""Globs over function names: a text in, what is wrong with it out.

What fnmatch understands and a qualified name can hold.
"""

from __future__ import annotations

import re
from keyword import iskeyword

_CHARACTERS = r"[\w.*?\[\]!-]+"
# Each of them can stand for a letter: one of several, any one, any number.
_WILD = r"\[!?\]?[^\]]*\]|[*?]"


def problem_with(pattern: str) -> str:
    """What to tell the person who wrote the glob; "" where a function's name can match."""
    if _can_match(pattern):
        return ""
    advice = "write for example execute_model or Engine.*"
    return f"{pattern!r} is not a function name or glob; {advice}"


def _can_match(pattern: str) -> bool:
    """Can a dotted name match? A number can not, nor can a bracket that nothing closes."""
    if not re.fullmatch(_CHARACTERS, pattern):
        return False
    parts = re.sub(_WILD, "x", pattern).split(".")
    return all(part.isidentifier() and not iskeyword(part) for part in parts)
