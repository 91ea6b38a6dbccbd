"""The names that a project looks up while it runs, or leaves to other projects."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from flake8_torchperf.project.answers import CLASS_FOUND, LOOKED_UP, PART
from flake8_torchperf.project.texts.settings_files import (
    ALL_NOTEBOOKS,
    ALL_PACKAGING,
    ALL_SETTINGS,
    read_notebooks,
    read_packaging,
    read_settings,
)
from flake8_torchperf.project.texts.settings_paths import paths_in

if TYPE_CHECKING:
    from flake8_torchperf.project.resolver import Project


def is_class_found(project: Project, name: str, path: str, *, closed: bool = False) -> bool:
    """True if a class may be found by its name while the project runs.

    As for `is_looked_up`; also if a file of settings says its name, or a folder of its module is
    searched.
    """
    if _is_entry_point(project, name, path, closed=closed):
        return True
    texts = project.program_texts("_", closed=closed)
    if texts is None:
        return False
    module = _dotted_in(texts.folder, path)
    found = texts.is_class_found(name, module)
    project.note(f"{texts.folder}{PART}{CLASS_FOUND}{name}{PART}{module}", "yes" if found else "")
    if found or project.is_in_settings(name):
        return True
    return is_looked_up(project, name, path, closed=closed)


def named_in_settings(project: Project, section: str) -> frozenset[str]:
    """Return the dotted paths that `paths_in` finds in a section of a project's settings."""
    texts = project.program_texts("_")
    if texts is None:
        return frozenset()
    settings = read_settings(texts.folder)
    project.note(f"{texts.folder}{ALL_SETTINGS}", settings.content)
    return paths_in(settings.texts, section)


def is_looked_up(project: Project, name: str, path: str, *, closed: bool = False) -> bool:
    """True if a function, a class or, with no path, a method may be run by its name.

    A text, a file of settings or a notebook of the project names it, its module is searched, or it
    is an entry point of a package.
    False in a project that holds no program, or, unless it counts as ``closed``, does not train.
    """
    if _is_entry_point(project, name, path, closed=closed):
        return True
    texts = project.program_texts("_", closed=closed)
    if texts is None:
        return False
    module = _dotted_in(texts.folder, path)
    found = texts.is_looked_up(name, module)
    project.note(f"{texts.folder}{PART}{LOOKED_UP}{name}{PART}{module}", "yes" if found else "")
    project.note(f"{texts.folder}{ALL_SETTINGS}", read_settings(texts.folder).content)
    project.note(f"{texts.folder}{ALL_NOTEBOOKS}", read_notebooks(texts.folder).content)
    return found or name in project.said.found_by


def _is_entry_point(project: Project, name: str, path: str, *, closed: bool) -> bool:
    """True if a package is installed with ``module:name``; for a method, ``module:Class.name``."""
    texts = project.program_texts(name, closed=closed)
    if texts is None:
        return False
    packaging = read_packaging(texts.folder)
    project.note(f"{texts.folder}{ALL_PACKAGING}", packaging.content)
    module = _dotted_in(texts.folder, path)
    home = re.escape(module.removesuffix(".__init__").rpartition(".")[2])
    before = rf"\b{home}:" if module else r":\w+\."
    entry = re.compile(rf"{before}{re.escape(name)}\b")
    return any(map(entry.search, packaging.that_say(name)))


def is_entered(project: Project, name: str, *, closed: bool = False) -> bool:
    """True if code that is not in a project may run something of this name.

    That code is another project's, or the program's where the project holds none.
    """
    texts = project.program_texts(name, closed=closed)
    return texts is None or not project.starts(texts)


def _dotted_in(folder: str, path: str) -> str:
    return os.path.splitext(path.removeprefix(folder))[0].replace(os.sep, ".")
