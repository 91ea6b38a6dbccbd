"""nox: tests under every Python at hand and with other releases of torch, and the documentation.

    nox                             each Python from 3.10 that is installed
    nox -s linter-3.12              one of them
    nox -- tests/lint/test_x.py     some of the tests
    nox -s runtime                  the oldest torch, that of CI, and the newest, several GB each
    nox -s "runtime(torch='2.6.0')"  one of them
    nox -s quick                    style, and the fast tests of a change of the linter, right here
    nox -s thorough                 what .ci/run leaves out, right here: compiled wheels, many sizes
    nox -s docs                     the documentation, as a site, into build/site; with npm, the
                                    page to try the linter on as well
    nox -s docs -- -b linkcheck     asks the web for what its pages link to

The linter's sessions install no torch, since linting needs none.
"""

from __future__ import annotations

import configparser
import json
import os
import shutil
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tests"))

from environments import pythons  # noqa: E402

FOUND = pythons()
# nox looks on PATH, where those that pyenv has installed may be missing. Ours stays first.
os.environ["PATH"] = os.pathsep.join(
    [os.environ["PATH"], *(str(Path(name).parent) for name in FOUND.values())]
)
# Of the extra `test`: what runs code, and what checks the source of whichever Python.
NOT_FOR_LINTING = (
    "torch", "mypy", "ruff", "import-linter", "types-", "build", "setuptools", "wheel",
)  # fmt: skip

# As setup.cfg has it where nobody names marks.
FAST = "not slow and not thorough"

nox.options.sessions = ["linter"]
# What the runtime supports: the first release that has `torch.accelerator` and `Library.fallback`,
# the one whose CPU build CI installs, and the one that the table was generated from.
TABLE = ROOT / "flake8_torchperf" / "knowledge" / "torch_table.json"
NEWEST = json.loads(TABLE.read_bytes())["torch"]
RELEASES = ("2.6.0", "2.13.0", NEWEST)
# What starts many processes, compiles with torch, or tries many sizes, sums up to some minutes.
LEFT_OUT_OF_QUICK = (
    *(f"tests/lint/{folder}/test_{name}.py" for folder, names in {
        ".": ("determinism", "fixtures_compiled", "no_veto_by_name", "sharding"),
        "bounds": ("bounds", "bounds_work", "fuzz", "growth"),
        "cache": ("cache", "cache_store"),
        "findings": ("catalogue", "message_lengths"),
        "project": ("outline",),
        "suspects": ("nomination",),
        "torch_compile": (
            "compiled_breaks", "compiled_guards", "compiled_transforms", "faq_examples",
        ),
    }.items() for name in names),
    *(f"tests/cli/check/test_{name}.py" for name in (
        "baseline", "check", "check_long_runs", "formats", "profile", "summary",
    )),
    "tests/cli/settings/test_configuration.py",
    "tests/fixes/text/test_fix_properties.py", "tests/fixes/test_fix_command.py",
    "tests/fixes/test_safe_for_every_caller.py",
)  # fmt: skip
# A Python for which each of them has a wheel.
RUNTIME_PYTHON = next((f"3.{minor}" for minor in (11, 12, 10) if (3, minor) in FOUND), None)
# What Sphinx runs on (the extra `docs` of setup.cfg).
DOCS_PYTHON = next((f"3.{minor}" for minor in range(11, 20) if (3, minor) in FOUND), None)


def test_tools() -> list[str]:
    """The extra `test` of setup.cfg without what the linter's tests do not need."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = config["options.extras_require"]["test"].split("\n")
    return [tool for tool in listed if tool and not tool.startswith(NOT_FOR_LINTING)]


@nox.session(python=[f"{major}.{minor}" for major, minor in FOUND], venv_backend="venv")
def linter(session: nox.Session) -> None:
    """Install the linter and test it, without torch."""
    session.install("--no-compile", "-e", ".", *test_tools())
    options = session.posargs or ["-m", FAST]
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options)


@nox.session(venv_backend="none")
def quick(session: nox.Session) -> None:
    """Check the style and run what shows first that a change of the linter is wrong.

    It installs nothing: the active environment holds the extra `test`.
    """
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    folders = ("tests/lint", "tests/cli", "tests/fixes")
    left_out = [f"--ignore={path}" for path in LEFT_OUT_OF_QUICK]
    session.run("python", "-m", "pytest", "-q", "-n", "2", *left_out, *(session.posargs or folders))


@nox.session(venv_backend="none")
def thorough(session: nox.Session) -> None:
    """Run what takes minutes and seldom tells more than the slow tests; before each release.

    It installs nothing: the active environment holds the extra `test`.
    """
    options = session.posargs or ["-m", "thorough"]
    session.run("python", "-m", "pytest", "-q", "-n", "auto", *options)
    if not session.posargs:
        properties = "tests/fixes/text/test_fix_properties.py"
        session.run("python", "-m", "pytest", "-q", properties, env={"TORCHPERF_EXAMPLES": "60"})


@nox.session(python=RUNTIME_PYTHON, venv_backend="venv")
@nox.parametrize("torch", RELEASES)
def runtime(session: nox.Session, torch: str) -> None:
    """Test what runs code with a release of torch; skip where that cannot be installed here."""
    try:
        session.install("--no-compile", f"torch=={torch}", "numpy", silent=True)
    except CommandFailed:
        session.skip(f"torch {torch} cannot be installed here for Python {session.python}")
    session.install("--no-compile", "-e", ".", *test_tools())
    options = session.posargs or [
        "-m", FAST, *map(str, sorted((ROOT / "tests" / "runtime").rglob("test_runtime_*.py"))),
        "tests/package/tables/test_torch_table.py", "tests/lint/knowledge/test_measured_waits.py",
    ]  # fmt: skip
    if torch == RELEASES[0] and not session.posargs:  # docs/confirm-and-run.md says so
        options += ["-k", "not test_higher_order_operators and not test_graph_breaks_are_counted"]
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options)


@nox.session(python=DOCS_PYTHON, venv_backend="venv")
def docs(session: nox.Session) -> None:
    """Build the documentation; every warning is an error, a link that leads nowhere among them."""
    session.install("--no-compile", "-e", ".[docs]")
    if shutil.which("npm"):  # else the page says that it has no editor
        session.run("python", "docs/try/build.py")
    options = ["-W", "--keep-going", "-n", "-c", "docs", *(session.posargs or ["-b", "html"])]
    session.run("python", "-m", "sphinx", *options, ".", "build/site")
