"""setuptools, and mypy beside it where a compiled wheel is asked for.

Enters what pip and build ask of a build backend (PEP 517); leaves setuptools' answers. Must not
know what is compiled: `setup.py` does.
"""

from __future__ import annotations

import os
from typing import Any

from setuptools import build_meta as setuptools

build_sdist = setuptools.build_sdist
build_wheel = setuptools.build_wheel
build_editable = setuptools.build_editable
get_requires_for_build_sdist = setuptools.get_requires_for_build_sdist
get_requires_for_build_editable = setuptools.get_requires_for_build_editable
prepare_metadata_for_build_wheel = setuptools.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = setuptools.prepare_metadata_for_build_editable

# Set to 1, it makes a wheel a compiled one.
ASKED = "FLAKE8_TORCHPERF_COMPILE"
# How much the C compiler optimises, 0 to 3; less takes less time.
LEVEL = f"{ASKED}_LEVEL"
# mypyc is part of mypy. What it compiles may differ from release to release, so the one that was
# tested is asked for; a compiled wheel needs nothing of it.
COMPILER = "mypy==2.4.1"


def asked() -> bool:
    """Is a compiled wheel asked for?"""
    return os.environ.get(ASKED, "") not in ("", "0")


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What building a wheel needs beside what pyproject.toml names."""
    return [COMPILER] if asked() else []
