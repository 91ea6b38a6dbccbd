"""``%%torchperf`` records a cell of a notebook, after ``%load_ext torchperf``."""

from __future__ import annotations

import argparse
import ast
import atexit
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

from flake8_torchperf.cli.region.recording import RecordingError, recording

_folders: list[str] = []


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        """Raise, where a command would exit: a notebook goes on."""
        raise RecordingError(f"%%torchperf: {message}")


def _options(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%%torchperf", add_help=False)
    parser.add_argument("profile", nargs="?", help="a file for the profile")
    parser.add_argument("--json", help="a file for the report")
    parser.add_argument("--owner", action="append", default=[], help="whose lines count, too")
    parser.add_argument("--level", choices=("full", "reads"), default="full")
    return parser.parse_args(shlex.split(line))


class CellMagic:
    """The magic of one IPython ``shell``."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, line: str, cell: str) -> Any:
        """Run a cell, and print the report of ``torchperf run`` for it; return the cell's value.

        The cell's lines count, and those of the files below the current folder. Raises what the
        cell raises, and RecordingError for options that cannot be understood.
        """
        options = _options(line)
        path = _folder() / f"cell_{self._shell.execution_count}.py"
        text = self._shell.transform_cell(cell)
        path.write_text(text, encoding="utf-8")
        tree = ast.parse(text, str(path))
        value = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        names = self._shell.user_ns
        owners = [str(path), *(options.owner or ["."])]
        with recording(options.profile, json=options.json, owners=owners, level=options.level):
            exec(compile(tree, str(path), "exec"), names)
            if isinstance(value, ast.Expr):
                return eval(compile(ast.Expression(value.value), str(path), "eval"), names)
        return None


def _folder() -> Path:
    """Return the folder for the texts of cells, which tracebacks and reports show."""
    if not _folders:
        _folders.append(tempfile.mkdtemp(prefix="torchperf-"))
        atexit.register(shutil.rmtree, _folders[0], ignore_errors=True)
    return Path(_folders[0])


def load_ipython_extension(shell: Any) -> None:
    """Register ``%%torchperf``, as ``%load_ext torchperf`` asks."""
    shell.register_magic_function(CellMagic(shell), "cell", "torchperf")
