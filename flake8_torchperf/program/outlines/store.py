"""Outlines of texts, kept by the digest of the text: in memory, and on disk if there is a cache."""

from __future__ import annotations

import ast

from flake8_torchperf.digest import digest_of
from flake8_torchperf.program.outlines import nodes, outlining, rows
from flake8_torchperf.program.outlines import outline as records
from flake8_torchperf.program.outlines.outline import Outline, as_data, from_data
from flake8_torchperf.program.outlines.outlining import outline_of
from flake8_torchperf.project.stores.kept import Kept
from flake8_torchperf.project.stores.shelf import shelved, version

# The bytes of text whose outlines stay in memory. An outline with its tables takes 2.7 times its
# text in transformers, 3.3 times in vLLM, and up to 5 times where modules are short: 30 to 50 MB.
# That holds a project of 400 modules. With 3 MB, those of kornia (6 MB) were outlined twice.
OUTLINED = 10_000_000
# The outlines that were made last, by the digest of their text. A run over a tree reads most
# modules twice: to lint them, and to follow values from another module.
_MADE: Kept[str, Outline] = Kept(OUTLINED)


def outline_of_text(text: str) -> Outline:
    """Return the outline of a text, read once, ever, if there is a shelf.

    Raises one of `NO_PYTHON` if it is not Python.
    """
    key = (version(records, nodes, outlining, rows), text)
    return shelved(key, lambda: outline_once(text), as_data, from_data)


def outline_once(text: str, tree: ast.Module | None = None) -> Outline:
    """Return the outline of a text, whose ``tree`` may be built already.

    Raises one of `NO_PYTHON` if it is not Python.
    """
    return _MADE.made(
        digest_of([text]),
        len(text),
        lambda: outline_of(ast.parse(text) if tree is None else tree),
    )
