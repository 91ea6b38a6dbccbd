"""Settings that name functions which no linted file defines: globs in, notes on them out.

Names are taken from the text of the files, so that none is parsed for this and a cache changes
nothing. A run without such settings reads nothing here, and one whose globs all match reads only as
far as the last of them.
"""

from __future__ import annotations

import os
import re
import sys
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.options import PREFIX, OptionError, near
from flake8_torchperf.project.file_index import modules_below, upwards
from flake8_torchperf.project.import_roots import is_package
from flake8_torchperf.special_files import refuse_special

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterator, Sequence

    from flake8_torchperf.options import Options

SYNC_FREE = "sync-free"
_STDIN = "-"
_DEFINITION = re.compile(r"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)", re.MULTILINE)


def unmatched(
    filenames: Sequence[str],
    options: Options,
    given: Collection[str],
    text_of: Callable[[str], str],
    prefix: str = "",
) -> tuple[list[str], bool]:
    """Return a line per glob that names no function; True if one is a contract of ``given``.

    ``given`` holds the names of the settings of the command line. If linted files are in packages,
    functions of all files of these packages count: contracts and frequencies are followed there
    too. ``text_of`` returns the text of a file, "" for one that can't be read. ``prefix`` begins
    the names of options.
    """
    globs = {SYNC_FREE: options.sync_free, "hot": options.hot, "cold": options.cold}
    waiting = {(name, glob) for name in globs for glob in globs[name]}
    if not waiting:
        return [], False
    known: set[str] = set()
    for path in _paths(filenames):
        names = functions_of(text_of(path))
        known |= names
        waiting = {one for one in waiting if not any(_matches(one[1], name) for name in names)}
        if not waiting:
            return [], False
    waiting = {one for one in waiting if one[0] != SYNC_FREE or not _inherited(one[1], known)}
    lines, unguarded = [], False
    for name, glob in sorted(waiting):
        here = name in given
        unguarded = unguarded or (here and name == SYNC_FREE)
        names = known if "." in glob else {one.rpartition(".")[2] for one in known}
        where = f"--{prefix}{name}" if here else f"{name} in the configuration"
        nearest = near(glob, sorted(one for one in names if not one.endswith(".")))
        lines.append(f"{where}: {glob!r} names no function of what was linted{nearest}")
    return lines, unguarded


def check_flake8(namespace: argparse.Namespace, options: Options, given: Collection[str]) -> None:
    """Print a line per glob that names no function of the files that flake8 is going to lint.

    Globs of the configuration are checked where a folder is linted: others may be given any file.
    Raises `OptionError` for a contract of ``given``, which would guard nothing.
    """
    from flake8.discover_files import expand_paths

    paths = list(namespace.filenames)
    if not given and paths and not any(map(os.path.isdir, paths)):
        return
    files = expand_paths(
        paths=paths,
        stdin_display_name=namespace.stdin_display_name,
        filename_patterns=namespace.filename,
        exclude=(*namespace.exclude, *(namespace.extend_exclude or ())),
    )
    lines, unguarded = unmatched(list(files), options, given, _text, PREFIX)
    if unguarded:
        raise OptionError(next(line for line in lines if line.startswith(f"--{PREFIX}{SYNC_FREE}")))
    for line in lines:
        print(f"flake8: torchperf: {line}", file=sys.stderr)


def _text(path: str) -> str:
    """Return the text of a file or of standard input; "" if it can't be read."""
    if path == _STDIN:
        from flake8.utils import stdin_get_value

        return stdin_get_value()
    try:
        refuse_special(path)
        return Path(path).read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def functions_of(text: str) -> set[str]:
    """Return the qualified names of functions and methods; a class as its name and a dot."""
    names: set[str] = set()
    around: list[tuple[int, str, str]] = []
    for found in _DEFINITION.finditer(text):
        indent, kind, name = len(found[1].expandtabs()), found[2], found[3]
        while around and around[-1][0] >= indent:
            around.pop()
        if any(outer == "def" for _, outer, _ in around):
            continue  # settings name no function within another
        qualname = ".".join([*(outer for _, _, outer in around), name])
        names.add(qualname if kind == "def" else f"{qualname}.")
        around.append((indent, kind, name))
    return names


def _matches(glob: str, name: str) -> bool:
    """True if the glob matches the name; a glob without a dot matches the bare name.

    The same rule as in `judgement.frequency.own_heat.matches_glob`.
    """
    bare = name if "." in glob else name.rpartition(".")[2]
    return bool(bare) and not name.endswith(".") and fnmatchcase(bare, glob)


def _inherited(glob: str, known: set[str]) -> bool:
    """True if the glob may name a method that a class inherits from a base in the package."""
    owner, _, method = glob.rpartition(".")
    return f"{owner}." in known and any(
        "." in name and fnmatchcase(name.rpartition(".")[2], method)
        for name in known
        if not name.endswith(".")
    )


def _paths(filenames: Sequence[str]) -> Iterator[str]:
    """Yield the linted files, then the others of their packages."""
    yield from filenames
    seen = {os.path.abspath(name) for name in filenames}
    for folder in dict.fromkeys(_package_of(os.path.dirname(path)) for path in sorted(seen)):
        for path in modules_below(folder) if folder else ():
            if path not in seen:
                yield path


def _package_of(folder: str) -> str:
    """Return the outermost package around a folder; "" if the folder is not a package."""
    packages = list(takewhile(is_package, upwards(folder)))
    return packages[-1] if packages else ""
