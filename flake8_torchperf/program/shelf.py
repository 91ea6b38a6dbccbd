"""Outlines of texts, kept on disk by the digest of the text where a run has a cache."""

from __future__ import annotations

import ast

from flake8_torchperf.program import outline as records
from flake8_torchperf.program import outlining
from flake8_torchperf.program.outline import Outline, as_data, from_data
from flake8_torchperf.program.outlining import outline_of
from flake8_torchperf.project.shelf import kept, version


def outline_of_text(text: str) -> Outline:
    """Return the outline of a text, read once, ever, if there is a shelf.

    Raises one of `NO_PYTHON` if it is not Python.
    """
    key = (version(records, outlining), text)
    return kept(key, lambda: outline_of(ast.parse(text)), as_data, from_data)
