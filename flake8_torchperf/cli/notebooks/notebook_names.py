"""Recognise notebooks by name; a module apart, because every run needs it and few read one."""

from __future__ import annotations

# flake8's default of its option ``filename``.
PYTHON_FILES = ["*.py"]
NOTEBOOKS = "*.ipynb"


def is_notebook(filename: str) -> bool:
    """True if the file is a notebook, by its name."""
    return filename.endswith(".ipynb")
