"""The table of conventions: what a name implies if nothing else decides, each row with evidence.

Rows are data (`conventions.toml`). A team's own rows are in a file of that name in its folder of
rule pages.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

FILE = "conventions.toml"
TABLE = Path(__file__).with_name(FILE)
# The subjects of rows: the name of a function; of its class or a base class; of its module; of a
# package that contains the module; a module imported there; a decorator; a name in the head of a
# loop; the flag that a branch tests; a variable.
SUBJECTS = (
    "function", "class", "module", "package", "import", "decorator", "loop", "flag", "variable",
)  # fmt: skip
# The effects of rows, each with the subjects that it applies to.
EFFECTS = {
    "cold": ("function", "class", "module", "package", "import", "decorator"),
    "cold-if-compiled": ("module", "package"),
    "cold-outside-loops": ("function", "class", "module", "package"),
    "hot": ("function", "class", "package", "loop"),
    "branch-cold": ("flag",),
    "on-host": ("variable",),
    "host-tensors": ("variable",),
}
FIELDS = ("id", "applies_to", "pattern", "effect", "reason", "evidence", "example")
_ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_WILD = re.compile(r"(?:\\w|\.|\[[^\]]*\])(?:[*+]|\{\d*,\d*\})")
LEAST_EVIDENCE = 2


class ConventionError(ValueError):
    """A row that can't be used. The text is one line: file, row, what is wrong."""


@dataclass(frozen=True, slots=True)
class Convention:
    """One row: names that match ``pattern`` have ``effect``; ``example`` is one of them."""

    id: str
    applies_to: str
    pattern: str
    effect: str
    reason: str
    evidence: tuple[str, ...]
    example: str


@dataclass(eq=False)
class Conventions:
    """All rows, looked up by subject; the first that matches counts."""

    rows: tuple[Convention, ...]
    _known: dict[tuple[str, str], Convention | None] = field(default_factory=dict)
    _first: dict[tuple[str, ...], Convention | None] = field(default_factory=dict)
    _patterns: dict[str, list[tuple[re.Pattern[str], Convention]]] = field(default_factory=dict)

    def without(self, ids: Collection[str]) -> Conventions:
        """Return the table without the rows of these ids."""
        return Conventions(tuple(row for row in self.rows if row.id not in ids))

    def row(self, subject: str, name: str) -> Convention | None:
        """Return the row for this name, leading underscores left out."""
        key = (subject, name)
        if key not in self._known:
            self._known[key] = self._find(subject, name)
        return self._known[key]

    def _find(self, subject: str, name: str) -> Convention | None:
        patterns = self._patterns.get(subject)
        if patterns is None:
            rows = [row for row in self.rows if row.applies_to == subject]
            patterns = self._patterns[subject] = [(re.compile(row.pattern), row) for row in rows]
        plain = name if name.startswith("__") else name.lstrip("_")
        for pattern, row in patterns:
            if pattern.search(plain):
                return row
        return None

    def has_rows(self, subject: str) -> bool:
        """True if there are rows on a subject."""
        return any(row.applies_to == subject for row in self.rows)

    def effect_of(self, row: str) -> str:
        """Return the effect of the row with this id; "" if there is none."""
        return next((one.effect for one in self.rows if one.id == row), "")

    def first(self, subject: str, names: tuple[str, ...]) -> Convention | None:
        """Return the row for the first of these names that has one."""
        key = (subject, *names)
        if key not in self._first:
            rows = (self.row(subject, name) for name in names)
            self._first[key] = next((row for row in rows if row is not None), None)
        return self._first[key]

    def says(self, subject: str, name: str, effect: str) -> bool:
        """True if the row for this name gives it this effect."""
        found = self.row(subject, name)
        return found is not None and found.effect == effect


@cache
def load_conventions(folders: tuple[Path, ...] = ()) -> Conventions:
    """Return our own rows, and before them those of a team's folders. Raises `ConventionError`."""
    named = dict.fromkeys(folder.resolve() for folder in folders)  # one may be given twice
    files = [folder / FILE for folder in named if os.path.lexists(folder / FILE)]
    read = {file: read_conventions(file) for file in (*files, TABLE)}
    _check_unique(read)
    return Conventions(tuple(row for rows in read.values() for row in rows))


def _check_unique(read: Mapping[Path, Sequence[Convention]]) -> None:
    """Reject the second of two rows with one id; our own rows come first."""
    seen: dict[str, Path] = {}
    for file in (TABLE, *(one for one in read if one != TABLE)):
        for row in read[file]:
            if row.id in seen:
                taken = "above" if seen[row.id] == file else f"in {seen[row.id]}"
                raise ConventionError(
                    f"{file}: row {row.id!r}: the id is taken {taken}; choose another"
                )
            seen[row.id] = file


def read_conventions(file: Path) -> list[Convention]:
    """Return the rows of a file. Raises `ConventionError` for the first that can't be used."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        refuse_special(file)
        # Editors on Windows begin a file with a mark.
        table = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise ConventionError(f"{file}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise ConventionError(f"{file}: cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConventionError(f"{file}: no TOML: {_on_one_line(error)}") from None
    except RecursionError:
        raise ConventionError(f"{file}: no TOML: values are nested too deeply") from None
    unknown = sorted(set(table) - {"convention"})
    if unknown:
        raise ConventionError(f"{file}: {unknown[0]!r} is no table; write [[convention]] rows")
    rows = table.get("convention", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConventionError(f"{file}: convention is no list of rows; write [[convention]]")
    return [_read(row, number, file) for number, row in enumerate(rows, 1)]


def _read(row: dict[str, Any], number: int, file: Path) -> Convention:
    name = row.get("id")
    where = f"{file}: row {name!r}" if isinstance(name, str) else f"{file}: row {number}"
    # Our own rows are trusted to be whole: the tests check them.
    problem = "" if file == TABLE else _problem(row)
    if problem:
        raise ConventionError(f"{where}: {problem}")
    values = {field: row[field] for field in FIELDS}
    return Convention(**{**values, "evidence": tuple(row["evidence"])})


def _problem(row: dict[str, Any]) -> str:
    """Return what is wrong with a row; "" if nothing is."""
    for field_ in FIELDS:
        if field_ not in row:
            return f"{field_} is missing"
        if field_ != "evidence" and not (isinstance(row[field_], str) and row[field_].strip()):
            return f"{field_} is no text"
    unknown = sorted(set(row) - set(FIELDS))
    if unknown:
        return f"{unknown[0]!r} is none of {', '.join(FIELDS)}"
    if not _ID.fullmatch(row["id"]):
        return "id is no words in small letters with hyphens between them"
    if row["effect"] not in EFFECTS:
        return f"effect {row['effect']!r} is none of {', '.join(EFFECTS)}"
    if row["applies_to"] not in SUBJECTS:
        return f"applies_to {row['applies_to']!r} is none of {', '.join(SUBJECTS)}"
    if row["applies_to"] not in EFFECTS[row["effect"]]:
        return f"effect {row['effect']!r} is of {' or '.join(EFFECTS[row['effect']])}"
    evidence = row["evidence"]
    if not isinstance(evidence, list) or not all(isinstance(one, str) for one in evidence):
        return "evidence is no list of texts"
    if len({one.partition(":")[0] for one in evidence}) < LEAST_EVIDENCE:
        return "evidence names fewer than two projects; write 'owner/name: where'"
    return problem_with(row["pattern"]) or _unlike(row)


def _unlike(row: dict[str, Any]) -> str:
    if re.search(row["pattern"], row["example"]):
        return ""
    return f"example {row['example']!r} does not match the pattern"


def problem_with(pattern: str) -> str:
    """Return why a pattern can't be used, or "": it must say how a name begins or ends."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        return f"pattern {pattern!r}: {_on_one_line(error)}"
    except RecursionError:
        return "pattern is nested too deeply"
    for part in _alternatives(pattern):
        begins, ends = part.startswith("^"), part.endswith("$") and not part.endswith(r"\$")
        if not (begins or ends):
            return f"pattern {part!r} is not anchored; begin with ^ or end with $"
        if len(_WILD.findall(part)) > (begins and ends):
            return f"pattern {part!r} has a wildcard on both sides; name one side"
    return ""


def _on_one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _alternatives(pattern: str) -> list[str]:
    """Return the alternatives of a pattern, split at the bars outside all brackets."""
    parts, depth, skip = [""], 0, False
    for character in pattern:
        if not skip and character in "([":
            depth += 1
        elif not skip and character in ")]":
            depth -= 1
        if character == "|" and not depth and not skip:
            parts.append("")
        else:
            parts[-1] += character
        skip = character == "\\" and not skip
    return parts
