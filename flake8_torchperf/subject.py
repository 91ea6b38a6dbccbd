"""What a text must say for us to look at it: one of two words.

Enters text; leaves a yes or no. Must stay free to import: it decides that nothing else is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# A file that says neither has no findings: `Tensor` may come from a module beside it.
WORDS = ("torch", "Tensor")


def concerns(lines: Iterable[str]) -> bool:
    """Does a file with these lines say one of the words?"""
    text = "".join(lines)
    return any(word in text for word in WORDS)
