"""The files of settings below a project's folder, which give options their values.

These are YAML and JSON files, and shell scripts with the command lines and variables in them.
Notebooks, documents and what says how packages are installed are read in the same way, as texts
that may name the project's functions.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from flake8_torchperf.digest import digest_of_files
from flake8_torchperf.project.file_index import files_below
from flake8_torchperf.project.files import TRUSTED, read_file

# Ends the path of a folder in a query for all files of settings below it.
ALL_SETTINGS = "*settings"
ENDINGS = (".yaml", ".yml", ".sh")
# If the files of settings hold more bytes than this, they are data.
MAX_SETTINGS = 4_000_000
# JSON holds data more often: a file of more bytes than this is no file of settings.
JSON = (".json",)
MAX_JSON = 64_000
# Ends the path of a folder in a query for all notebooks below it.
ALL_NOTEBOOKS = "*notebooks"
# Notebooks hold pictures, too.
MAX_NOTEBOOKS = 32_000_000
# Ends the path of a folder in a query for all documents below it.
ALL_DOCUMENTS = "*documents"
DOCUMENTS = (".md", ".rst")
# More than the documents of torch hold.
MAX_DOCUMENTS = 16_000_000
# Ends the path of a folder in a query for the files below it that say how packages are installed.
ALL_PACKAGING = "*packaging"
INSTALLED_BY = ("pyproject.toml", "setup.cfg")
MAX_PACKAGING = 1_000_000


class Settings(NamedTuple):
    """The texts of the files of settings below a folder, and a digest of them all."""

    folder: str
    texts: tuple[str, ...]
    content: str
    asked: float

    def that_say(self, *words: str) -> list[str]:
        """Return the texts that hold one of some words, even as part of a longer one."""
        return [text for text in self.texts if any(word in text for word in words)]


# The files read last, by their endings.
_LAST: dict[tuple[str, ...], Settings] = {}


def read_settings(folder: str) -> Settings:
    """Return the files of settings below a folder; none if they are too large."""
    plain = _texts_below(folder, ENDINGS, MAX_SETTINGS)
    json = _texts_below(folder, JSON, MAX_SETTINGS, MAX_JSON)
    return Settings(folder, plain.texts + json.texts, plain.content + json.content, plain.asked)


def read_notebooks(folder: str) -> Settings:
    """Return the notebooks below a folder; none if they are too large."""
    return _texts_below(folder, (".ipynb",), MAX_NOTEBOOKS)


def read_documents(folder: str) -> Settings:
    """Return the documents below a folder; none if they are too large."""
    return _texts_below(folder, DOCUMENTS, MAX_DOCUMENTS)


def read_packaging(folder: str) -> Settings:
    """Return the files below a folder that say how packages are installed; none if too large."""
    return _texts_below(folder, INSTALLED_BY, MAX_PACKAGING)


def _texts_below(
    folder: str, endings: tuple[str, ...], most: int, largest: int | None = None
) -> Settings:
    now = time.monotonic()
    last = _LAST.get(endings)
    if last is not None and last.folder == folder and now - last.asked < TRUSTED:
        return last
    held = {path: read_file(path) for path in files_below(folder, endings, most, largest)}
    content = digest_of_files(held, lambda path: held[path][1])
    texts = tuple(d.decode("utf-8", "replace") for d, _ in held.values() if d is not None)
    _LAST[endings] = Settings(folder, texts, content, time.monotonic())
    return _LAST[endings]


# How to read the texts that show the use of modules, by the endings of queries for all of them.
SHOWING = {
    ALL_SETTINGS: read_settings,
    ALL_NOTEBOOKS: read_notebooks,
    ALL_DOCUMENTS: read_documents,
}
# And how to read all texts beside the modules.
BESIDE_MODULES = {**SHOWING, ALL_PACKAGING: read_packaging}
