"""Virtual environments for tests that meet the package as users do: built, installed, elsewhere."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import Distribution
from pathlib import Path

from hangs import HANG

ROOT = Path(__file__).parents[1]


def clean_environment(python: Path | None = None) -> dict[str, str]:
    """This process's variables without what would let the checkout be imported.

    What is built with them is plain Python, but where a test asks for more; and Python keeps what
    it compiles, as where a person installs the package, so that it does so once.

    With ``python``, an interpreter in a virtual environment, that environment's programs come
    first, as they do where a person has activated it.
    """
    left_out = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "TORCHPERF_DEBUG", "PYTEST_ADDOPTS"}
    left_out |= {"VIRTUAL_ENV"}
    clean = {name: value for name, value in os.environ.items() if name not in left_out}
    clean["FLAKE8_TORCHPERF_COMPILE"] = "0"
    # "no" is how pip takes `--no-compile`: what is imported compiles itself, all else need not.
    clean |= {"PIP_NO_COMPILE": "no", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if python is not None:
        clean["PATH"] = f"{python.parent}{os.pathsep}{clean['PATH']}"
        clean["VIRTUAL_ENV"] = str(python.parents[1])
    return clean


def attempt(
    *command: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a command, whatever its exit status."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean_environment() if env is None else env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


def call(
    *command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run a command that has to succeed; return what it printed."""
    done = attempt(*command, cwd=cwd, env=env)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def environment(folder: Path, python: str, *requirements: str | Path, pip: bool = False) -> Path:
    """A new virtual environment with the requirements; returns its interpreter.

    This Python's pip installs them; the environment has one of its own only with ``pip``.
    """
    call(python, "-m", "venv", "--without-pip", folder)
    interpreter = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if pip:
        _copy_pip(interpreter)
    if requirements:
        pip_of = (sys.executable, "-m", "pip", "--python", interpreter)
        call(*pip_of, "install", "--quiet", "--no-compile", *requirements)
    return interpreter


def _copy_pip(interpreter: Path) -> None:
    """Give an environment a copy of this Python's pip: ensurepip would take five seconds for one."""
    (theirs,) = interpreter.parents[1].glob("lib/python*/site-packages")
    ours = Path(str(Distribution.from_name("pip").locate_file("pip")))
    for folder in (ours, *ours.parent.glob("pip-*.dist-info")):
        shutil.copytree(folder, theirs / folder.name)
    script = interpreter.with_name("pip")
    script.write_text(f'#!/bin/sh\nexec "{interpreter}" -m pip "$@"\n', encoding="utf-8")
    script.chmod(0o755)


def installed_in(interpreter: Path) -> str:
    """The names and versions of what an environment holds, in lower case, one a line."""
    listed = (sys.executable, "-m", "pip", "--python", interpreter, "list", "--format=freeze")
    return call(*listed).lower()


def share_packages(interpreter: Path, *folders: Path) -> None:
    """Let an environment see the packages of the one that runs the tests, after its own.

    For what is too large to install once more: torch. ``folders`` hold further packages.
    """
    ours = {path for path in sys.path if path.endswith("site-packages")} | {*site.getsitepackages()}
    ours |= {str(folder) for folder in folders}
    lines = [f"import site; site.addsitedir({path!r})\n" for path in sorted(ours)]
    (theirs,) = interpreter.parents[1].glob("lib/python*/site-packages")
    (theirs / "shared.pth").write_text("".join(lines), encoding="utf-8")


def copy_checkout(folder: Path) -> Path:
    """The files that git knows or would add, copied: no build leaves anything in the checkout."""
    listed = call("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def pythons() -> dict[tuple[int, int], str]:
    """The interpreters found, from 3.10 up, that can make a virtual environment."""
    found = {}
    for minor in range(10, 20):
        names = [
            shutil.which(f"python3.{minor}"),
            *map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")),
        ]
        for name in filter(None, names):
            asked = subprocess.run([name, "-c", "import venv, ensurepip"], capture_output=True)
            if asked.returncode == 0:
                found[3, minor] = name
                break
    return found or {(sys.version_info.major, sys.version_info.minor): sys.executable}
