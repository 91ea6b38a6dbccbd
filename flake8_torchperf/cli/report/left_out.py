"""Files that a run was given or found and does not lint, each kind named in one line."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from flake8_torchperf.cli.check_files import STDIN, display_name
from flake8_torchperf.cli.notebooks.notebook_names import PYTHON_FILES
from flake8_torchperf.special_files import special_kind

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from flake8_torchperf.findings.chosen import Chosen

# More names would hide the findings.
_SHOWN = 3


def without_special(names: Iterable[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the names without pipes and devices, and a line for each of those."""
    kinds = {name: special_kind(name) for name in names if name != STDIN}
    kept = tuple(name for name in names if not kinds.get(name))
    return kept, [f"{n}: skipped: it is {kind}, not a file" for n, kind in kinds.items() if kind]


def told_of(names: Sequence[str], chosen: Chosen, options: argparse.Namespace) -> frozenset[str]:
    """Return the files in which the project's table lets something be told."""
    if not chosen.exclude:
        return frozenset(names)
    return frozenset(one for one in names if not chosen.leaves_out(display_name(one, options)))


def excluded(paths: Iterable[str], found: Collection[str], told: Collection[str]) -> list[str]:
    """Return a line per path of the command line in which nothing is linted.

    ``found`` are the files that flake8 does not exclude, ``told`` those that the project's table
    does not exclude either.
    """
    lines, named = [], []
    for path in dict.fromkeys(paths):
        if not os.path.isdir(path):
            named += [] if path in told else [path]
            continue
        inside = os.path.join(path, "")
        if not any(name.startswith(inside) for name in found):
            lines.append(f"{path}: there is no Python file in it that is not excluded")
        elif not any(name.startswith(inside) for name in told):
            lines.append(f"{path}: [tool.torchperf] excludes every Python file in it")
    if named:
        others = f" and {len(named) - _SHOWN} others" if len(named) > _SHOWN else ""
        lines.append(f"{', '.join(named[:_SHOWN])}{others}: excluded, and so not linted")
    return lines


def unread_notebooks(books: Sequence[str], options: argparse.Namespace) -> list[str]:
    """Return a line if folders hold notebooks that are not linted because nbformat is missing."""
    if list(options.filename) != PYTHON_FILES or find_spec("nbformat") is not None or not books:
        return []
    number = "1 notebook is" if len(books) == 1 else f"{len(books)} notebooks are"
    return [f"{number} not linted, as {books[0]}: pip install flake8-torchperf[notebooks]"]


def of_other_repositories(foreign: Mapping[str, str]) -> list[str]:
    """Return a line per repository whose files ``--diff-base`` can't compare.

    ``foreign`` holds the repository of each such file, "" for none.
    """
    advice = "--diff-base leaves out its findings; run torchperf check there"
    lines = [
        f"{os.path.relpath(top)}: another git repository: {advice}"
        for top in sorted({*foreign.values()} - {""})
    ]
    outside = [name for name, top in foreign.items() if not top]
    if outside:
        lines.append(f"{outside[0]}: in no git repository: --diff-base leaves out its findings")
    return lines
