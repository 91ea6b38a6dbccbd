"""The compiled wheel, built and installed as a user does it: it finds what Python finds."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
import tomli
from compiling import PYTHONS
from environments import ROOT, attempt, call, clean_environment, copy_checkout, environment
from environments import share_packages as share

pytestmark = pytest.mark.thorough

VARIABLE = "FLAKE8_TORCHPERF_COMPILE"
# The tests whose snippets go through the whole interpreter.
SNIPPETS = ("test_interpreter_*.py", "test_heat*.py", "test_moves.py", "test_bounds.py")


def build(
    folder: Path, wish: str = "auto", *, only: str = "", **variables: str
) -> tuple[Path | None, str]:
    """Build a wheel of the checkout as a user does who sets the variable.

    Returns the wheel, None where there is none, and what was said. ``only`` compiles one of the
    packages, for what is the same with all.
    """
    settings = {**clean_environment(), f"{VARIABLE}_LEVEL": "0", **variables}
    settings[VARIABLE] = wish
    wheels = folder / "wheels"
    command = (sys.executable, "-m", "pip", "wheel", "-v", "--no-deps", "--wheel-dir", wheels)
    source = copy_checkout(folder / "source")
    if only:
        script = source / "setup.py"
        text, changed = re.subn(
            r"(?ms)^COMPILED = \(.*?^\)$", f'COMPILED = ("{only}",)', script.read_text()
        )
        assert changed == 1
        script.write_text(text)
    done = attempt(*command, source, env=settings)
    made = list(wheels.glob("*.whl"))
    assert (done.returncode == 0) == (len(made) == 1), done.stdout + done.stderr
    return made[0] if made else None, done.stdout + done.stderr


@pytest.fixture(scope="module")
def compiler() -> str:
    """The C compiler that Python asks for."""
    name = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no C compiler: there is no {name}")
    return found


@pytest.fixture(scope="module")
def compiled(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel that is built where nobody asks for anything."""
    folder = tmp_path_factory.mktemp("compiled")
    wheel, said = build(folder)
    assert wheel is not None, said
    assert "none-any" not in wheel.name
    return environment(folder / "env", sys.executable, wheel).parents[1]


def is_compiled(python: Path, folder: Path) -> bool:
    """Does this Python, started in a folder, import the compiled modules of its environment?"""
    said = (
        "from flake8_torchperf.values import values\n"
        "from flake8_torchperf.interpreter.driver import function_analysis\n"
        "print(function_analysis.__file__, values.__file__)"
    )
    return all(
        place.endswith(sysconfig.get_config_var("EXT_SUFFIX"))
        and Path(place).is_relative_to(python.parents[1])
        for place in call(python, "-c", said, cwd=folder).split()
    )


def test_it_is_compiled(compiled: Path, tmp_path: Path) -> None:
    assert is_compiled(compiled / "bin" / "python", tmp_path)


def test_it_finds_what_python_finds(compiled: Path) -> None:
    torch = Path(call(sys.executable, "-c", "import torch; print(torch.__path__[0])").strip())
    paths = [ROOT / "fixtures", ROOT / "tests", torch / "nn", torch / "optim"]
    script = ROOT / "benchmarks" / "same_findings.py"
    done = attempt(
        *(sys.executable, script, "--jobs", "1", "--before", ROOT, "--after", compiled, *paths)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [int(line.split()[-2]) for line in done.stdout.splitlines() if "the same" in line]
    assert len(counts) == 2 * len(paths)
    assert sum(counts) > 200


def test_snippets_give_what_python_gives(compiled: Path) -> None:
    python = compiled / "bin" / "python"
    share(python)
    assert is_compiled(python, compiled)
    names = sorted(str(path) for glob in SNIPPETS for path in (ROOT / "tests" / "lint").rglob(glob))
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--import-mode=append", "-m", "")
    done = attempt(python, "-m", "pytest", *options, *names, cwd=compiled)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


def lints(folder: Path, wheel: Path | None) -> None:
    """Check that a wheel holds nothing compiled, and finds something."""
    assert wheel is not None
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if not is_plain(name)]
    python = environment(folder / "env", sys.executable, wheel)
    source = ROOT / "fixtures" / "issue82206_sharded_grad_scaler" / "before.py"
    done = attempt(*(python, "-m", "flake8", "--isolated", "--select", "TPF", source), cwd=folder)
    assert (done.returncode, done.stderr) == (1, "")
    assert "TPF101" in done.stdout


def is_plain(name: str) -> bool:
    """Is a wheel's file none that a compiler made?"""
    return not name.endswith((".so", ".pyd", ".dylib"))


def test_without_a_compiler_it_stays_python(tmp_path: Path) -> None:
    wheel, said = build(tmp_path, CC=str(tmp_path / "cc"))
    assert "flake8-torchperf stays plain Python: no C compiler that finds Python's" in said
    assert wheel is not None
    assert "none-any" in wheel.name
    lints(tmp_path, wheel)


def test_where_the_compiler_fails_it_stays_python(compiler: str, tmp_path: Path) -> None:
    """It compiles the headers, one source, and no other: what is made by then is of no use."""
    script, compiled = tmp_path / "cc", tmp_path / "compiled"
    script.write_text(
        f"""#!/bin/sh
case "$*" in *___*.c*)
    mkdir {compiled} 2>/dev/null || exit 1
esac
exec {compiler} "$@"
"""
    )
    script.chmod(0o755)
    wheel, said = build(tmp_path, only="knowledge", CC=str(script))
    assert compiled.is_dir()
    assert "flake8-torchperf stays plain Python: the C compiler failed: " in said
    lints(tmp_path, wheel)


def test_asked_for_without_a_compiler_it_says_so(tmp_path: Path) -> None:
    wheel, said = build(tmp_path, "1", CC=str(tmp_path / "cc"))
    assert wheel is None
    assert f"{VARIABLE} asks for what cannot be: no C compiler" in said
    assert "Traceback" not in said


def test_published_wheels_are_of_the_pythons_that_are_compiled_for() -> None:
    published = tomli.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert published["build"].split() == [f"cp{major}{minor}-*" for major, minor in PYTHONS]
