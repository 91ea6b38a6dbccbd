"""Real code to mutate: pieces of torch's own sources, small enough to be linted in milliseconds.

Takes a folder of Python files and draws pieces of them. Never imports what it reads.
"""

from __future__ import annotations

import ast
import random
import tokenize
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

# Where torch's Python is written by hand and computes on tensors.
FOLDERS = (
    "nn",
    "optim",
    "distributions",
    "amp",
    "ao",
    "distributed",
    "masked",
    "utils",
    "autograd",
)
# Longer pieces take longer to lint and to minimise, and hold nothing that shorter ones do not.
MOST_LINES = 160


class NoSourcesError(Exception):
    """There is nothing to mutate; ``str`` says where it was looked for."""


def torch_files() -> list[Path]:
    """Return torch's source files, found without importing it. Raises NoSourcesError."""
    spec = find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise NoSourcesError("torch is not installed: name a folder with --sources")
    root = Path(next(iter(spec.submodule_search_locations)))
    return files_below(root / name for name in FOLDERS)


def files_below(folders: Iterable[Path]) -> list[Path]:
    """Return the Python files below some folders, in a fixed order. Raises NoSourcesError."""
    named = list(folders)
    found = sorted(path for one in named for path in one.rglob("*.py"))
    if not found:
        raise NoSourcesError(f"no Python file below {', '.join(map(str, named))}")
    return found


@dataclass
class Pieces:
    """Draws pieces: the imports of a file with a few of its neighbouring statements."""

    files: Sequence[Path]
    _parsed: dict[Path, tuple[list[str], ast.Module] | None] = field(default_factory=dict)

    def draw(self, rng: random.Random) -> str:
        """Return one piece, drawn by ``rng``."""
        while True:
            parsed = self._read(rng.choice(self.files))
            if parsed is None:
                continue
            lines, tree = parsed
            body = [one for one in tree.body if not isinstance(one, (ast.Import, ast.ImportFrom))]
            if body:
                return _piece(lines, tree, body, rng)

    def _read(self, path: Path) -> tuple[list[str], ast.Module] | None:
        if path not in self._parsed:
            with tokenize.open(path) as file:
                text = file.read()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # The linter does not analyse text that does not mention torch, mutated or not.
                tree = ast.parse(text) if "torch" in text else None
            self._parsed[path] = None if tree is None else (text.splitlines(True), tree)
        return self._parsed[path]


def _piece(lines: list[str], tree: ast.Module, body: list[ast.stmt], rng: random.Random) -> str:
    imports = [one for one in tree.body if isinstance(one, (ast.Import, ast.ImportFrom))]
    parts = ["import torch\n"] if not any(_future(one) for one in imports) else []
    parts += [_text(lines, one) for one in imports[:12]]
    left = MOST_LINES
    for statement in body[rng.randrange(len(body)) :]:
        text = _text(lines, statement)
        size = text.count("\n")
        if size > MOST_LINES:
            # A long class: its head and a window of its methods are still Python mostly.
            start = rng.randrange(size)
            text = "".join(text.splitlines(True)[:1] + text.splitlines(True)[start : start + left])
        parts.append(text)
        left -= size
        if left <= 0:
            break
    return "".join(parts)


def _future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _text(lines: list[str], node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(one.lineno for one in decorators)])
    text = "".join(lines[first - 1 : node.end_lineno])
    return text if text.endswith("\n") else f"{text}\n"
