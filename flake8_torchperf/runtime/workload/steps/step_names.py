"""Reads `--step`: the step of optimizers or of a profiler, or a function of the program.

Nothing is imported: a function is looked for in the text of its file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from flake8_torchperf.contracts.marked_functions import nested_in, read_whole
from flake8_torchperf.project.files import stamp

OPTIMIZER, PROFILER = "optimizer.step", "profiler.step"
"""The markers that need no function's name."""
_LOCALS = ".<locals>"


@dataclass(frozen=True)
class NamedFunction:
    """A function as `train.py::Trainer.train_step` names it; ``path`` is "" for any file."""

    path: str
    qualname: str

    def means(self, code: CodeType) -> bool:
        """True if a code object is that of this function. Whoever defines it is not asked."""
        if code.co_name != self.qualname.rpartition(".")[2]:
            return False
        if self.path and os.path.realpath(code.co_filename) != self.path:
            return False
        names = defined(code.co_filename)
        return self._ends(names.get((code.co_firstlineno, code.co_name), code.co_name))

    def is_in(self, path: str) -> bool:
        """True if a file defines this function."""
        return any(map(self._ends, defined(path).values()))

    def _ends(self, qualname: str) -> bool:
        return f".{qualname}".endswith(f".{self.qualname}")


def defined(path: str) -> dict[tuple[int, str], str]:
    """Return the qualified names of a file's functions, by first line, decorators too, and name."""
    module = read_whole(path, *stamp(path)) if Path(path).is_file() else None
    return {
        (min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.name): (
            qualname.replace(_LOCALS, "")
        )
        for info in (() if module is None else module.defined)
        for qualname, node in [(info.qualname, info.node), *nested_in(info.node, info.qualname)]
    }


def named_function(text: str) -> NamedFunction | None:
    """Return the function that `--step` names; None for the step of optimizers or a profiler.

    Raises ValueError, with one line, for a text that names no function or one that is nowhere.
    """
    if text in ("", OPTIMIZER, PROFILER):
        return None
    file, separator, qualname = text.rpartition("::")
    if not all(part.isidentifier() for part in qualname.split(".")):
        raise ValueError(
            f"{text!r} names no function: write train_step, Trainer.train_step, "
            f"train.py::Trainer.train_step, {OPTIMIZER} or {PROFILER}"
        )
    if not separator:
        return NamedFunction("", qualname)
    if not Path(file).is_file():
        raise ValueError(f"there is no file {file}")
    found = NamedFunction(os.path.realpath(file), qualname)
    if not found.is_in(found.path):
        raise ValueError(f"{file} defines no function {qualname}")
    return found
