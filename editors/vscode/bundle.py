"""Make bundled/: the linter, its server and all that they import, in plain Python.

    python editors/vscode/bundle.py

The copy serves workspaces whose interpreter has no flake8-torchperf. It must run on every platform
and every Python from 3.10, so it holds only wheels without compiled parts. libcst has such parts in
every wheel; without it the server finds everything and fixes nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TARGET = HERE / "bundled"
# What each is needed by. pip would choose by the Python that builds, so all are named.
NEEDED = {
    "flake8": "flake8-torchperf: options, configuration, noqa",
    "pycodestyle": "flake8",
    "pyflakes": "flake8",
    "mccabe": "flake8",
    "platformdirs": "flake8-torchperf: the cache's folder",
    "tomli": "flake8-torchperf, on Python 3.10",
    "pygls": "the server",
    "lsprotocol": "pygls",
    "cattrs": "pygls",
    "attrs": "cattrs",
    "typing_extensions": "cattrs",
    "exceptiongroup": "cattrs, on Python 3.10",
}
# Wheels for any platform and any Python 3.
PLAIN = (
    "--only-binary=:all:",
    "--platform=any",
    "--implementation=py",
    "--abi=none",
    "--python-version=3.10",
)
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")


def main() -> None:
    """Build the linter's wheel, and install it and what it needs."""
    shutil.rmtree(TARGET, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        plain = {**os.environ, "FLAKE8_TORCHPERF_COMPILE": "0"}
        wheel = (*PIP, "wheel", "--no-deps", f"--wheel-dir={folder}", str(ROOT))
        subprocess.run(wheel, check=True, env=plain)
        (built,) = Path(folder).glob("flake8_torchperf-*-none-any.whl")
        install = (*PIP, "install", "--no-deps", "--no-compile", f"--target={TARGET}")
        subprocess.run((*install, *PLAIN, str(built), *NEEDED), check=True)
    # Scripts name the Python that made them.
    shutil.rmtree(TARGET / "bin", ignore_errors=True)
    compiled = [path.name for path in TARGET.rglob("*") if path.suffix in (".so", ".pyd", ".dylib")]
    if compiled:
        sys.exit(f"these run on one platform only: {', '.join(compiled)}")


if __name__ == "__main__":
    main()
