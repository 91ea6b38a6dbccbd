"""Whole modules of a project, parsed once and never imported."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from flake8_torchperf.project.answers import BASES, PART, STORED, answer_of_facts, record
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.files import NO_PYTHON, decoded, read_bytes, stamp
from flake8_torchperf.project.module_index import forget, read_module
from flake8_torchperf.project.stores.kept import Kept
from flake8_torchperf.project.stores.module_facts import once_per_module

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.project.resolver import Project

Fact = TypeVar("Fact")

# The bytes of text whose trees stay in memory from one linted file to the next. A tree takes 27
# times its text: 22 MB.
PARSED = 800_000
_MODULES: Kept[tuple[str, int, int], ModuleMap] = Kept(PARSED, forget)


def whole_module(path: str) -> ModuleMap:
    """Return the module in a file; an empty one if the file is not Python."""
    modified, size = stamp(path)
    return _MODULES.made((path, modified, size), size, lambda: _read(path))


def noted_module(path: str, project: Project) -> ModuleMap:
    """Return the linted module, or that in a file of its project, all of which findings depend on.

    The linted text may differ from its file.
    """
    if path == project.linted_path:
        return project.linted
    project.note_whole(path)
    found = whole_module(path)
    record(found.checked)
    return found


def asked_of(
    path: str, part: str, read: Callable[[ModuleMap], tuple[Fact, ...]], project: Project
) -> tuple[Fact, ...]:
    """Return facts about a module, which is not noted whole: findings depend on these alone."""
    module = whole_module(path)
    record(module.checked)
    found = read(module)
    project.note_content(path)
    project.note(f"{path}{PART}{part}", answer_of_facts(found))
    return found


def bases_of(module: ModuleMap, project: Project) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the classes of a module, each with the last names of its bases."""
    if module.parsed is not None:
        return bases_in(module)
    return asked_of(module.place, BASES, bases_in, project)


def _read(path: str) -> ModuleMap:
    data = read_bytes(path)
    text = ""
    tree = ast.Module([], [])
    try:
        text = decoded(data if isinstance(data, bytes) else b"")
        tree = ast.parse(text)
    except NO_PYTHON:
        pass  # flake8 reports the error when it lints that file
    return read_module(tree, (text,), Path(path))


def storing_in(module: ModuleMap, attribute: str) -> tuple[str, ...]:
    """Return the qualified names of the functions that write an attribute of some object."""
    return tuple(
        info.qualname
        for info in module.defined
        if any(
            one.attr == attribute and isinstance(one.ctx, ast.Store)
            for one in info.nodes.of(ast.Attribute)
        )
    )


def storing(module: ModuleMap, attribute: str, project: Project) -> list[FunctionInfo]:
    """Return the functions of a module that write an attribute of some object."""
    if module.parsed is not None:
        return _named(module, storing_in(module, attribute))
    names = asked_of(
        module.place, f"{STORED}{attribute}", lambda one: storing_in(one, attribute), project
    )
    lines = [one.tree.lineno for one in _named(whole_module(module.place), names)]
    found = [one for one in (function_at(module, line) for line in lines) if one is not None]
    if [one.tree.lineno for one in found] == lines:
        return found
    return _named(noted_module(module.place, project), names)  # one that another replaces


def _named(module: ModuleMap, names: Collection[str]) -> list[FunctionInfo]:
    return [info for info in module.defined if info.qualname in names]


@once_per_module
def bases_in(module: ModuleMap) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the classes at module level, each with the last names of its bases."""
    return tuple(
        (one.name, tuple(base.rpartition(".")[2] for base in one.bases))
        for one in module.classes.values()
    )
