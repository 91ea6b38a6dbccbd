"""What setup.cfg cannot say: a wheel whose interpreter is compiled with mypyc, where that is asked.

    FLAKE8_TORCHPERF_COMPILE=1 pip wheel .

Without the variable, and for everything but a wheel, nothing is compiled.
"""

import os
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tools"))

from build_backend import ASKED, LEVEL, asked  # noqa: E402
from native import write  # noqa: E402

# What most of the time goes to. The rest is imported for every file, or runs once.
COMPILED = ("findings", "interpret", "knowledge", "parse", "sites", "suspects")
# Where a wheel is built, neither flake8 nor what types it has is installed.
OPTIONS = ("--config-file=", "--ignore-missing-imports")
# What mypy may say of the modules as they are written out. Of those that people write it says
# nothing, and is asked for more (see .ci/run).
CHECKED = ("arg-type", "attr-defined", "func-returns-value", "index", "union-attr")


def extensions():
    """The modules to compile; ends the build with one line where that cannot be."""
    if not asked() or "bdist_wheel" not in sys.argv:
        return []
    try:
        from mypyc.build import mypycify
    except ImportError as error:
        sys.exit(f"{ASKED} asks for mypy: {error}")
    problem = compiler_problem()
    if problem:
        sys.exit(f"{ASKED} asks for a C compiler and Python's headers: {problem}")
    modules = write(ROOT, "flake8_torchperf", COMPILED, Path("build", "native"))
    made = mypycify(
        [*OPTIONS, *(f"--disable-error-code={code}" for code in CHECKED), *modules],
        opt_level=os.environ.get(LEVEL, "3"),
        debug_level="0",
        multi_file=True,
        group_name="flake8_torchperf",
    )
    if os.name == "posix":
        # What no other library may replace is called directly, and can be inlined.
        for extension in made:
            extension.extra_compile_args.append("-fvisibility=hidden")
    return made


def compiler_problem():
    """Why nothing can be compiled here; "" where it can."""
    from distutils.ccompiler import new_compiler
    from distutils.errors import CCompilerError, DistutilsError
    from distutils.sysconfig import customize_compiler

    compiler = new_compiler()
    customize_compiler(compiler)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "headers.c")
        source.write_text("#include <Python.h>\n", encoding="utf-8")
        try:
            compiler.compile([str(source)], folder, include_dirs=[sysconfig.get_path("include")])
        except (CCompilerError, DistutilsError, OSError) as error:
            return str(error)
    return ""


setup(ext_modules=extensions())
