"""The compiled wheel, built and installed as a user does it: it finds what Python finds."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from environments import ROOT, attempt, call, clean_environment, copy_checkout, environment
from environments import share_packages as share

pytestmark = pytest.mark.slow

ASKED = {"FLAKE8_TORCHPERF_COMPILE": "1", "FLAKE8_TORCHPERF_COMPILE_LEVEL": "0"}
# The tests whose snippets go through the whole interpreter.
SNIPPETS = ("test_interpreter_*.py", "test_heat*.py", "test_moves.py", "test_bounds.py")


def build(folder: Path, **variables: str) -> tuple[Path, str]:
    """Build a wheel of the checkout; where it lies, and what was said where it failed."""
    source = copy_checkout(folder / "source")
    wheels = folder / "wheels"
    done = attempt(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", wheels, source),
        env={**clean_environment(), **ASKED, **variables},
    )
    return wheels, "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the compiled wheel."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(os.environ.get("CC", compiler)) is None:
        pytest.skip(f"no C compiler: there is no {compiler}")
    folder = tmp_path_factory.mktemp("compiled")
    wheels, problem = build(folder)
    assert not problem, problem
    (wheel,) = wheels.iterdir()
    assert "none-any" not in wheel.name
    return environment(folder / "env", sys.executable, wheel).parents[1]


def is_compiled(python: Path, folder: Path) -> bool:
    """Does this Python, started in a folder, import the compiled modules of its environment?"""
    said = (
        "from flake8_torchperf.interpret import unit, values; print(unit.__file__, values.__file__)"
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
    names = sorted(str(path) for glob in SNIPPETS for path in (ROOT / "tests").glob(glob))
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--import-mode=append")
    done = attempt(python, "-m", "pytest", *options, *names, cwd=compiled)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


def test_without_a_compiler_it_says_so(tmp_path: Path) -> None:
    _, said = build(tmp_path, CC=str(tmp_path / "cc"))
    assert "FLAKE8_TORCHPERF_COMPILE asks for a C compiler" in said
    assert "Traceback" not in said
