"""The build backend: setuptools, with mypy if a wheel is to be compiled.

Implements the hooks that pip and build call (PEP 517) with setuptools. `setup.py` decides which
modules are compiled.
"""

from __future__ import annotations

from typing import Any

from compiling import MYPY, Wish, machine_problem, wish
from setuptools import build_meta as setuptools

build_sdist = setuptools.build_sdist
build_wheel = setuptools.build_wheel
build_editable = setuptools.build_editable
get_requires_for_build_sdist = setuptools.get_requires_for_build_sdist
get_requires_for_build_editable = setuptools.get_requires_for_build_editable
prepare_metadata_for_build_wheel = setuptools.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = setuptools.prepare_metadata_for_build_editable


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return what building a wheel needs besides the requirements in pyproject.toml."""
    compiled = wish() is Wish.YES or (wish() is Wish.WHERE_POSSIBLE and not machine_problem())
    return [f"mypy=={MYPY}"] if compiled else []
