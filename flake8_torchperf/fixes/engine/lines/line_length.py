"""Reads the line length that a project states for its formatter or its linter."""

from __future__ import annotations

import configparser
import os
from typing import TYPE_CHECKING, Any

from flake8_torchperf.configuration import NAME, tables
from flake8_torchperf.options import OptionError
from flake8_torchperf.project.file_index import upwards
from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    from collections.abc import Mapping

_RUFF = (".ruff.toml", "ruff.toml")
_INI = ("setup.cfg", "tox.ini", ".flake8")
_SECTIONS = ("flake8", "pycodestyle", "pep8")
# The line length of a `[tool.black]` that states none.
_BLACK = 88


def line_length(path: str) -> int | None:
    """Return the line length stated for a file; None if nothing states it.

    The nearest folder decides, up to that of the repository: ruff's setting, then black's, then
    that of flake8 or pycodestyle.
    """
    for folder in upwards(os.path.dirname(os.path.abspath(path))):
        found = _of_formatters(folder) or _of_linters(folder)
        if found:
            return found
        if os.path.exists(os.path.join(folder, ".git")):
            break
    return None


def _of_formatters(folder: str) -> int | None:
    for name in _RUFF:
        found = _number(_toml(os.path.join(folder, name)), "line-length")
        if found:
            return found
    tool = _table(_toml(os.path.join(folder, NAME)), "tool")
    found = _number(_table(tool, "ruff"), "line-length")
    if found or "black" not in tool:
        return found
    return _number(_table(tool, "black"), "line-length") or _BLACK


def _of_linters(folder: str) -> int | None:
    for name in _INI:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(_read(os.path.join(folder, name)).decode("utf-8-sig"))
        except (OSError, UnicodeDecodeError, configparser.Error):
            continue  # missing, or reported by flake8
        for section in _SECTIONS:
            told = parser.get(section, "max-line-length", fallback="").strip()
            told = told or parser.get(section, "max_line_length", fallback="").strip()
            if told.isdecimal() and int(told) > 0:
                return int(told)
    return None


def _toml(path: str) -> Mapping[str, Any]:
    try:
        return tables(path, _read(path))
    except (OSError, OptionError):
        return {}  # missing, or reported by those who use it


def _read(path: str) -> bytes:
    refuse_special(path)
    with open(path, "rb") as file:
        return file.read()


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _number(table: Mapping[str, Any], name: str) -> int | None:
    found = table.get(name)
    return found if type(found) is int and found > 0 else None
