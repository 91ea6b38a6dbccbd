"""The findings that a table `[tool.torchperf]` chooses: by code, by group, by file.

A code may be cut short, as in ruff and flake8 ("TPF1"); a group is the name of a family.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from flake8_torchperf.reserved import RESERVED

# The names of the families, each with the beginning of its codes.
GROUPS: Mapping[str, str] = {
    "reads": "TPF1",
    "loops": "TPF2",
    "branches": "TPF3",
    "shapes": "TPF4",
    "copies": "TPF5",
    "compiled": "TPF6",
}
ALL = "TPF"


def beginning(word: str) -> str:
    """Return the beginning of the codes that a word of a setting names."""
    return GROUPS.get(word.strip().lower(), word.strip().upper())


@dataclass(frozen=True)
class Chosen:
    """Codes and files of a table.

    ``select`` and ``ignore`` hold beginnings of codes; of two that fit a code, the longer decides,
    as in flake8. The linter's own mistakes are told whatever is selected. ``exclude`` and
    ``per_file`` hold globs: with a slash they are absolute, without one they fit a file or a folder
    of that name anywhere.
    """

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def tells(self, code: str, path: str) -> bool:
        """True if a finding of this code in this file is to be told."""
        wanted = _longest(code, (*(self.select or (ALL,)), *self.extend_select))
        if code in RESERVED:
            wanted = max(wanted, len(ALL))
        if wanted == 0 or _longest(code, self.ignore) >= wanted:
            return False
        return not any(
            _longest(code, codes) > 0 and fits(path, glob) for glob, codes in self.per_file
        )

    def leaves_out(self, path: str) -> bool:
        """True for a file in which nothing is to be told."""
        return any(fits(path, glob) for glob in self.exclude)


def _longest(code: str, words: tuple[str, ...]) -> int:
    """Return the length of the longest word with which a code begins; 0 if there is none."""
    return max((len(word) for word in words if code.startswith(word)), default=0)


def fits(path: str, glob: str) -> bool:
    """True if a glob fits a file or a folder above it."""
    whole = os.path.abspath(path).replace(os.sep, "/")
    parts = whole.split("/")
    if "/" not in glob:
        return any(fnmatchcase(part, glob) for part in parts if part)
    ends = range(len(parts), 0, -1)
    return any(fnmatchcase("/".join(parts[:end]), glob) for end in ends)
