"""Where the imports of a project start, from its folders and from what its modules import."""

from __future__ import annotations

import ast
import os
import re
import sys
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.project.file_index import (
    INIT,
    MAX_PACKAGE_DEPTH,
    SITE_FOLDERS,
    FileIndex,
    upwards,
)
from flake8_torchperf.project.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# The words of modules that handle tensors: one that never says torch may import `Tensor` from a
# module of its own package.
TORCH_WORDS = ("torch", "Tensor")
# The files and folders that mark the folder of a project.
MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
# Between the folder of a module's imports and a name, in a query for where its imports start.
STARTS = "*starts "
# Ends a path in a query for a module or a folder of modules at that path.
EXISTS = "*exists"
# Ends a path in a query for a folder at that path.
IS_FOLDER = "*folder"
YES, NO = "yes", ""

# Begins with a literal: a text is searched ten times as fast for one as for the start of a line.
_RELATIVE = re.compile(r"from[ \t]+(\.\.+)(\w*)")


class Place(NamedTuple):
    """The folder that a module's imports start from, and the names of the packages below it.

    ``checked`` holds the queries that decided it, as a cache records them.
    """

    folder: str
    packages: tuple[str, ...]
    checked: dict[str, str]


def place_of(folder: str, text: str) -> Place:
    """Return the place of a module with this text in a folder.

    The folder of a module is part of a package if it holds an ``__init__.py``, or if the module
    imports another module or folder below it by that package's name or by relative dots.
    """
    above, packages = _climbed(folder, ())
    checked: dict[str, str] = {}
    index = FileIndex()
    relative = _relative_top(folder, text, len(packages), index, checked)
    if relative:
        above, packages = _climbed(*_up(above, packages, relative - len(packages)))
    named = _named_above(above, text)
    for up, name in named.items() if text else ():
        if any(_checked(target, index, checked) for target in _targets(up, name, text)):
            depth = len(os.path.relpath(above, up).split(os.sep))
            above, packages = _climbed(*_up(above, packages, depth))
            break
    return Place(above, packages, checked)


def _climbed(folder: str, packages: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the first folder at or above this one that holds no ``__init__.py``.

    The top of a checkout is none of the packages, whatever it holds.
    """
    for _ in range(MAX_PACKAGE_DEPTH):
        if not is_package(folder) or is_checkout(folder):
            break
        folder, packages = _up(folder, packages, 1)
    return folder, packages


def _up(folder: str, packages: tuple[str, ...], steps: int) -> tuple[str, tuple[str, ...]]:
    for _ in range(steps):
        folder, name = os.path.split(folder)
        packages = (name, *packages)
    return folder, packages


def _relative_top(
    folder: str, text: str, depth: int, index: FileIndex, checked: dict[str, str]
) -> int:
    """Return how many folders the module's relative imports take for packages, if above depth."""
    most = 0
    for found in _RELATIVE.finditer(text) if text else ():
        level = len(found[1])
        if level <= max(depth, most) or level > MAX_PACKAGE_DEPTH:
            continue
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()]
        if before.strip(" \t"):
            continue
        base = folder
        for _ in range(level - 1):
            base = os.path.dirname(base)
        between = folder
        inside = True
        for _ in range(level):
            inside = inside and not ends_project(between)
            between = os.path.dirname(between)
        if inside and (not found[2] or _checked(os.path.join(base, found[2]), index, checked)):
            most = level
    return most


def _named_above(folder: str, text: str) -> dict[str, str]:
    """Return the folders that a module may name as its packages, nearest first, with their parents.

    The result maps the parent of each to its name.
    """
    named: dict[str, str] = {}
    for _ in range(MAX_PACKAGE_DEPTH):
        if ends_project(folder):
            break
        above, name = os.path.split(folder)
        if name in text and name.isidentifier() and name not in sys.stdlib_module_names:
            named[above] = name
        folder = above
    return named


def _targets(folder: str, name: str, text: str) -> Iterator[str]:
    """Yield the paths, without suffix, of what a module imports from a package of this name."""
    for found in _imports_of(name).finditer(f"\n{text}"):
        below = found[1] or found[3] or ""
        path = os.path.join(folder, name, *below.split(".")[1:])
        if below:
            yield path
        elif found[2]:
            yield os.path.join(path, found[2])


@lru_cache(maxsize=256)
def _imports_of(name: str) -> re.Pattern[str]:
    # From the newline before it, because a search for the start of a line is slow.
    return re.compile(
        rf"\n[ \t]*(?:from[ \t]+{name}((?:\.\w+)*)[ \t]+import[ \t]+\(?\s*(\w+)"
        rf"|import[ \t]+{name}((?:\.\w+)+))"
    )


def _checked(path: str, index: FileIndex, checked: dict[str, str]) -> bool:
    answer = checked[f"{path}{EXISTS}"] = YES if index.holds_module(path) else NO
    return bool(answer)


def exists(path: str) -> str:
    """Return the answer to a query for a module at a path."""
    return YES if FileIndex().holds_module(path) else NO


def is_folder(path: str) -> str:
    """Return the answer to a query for a folder at a path."""
    return YES if os.path.isdir(path) else NO


def is_package(folder: str) -> bool:
    """True if a folder holds an ``__init__.py``."""
    return os.path.isfile(os.path.join(folder, INIT))


def is_marked(folder: str) -> bool:
    """True if a folder holds one of `MARKERS`."""
    return any(os.path.exists(os.path.join(folder, name)) for name in MARKERS)


def is_checkout(folder: str) -> bool:
    """True for the top of a git checkout, of which `.git` may be a folder or a file."""
    return os.path.exists(os.path.join(folder, ".git"))


def ends_project(folder: str) -> bool:
    """True for a folder that is no package below a project's folder, but that one or above it."""
    if _is_shared(folder) or is_checkout(folder):
        return True
    return is_marked(folder) and not is_package(folder)


# The files that say how a project's package is installed, each with the text that shows it.
PACKAGING = {
    "pyproject.toml": re.compile(rb"^\[(?:project|tool\.poetry|tool\.flit)", re.MULTILINE),
    "setup.cfg": re.compile(rb"^\[metadata\]", re.MULTILINE),
    # A package without a version is installed in place, and not published.
    "setup.py": re.compile(rb"\bsetup\((?=.*\bversion\b)|\bversion\b.*\bsetup\(", re.DOTALL),
}


def is_distribution(folder: str, note: Callable[[str, str], None]) -> bool:
    """True if a project's folder says how its package is installed.

    ``note`` receives the files that were looked at, with the digests of their contents.
    """
    found = False
    for name, shows in PACKAGING.items():
        path = os.path.join(folder, name)
        data, content = read_file(path)
        note(path, content)
        found = found or (data is not None and shows.search(data) is not None)
    return found


def _is_shared(folder: str) -> bool:
    """True for the file system's root, the home directory and folders of installed packages."""
    above, name = os.path.split(folder)
    return above == folder or name in SITE_FOLDERS or folder == _home()


@lru_cache(maxsize=1)
def _home() -> str:
    return os.path.realpath(os.path.expanduser("~"))


def project_folder(folder: str) -> str:
    """Return the folder of the project around the folder that a module's imports start from.

    It is the nearest folder with one of `MARKERS` that is no package itself, or the top of a
    checkout; if there is none, the folder that imports start from. The result is "" for a folder
    that many projects share, and for an installed package.
    """
    if not SITE_FOLDERS.isdisjoint(folder.split(os.sep)) or _is_shared(folder):
        return ""
    for above in islice(upwards(folder), MAX_PACKAGE_DEPTH):
        if _is_shared(above):
            break
        if ends_project(above):
            return above
    return folder


def start_of(head: str, root: str, project: str, index: FileIndex) -> str:
    """Return the folder in which ``import head`` of a module finds a module or a folder of modules.

    ``root`` is the folder that the module's own imports start from. After it come the folders above
    it in the project, then the folders at the top of the project, if one alone has the name.
    Without a project ("") only ``root`` is searched. The result is "" if there is none.
    """
    near = up_to(project, root)
    for holds in (index.holds_named, index.holds_module):
        for folder in near:
            if holds(os.path.join(folder, head)):
                return folder
    if not project:
        return ""
    tops = (os.path.join(project, name) for name in index.names(project) if "." not in name)
    packages = (
        os.path.join(one, head, INIT) for one in tops if not index.holds(os.path.join(one, INIT))
    )
    found = [os.path.dirname(os.path.dirname(one)) for one in packages if index.holds(one)]
    return found[0] if len(found) == 1 else ""


def up_to(project: str, root: str) -> list[str]:
    """Return a folder and those above it up to the project's; itself alone outside the project."""
    above = list(upwards(root))
    return above[: above.index(project) + 1] if project in above else [root]


def is_elsewhere(head: str) -> bool:
    """True for the names of Python's own modules and of torch, which no project provides."""
    return head in sys.stdlib_module_names or head == "torch"


def started(root: str, head: str) -> str:
    """Return the answer to a query for where an import starts."""
    return start_of(head, root, project_folder(root), FileIndex())


# The path of a file in PyTorch's own package.
PYTORCH = "_tensor.py"


def module_name(path: Path | None, text: str) -> tuple[str, str, dict[str, str]]:
    """Return the dotted name of the module in a file and of the package it lies in.

    `import_roots.place_of` says which folders are packages. The queries that decided it come third.
    """
    if path is None:
        return "", "", {}
    own = () if path.stem == "__init__" else (path.stem,)
    folder, packages, checked = place_of(os.path.dirname(os.path.abspath(path)), text)
    parts = [*packages, *own]
    inside = parts[:1] == ["torch"] and (len(parts) > 1 or path.stem == "__init__")
    if inside and not os.path.isfile(os.path.join(folder, "torch", PYTORCH)):
        # `texar/torch/` without `texar/__init__.py`: `import torch` means another one.
        parts.insert(0, os.path.basename(folder))
    name = ".".join(parts)
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    return name, package, checked


def absolute_import(level: int, module: str, package: str) -> str:
    """Return the dotted module that a ``from ... import`` names, relative dots resolved."""
    if not level:
        return module
    base = package.split(".") if package else []
    base = base[: len(base) - (level - 1)]
    return ".".join([*base, module] if module else base)


def record_import(
    node: ast.Import | ast.ImportFrom, package: str
) -> tuple[dict[str, str], list[str]]:
    """Return the names that an import statement binds, and the modules of its star imports.

    Each name comes with its dotted name.
    """
    bound: dict[str, str] = {}
    stars: list[str] = []
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname:
                bound[alias.asname] = alias.name
            else:
                head = alias.name.partition(".")[0]
                bound[head] = head
        return bound, stars
    source = absolute_import(node.level, node.module or "", package)
    for alias in node.names:
        if alias.name == "*":
            stars.append(source)
        else:
            bound[alias.asname or alias.name] = f"{source}.{alias.name}" if source else alias.name
    return bound, stars
