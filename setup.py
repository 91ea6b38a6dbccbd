"""What setup.cfg cannot say: the packages, and that a wheel is compiled where that is asked for.

The packages are those below flake8_torchperf, the rule pages and the skill. The README of an index
links to the site. mypyc compiles the interpreter:

    pip wheel .                                  plain Python
    FLAKE8_TORCHPERF_COMPILE=1 pip wheel .       compiled, or no wheel and one line that says why
    FLAKE8_TORCHPERF_COMPILE=auto pip wheel .    compiled where possible, else plain Python

Nothing but a wheel is compiled: neither a checkout installed with -e, whose sources are to be
changed, nor an sdist.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CompileError, LinkError

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tools"))

from compiling import ASKED, LEVEL, Wish, machine_problem, mypy_problem, wish  # noqa: E402
from native import write  # noqa: E402
from published_readme import published  # noqa: E402

# What most of the time goes to. The rest is imported for every file, or runs once.
COMPILED = (
    "contracts",
    "findings",
    "idioms",
    "interpreter",
    "judgement",
    "knowledge",
    "project",
    "suspects",
    "syntax",
    "torch_compile",
    "values",
)
# Where a wheel is built, neither flake8 nor what types it has is installed.
OPTIONS = ("--config-file=", "--ignore-missing-imports")
# What mypy may say of the modules as they are written out. Of those that people write it says
# nothing, and is asked for more (see .ci/run).
CHECKED = ("arg-type", "attr-defined", "func-returns-value", "index", "union-attr")

# Sources compiled at a time: a large one takes up to 180 MB (gcc 12), and a container may have
# less memory than its machine has processors.
AT_ONCE = min(8, os.cpu_count() or 1)


def extensions() -> list[Extension]:
    """The modules to compile; ends the build with one line where they must be and cannot."""
    if wish() is Wish.NO or "bdist_wheel" not in sys.argv:
        return []
    problem = machine_problem() or mypy_problem()
    if problem:
        give_up(problem)
        return []
    from mypyc.build import mypycify

    try:
        modules = write(ROOT, "flake8_torchperf", COMPILED, Path("build", "native"))
        made = mypycify(
            [*OPTIONS, *(f"--disable-error-code={code}" for code in CHECKED), *modules],
            opt_level=os.environ.get(LEVEL, "3"),
            debug_level="0",
            multi_file=True,
            group_name="flake8_torchperf",
        )
    except SystemExit:  # it has said why
        give_up("mypyc does not take the sources")
        return []
    except Exception as error:  # a mistake of mypyc's, or of ours: plain Python does as well
        give_up(f"mypyc failed: {type(error).__name__}: {' '.join(str(error).split())}")
        return []
    if os.name == "posix":
        # What no other library may replace is called directly, and can be inlined.
        for extension in made:
            hidden = "-fvisibility=hidden"
            extension.extra_compile_args = [*extension.extra_compile_args, hidden]
    return made


def give_up(problem: str) -> None:
    """Say why nothing is compiled; where it was asked for, end the build."""
    if wish() is Wish.YES:
        sys.exit(f"{ASKED} asks for what cannot be: {problem}")
    print(f"flake8-torchperf stays plain Python: {problem}", file=sys.stderr)


class CompileAtOnce(build_ext):
    """Several sources at a time, and none where one of them fails."""

    def run(self) -> None:
        """Compile all, or nothing: a module without what it is linked to cannot be imported."""
        try:
            super().run()
        except (BaseError, CompileError, LinkError) as error:
            give_up(f"the C compiler failed: {' '.join(str(error).split())}")
            for made in self.get_outputs():
                Path(made).unlink(missing_ok=True)
            self.extensions = []

    def build_extensions(self) -> None:
        """Compile and link."""
        if os.name == "posix":
            self.parallel = self.parallel or AT_ONCE
            one_by_one = self.compiler.compile

            def at_once(sources: list[str], **options: Any) -> list[str]:
                with ThreadPoolExecutor(AT_ONCE) as pool:
                    made = pool.map(lambda source: one_by_one([source], **options), sources)
                    return [name for names in made for name in names]

            self.compiler.compile = at_once
        super().build_extensions()


setup(
    long_description=published((ROOT / "README.md").read_text(encoding="utf-8")),
    packages=[
        *find_packages(str(ROOT), include=("flake8_torchperf", "flake8_torchperf.*", "torchperf")),
        "flake8_torchperf.rules",
        "flake8_torchperf.skills",
    ],
    ext_modules=extensions(),
    cmdclass={"build_ext": CompileAtOnce},
)
