"""The dotted paths in the sections of a project's files of settings, as of the classes to make."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# A line with a key, and one whose value is a dotted path, in quotes or not.
_KEY = re.compile(r"(\s*(?:- )?)([\w.-]+)\s*:(.*)")
_PATH = re.compile(r"\s*([\"']?)([A-Za-z_]\w*(?:\.\w+)+)\1\s*(?:#.*)?")


def paths_in(texts: Iterable[str], section: str) -> frozenset[str]:
    """Return the dotted paths that stand straight in a section of texts in YAML.

    Without such a section, those that stand in none. "" is for all sections.
    """
    found = [pair for text in texts for pair in _paths(text)]
    if not section:
        return frozenset(path for _, path in found)
    inside = frozenset(path for around, path in found if around == section)
    return inside or frozenset(path for around, path in found if not around)


@lru_cache(maxsize=256)
def _paths(text: str) -> tuple[tuple[str, str], ...]:
    """Return the dotted paths of a text, each with the section that it stands in."""
    found: list[tuple[str, str]] = []
    around: list[tuple[int, str]] = []
    for line in text.splitlines():
        matched = _KEY.fullmatch(line)
        if matched is None:
            continue
        indent, key, value = len(matched[1]), matched[2], matched[3]
        while around and around[-1][0] >= indent:
            around.pop()
        path = _PATH.fullmatch(value)
        if path is not None:
            found.append((around[-1][1] if around else "", path[2]))
        elif not value.strip() or value.strip().startswith("#"):
            around.append((indent, key))
    return tuple(found)
