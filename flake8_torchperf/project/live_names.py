"""The names that the live code of a project makes, looks up, or leaves to other projects."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flake8_torchperf.project.answers import CLASS_MADE, IS_PROGRAM, LOOKED_UP, PART
from flake8_torchperf.project.settings_files import (
    ALL_NOTEBOOKS,
    ALL_SETTINGS,
    read_notebooks,
    read_settings,
)

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import ClassInfo, ModuleMap
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.project.text_search import TextSearch


def is_made(project: Project, owner: ClassInfo) -> bool:
    """True if a project may make objects of a class: it names the class in live code.

    The public classes of a distribution are named elsewhere, and those of a package that is not
    searched whole, or that lies in no marked project, may be.
    """
    texts = project.program_texts(owner.name)
    if texts is None:
        return True
    name, module = owner.name, _place_in(texts.folder, owner.module)
    found = texts.is_made(name, module)
    project.note(f"{texts.folder}{PART}{CLASS_MADE}{name}{PART}{module}", "yes" if found else "")
    project.note(f"{texts.folder}{ALL_SETTINGS}", read_settings(texts.folder).content)
    return found or _names_it(project, name, texts)


def is_looked_up(project: Project, name: str, path: str) -> bool:
    """True if a function, a class or, with no path, a method may be run by its name.

    A text, a file of settings or a notebook of the project names it, or its module is searched.
    False in a project that holds no program.
    """
    texts = project.program_texts("_")
    if texts is None:
        return False
    module = _dotted_in(texts.folder, path)
    found = texts.is_looked_up(name, module)
    project.note(f"{texts.folder}{PART}{LOOKED_UP}{name}{PART}{module}", "yes" if found else "")
    project.note(f"{texts.folder}{ALL_SETTINGS}", read_settings(texts.folder).content)
    project.note(f"{texts.folder}{ALL_NOTEBOOKS}", read_notebooks(texts.folder).content)
    return found or name in project.said.found_by


def is_entered(project: Project, name: str) -> bool:
    """True if code that is not in a project may run something of this name.

    That code is another project's, or the program's where the project holds none.
    """
    texts = project.program_texts(name)
    if texts is None:
        return True
    project.note(f"{texts.folder}{PART}{IS_PROGRAM}", "yes" if texts.is_started else "")
    return not texts.is_started


def _names_it(project: Project, name: str, texts: TextSearch) -> bool:
    """True if the linted text, which may differ from its file, names a class in live code."""
    said = project.said.by_class.items()
    holders = [holder for holder, words in said if name in words and holder != name]
    here = _place_in(texts.folder, project.linted)
    return any(not one or texts.is_made(one, here) for one in holders)


def _place_in(folder: str, module: ModuleMap) -> str:
    """Return the dotted path of a module below a folder."""
    return _dotted_in(folder, module.place)


def _dotted_in(folder: str, path: str) -> str:
    return os.path.splitext(path.removeprefix(folder))[0].replace(os.sep, ".")
