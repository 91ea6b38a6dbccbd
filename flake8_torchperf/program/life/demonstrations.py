"""The main blocks of modules that only show a module at work."""

from __future__ import annotations

import re
from os.path import basename, splitext
from typing import TYPE_CHECKING

from flake8_torchperf.project.file_index import is_test_path

if TYPE_CHECKING:
    from flake8_torchperf.program.linking import Linker, Search

_MAIN = re.compile(rb"^if\s+\(?__name__\s*==[^\n]*\n(?:[ \t#][^\n]*\n|\s*\n)*", re.MULTILINE)
# Calls that make the inputs of a demonstration.
_MADE_UP = re.compile(rb"\b(?:torch|np|numpy)\.(?:random\.)?(?:rand\w*|ones|zeros|normal)\(")
# Words of a program, anywhere in its module.
_PROGRAM = re.compile(rb"\b(?:argparse|DataLoader|optim|argv|fire|click|hydra)\b|\.backward\(")
_WORD = re.compile(rb"[a-z]+|[A-Z][a-z]*")
# The words, as parts of names, of what reads, writes or trains; ``Trainer`` and ``train_one`` do.
_WORKS = frozenset((
    b"load", b"loader", b"loaders", b"dataset", b"datasets", b"open", b"read", b"glob",
    b"imread", b"listdir", b"save", b"write", b"dump", b"export", b"args", b"parse", b"parser",
    b"cfg", b"config", b"yaml", b"json", b"environ", b"checkpoint", b"ckpt", b"optimizer",
    b"step", b"steps", b"epoch", b"epochs", b"fit", b"trainer", b"evaluate", b"run",
    b"infer", b"inference", b"pretrained",
))  # fmt: skip


class Demonstrations:
    """Finds the main blocks that show a library module at work on made up inputs.

    Such a block stands in a module that others of the project import, makes its inputs up, and
    neither reads or writes anything, takes arguments, nor trains.
    """

    def __init__(self, linker: Linker, search: Search) -> None:
        self._linker = linker
        self._search = search
        self._lines: dict[str, range] = {}

    def holds(self, path: str, line: int) -> bool:
        """True if a line of a module stands in such a block."""
        if path not in self._lines:
            self._lines[path] = self._block(path)
        return line in self._lines[path]

    def _block(self, path: str) -> range:
        """Return the lines of the block of a module; none if it has no such block."""
        if not self._linker.has_main_block(path):
            return range(0)
        text = self._linker.text(path).replace(b"\r\n", b"\n")
        block = _MAIN.search(text)
        if block is None or not _MADE_UP.search(block[0]) or _PROGRAM.search(text):
            return range(0)
        words = {word.lower() for word in _WORD.findall(block[0])}
        if words & _WORKS or b"main(" in block[0] or not self._is_imported(path):
            return range(0)
        first = text.count(b"\n", 0, block.start()) + 1
        return range(first, first + block[0].count(b"\n") + 1)

    def _is_imported(self, path: str) -> bool:
        """True if another module of the project imports a module, tests excepted."""
        found = self._search(splitext(basename(path))[0], path, is_attribute=True) or ()
        others = (one for one in found if one != path and not is_test_path(one))
        return any(path in self._linker.imported_by(one) for one in others)
