"""Which files are notebooks; apart, because every run asks it and few read one."""

from __future__ import annotations


def is_notebook(filename: str) -> bool:
    """Is this a notebook, by its name?"""
    return filename.endswith(".ipynb")
