"""nox: the linter's tests under every Python at hand.

    nox                      each Python from 3.10 that is installed
    nox -s linter-3.12       one of them
    nox -- tests/test_x.py   some of the tests

torch is not installed, since linting needs none: what runs code is tested by `.ci/run`, with the
Python that torch was chosen for.
"""

from __future__ import annotations

import configparser
import os
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "tests"))

from environments import pythons  # noqa: E402

FOUND = pythons()
# nox looks on PATH, where those that pyenv has installed need not be.
os.environ["PATH"] = os.pathsep.join(
    [*(str(Path(name).parent) for name in FOUND.values()), os.environ["PATH"]]
)
# Of the extra `test`: what runs code, and what checks the source of whichever Python.
NOT_FOR_LINTING = (
    "torch", "mypy", "ruff", "import-linter", "types-", "build", "setuptools", "wheel",
)  # fmt: skip


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
    options = session.posargs or ["-m", "not slow"]
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options)
