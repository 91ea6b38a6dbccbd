"""ruff's configuration: ruff removes comments with codes that its list ``external`` lacks.

Its rule RUF102 takes ``# noqa: TPF101 - why`` for a mistake, and ``ruff check --fix`` deletes it
with its reason.
"""

from __future__ import annotations

import copy
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flake8_torchperf.cli.codes import FAMILY
from flake8_torchperf.cli.noqa.toml_lists import with_item
from flake8_torchperf.configuration import NAME, tables
from flake8_torchperf.options import OptionError
from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    from collections.abc import Mapping

# In the order in which ruff looks for them in a folder; it reads the first alone.
_FILES = (".ruff.toml", "ruff.toml", NAME)
# ruff's rule that removes codes it does not know.
_REMOVING = "RUF102"
_EXTERNAL = "external"
# A comment with one of our codes, in a file's bytes.
_OURS = re.compile(rb"#\s*noqa:[^\n#]*\bTPF\d", re.IGNORECASE)


@dataclass(frozen=True)
class RuffFile:
    """A file with ruff's settings: the settings, and the name of their table ("" in ruff.toml)."""

    path: str
    settings: Mapping[str, Any]
    table: str

    @property
    def lint(self) -> Mapping[str, Any]:
        """The settings of the linter; older files have them in the outermost table."""
        lint = self.settings.get("lint")
        return {**self.settings, **lint} if isinstance(lint, dict) else self.settings

    @property
    def knows_ours(self) -> bool:
        """True if the list ``external`` holds all our codes."""
        return any(FAMILY.startswith(word) for word in self._words(_EXTERNAL))

    @property
    def removes_ours(self) -> bool:
        """True if ruff is set to remove our codes, as far as this file alone can tell."""
        chosen = self._words("select") + self._words("extend-select")
        left = self._words("ignore") + self._words("extend-ignore")
        removing = _exactness(chosen) > _exactness(left)
        return removing and not self.knows_ours and "extend" not in self.settings

    @property
    def lint_table(self) -> str:
        """The name of the table that holds the list ``external``."""
        return f"{self.table}.lint" if self.table else "lint"

    def _words(self, key: str) -> list[str]:
        words = self.lint.get(key, ())
        return [str(word) for word in words] if isinstance(words, list) else []

    def with_external(self, text: str) -> str:
        """Return the file's text with our codes in ``external``. Raises `OptionError`."""
        before = tables(self.path, text.encode())
        wanted = copy.deepcopy(dict(before))
        inner = wanted
        for name in self.lint_table.split("."):
            inner = inner.setdefault(name, {})
        inner[_EXTERNAL] = [FAMILY, *inner.get(_EXTERNAL, ())]
        item = f'"{FAMILY}"'
        for table, key in ((self.lint_table, _EXTERNAL), (self.table, f"lint.{_EXTERNAL}")):
            longer = with_item(text, table, key, item)
            try:
                if tables(self.path, longer.encode()) == wanted:
                    return longer
            except OptionError:
                continue  # the table is written in the other way
        raise OptionError(f"{self.path}: add {item} to {_EXTERNAL} in [{self.lint_table}] by hand")


def _exactness(words: list[str]) -> int:
    """Return how exactly words name the rule that removes unknown codes; 0 if they do not."""
    exact = [len(one) for one in words if _REMOVING.startswith(one)]
    return max(exact, default=int("ALL" in words))


def ruff_file(folder: str) -> RuffFile | None:
    """Return the file in a folder from which ruff takes its settings, if it can be read."""
    for name in _FILES:
        path = os.path.join(folder, name)
        try:
            refuse_special(path)
            with open(path, "rb") as file:
                settings: Any = tables(path, file.read())
        except (OSError, OptionError):
            continue  # missing, or reported by those who use it
        if name != NAME:
            return RuffFile(path, settings, "")
        tool = settings.get("tool", {})
        settings = tool.get("ruff") if isinstance(tool, dict) else None
        if isinstance(settings, dict):
            return RuffFile(path, settings, "tool.ruff")
    return None


def warning(name: str) -> str:
    """Return a line if ruff removes our comments from a Python file, otherwise ""."""
    folder = os.path.dirname(os.path.abspath(name))
    while (found := ruff_file(folder)) is None:
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above
    if not found.removes_ours:
        return ""
    path = os.path.relpath(found.path)
    return (
        f"{path}: ruff check --fix deletes `# noqa: {FAMILY}...`: "
        f'set {_EXTERNAL} = ["{FAMILY}"] in [{found.lint_table}], as torchperf init does'
    )


def has_our_comment(data: bytes) -> bool:
    """True if a file's bytes may hold a ``# noqa`` with one of our codes."""
    return b"TPF" in data and _OURS.search(data) is not None
