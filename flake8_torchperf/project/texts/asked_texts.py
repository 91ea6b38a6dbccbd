"""Questions to the text of a module that are no search for a word."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flake8_torchperf.project.texts.looked_up import LOOKING_UP, may_build

if TYPE_CHECKING:
    from collections.abc import Callable

# Asks for the modules that may compile something with torch; its last word is one that they hold.
COMPILING = "torch compile"
_COMPILES = re.compile(
    rb"torch\.compile\b|\bimport\b[^\n#]*\bcompile\b|(?<!\bre)(?<!\bregex)\.compile\("
)


def _may_compile(text: bytes, _: bytes) -> bool:
    return b"torch" in text and _COMPILES.search(text) is not None


# Answers a question by what it begins with; what follows is a word.
PATTERNS: dict[bytes, Callable[[bytes, bytes], bool]] = {
    LOOKING_UP: may_build,
    COMPILING.removesuffix("compile").encode(): _may_compile,
}


def pattern_of(asked: bytes) -> bytes:
    """Return the beginning of a question in `PATTERNS`; empty for a search of a word."""
    return next(filter(asked.startswith, PATTERNS), b"")
