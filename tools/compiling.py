"""Decide if a wheel is compiled: always, never, or if the machine allows it.

Reads the environment of the build; returns a `Wish` and the obstacles. `setup.py` decides which
modules are compiled.
"""

from __future__ import annotations

import enum
import importlib.metadata
import os
import sys
import sysconfig
import tempfile
from pathlib import Path

# 1: the wheel is compiled, or the build fails. auto: it is compiled if possible. 0, or not set: it
# is plain Python, because pre-commit builds its hook from source and can't set a variable, and
# compiling would take minutes.
ASKED = "FLAKE8_TORCHPERF_COMPILE"
# The optimisation level of the C compiler, 0 to 3; lower levels compile faster.
LEVEL = f"{ASKED}_LEVEL"
# mypyc is part of mypy. Its output may differ between releases, so the build requires the tested
# release; an installed wheel does not need it.
MYPY = "2.4.1"
# The Pythons whose compiled wheels have been compared with plain Python's findings. pyproject.toml
# names them too. Other Pythons get plain Python unless compiling is requested.
PYTHONS = ((3, 10), (3, 11), (3, 12), (3, 13))


class Wish(enum.Enum):
    """The choice about compiling that the environment makes."""

    NO = "no"
    WHERE_POSSIBLE = "where possible"
    YES = "yes"


def wish() -> Wish:
    """Read the variable; end the build with one line if its value is unknown."""
    value = os.environ.get(ASKED)
    known = {None: Wish.NO, "": Wish.NO, "0": Wish.NO, "1": Wish.YES, "auto": Wish.WHERE_POSSIBLE}
    if value not in known:
        sys.exit(f"{ASKED} is {value!r}: write 1 or auto to compile, 0 for plain Python")
    return known[value]


def machine_problem() -> str:
    """Return why this machine cannot compile, mypy aside; "" if it can."""
    if wish() is Wish.WHERE_POSSIBLE:
        if sys.implementation.name != "cpython" or sys.version_info[:2] not in PYTHONS:
            return f"compiled code is not tested with this Python ({sys.version.split()[0]})"
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            return "compiled code is not tested without the global interpreter lock"
    problem = compiler_problem()
    return f"no C compiler that finds Python's headers: {problem}" if problem else ""


def mypy_problem() -> str:
    """Return why the mypy at hand will not do, or ""; pip fetches the right one by itself."""
    try:
        version = importlib.metadata.version("mypy")
    except importlib.metadata.PackageNotFoundError:
        return f"mypy {MYPY} is not installed where the wheel is built"
    return "" if version == MYPY else f"mypy is {version} where the wheel is built, not {MYPY}"


def compiler_problem() -> str:
    """Return why nothing written in C can be compiled; "" if it can."""
    # distutils is part of setuptools from Python 3.12 on, and only then always the right one.
    from setuptools._distutils.ccompiler import new_compiler
    from setuptools._distutils.errors import CCompilerError, DistutilsError
    from setuptools._distutils.sysconfig import customize_compiler

    compiler = new_compiler()
    customize_compiler(compiler)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "headers.c")
        source.write_text("#include <Python.h>\n", encoding="utf-8")
        try:
            compiler.compile([str(source)], folder, include_dirs=[sysconfig.get_path("include")])
        except (CCompilerError, DistutilsError, OSError) as error:
            return " ".join(str(error).split())
    return ""
