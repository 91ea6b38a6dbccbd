"""The wheel, installed far from the checkout: it holds what linting needs, and lints.

``test_the_oldest_versions_claimed`` installs the lowest versions that setup.cfg claims, on the oldest Python found.
"""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from flake8_run import flake8

ROOT = Path(__file__).parents[1]
READS_IN_A_LOOP = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]
"""

pytestmark = pytest.mark.slow


def call(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command that has to succeed; return what it printed."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the files that git knows or would add."""
    source = tmp_path_factory.mktemp("source")
    listed = call("git", "ls-files", "-co", "--exclude-standard", "-z", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    built = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", built, source)
    (path,) = built.glob("*.whl")
    return path


def environment(folder: Path, python: str, *requirements: str | Path) -> Path:
    """A new virtual environment with the requirements; returns its interpreter."""
    call(python, "-m", "venv", folder)
    interpreter = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    call(interpreter, "-m", "pip", "install", "--quiet", *requirements)
    return interpreter


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("installed") / "env", sys.executable, wheel)


def test_the_wheel_holds_pages_and_table(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    pages = {Path(name).name for name in names if name.startswith("flake8_torchperf/rules/")}
    assert {path.name for path in (ROOT / "rules").glob("TPF*.md")} <= pages
    assert "flake8_torchperf/knowledge/torch_table.json" in names
    assert "flake8_torchperf/py.typed" in names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"flake8_torchperf"}


def test_the_wheel_holds_every_module_and_data_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    listed = call("git", "ls-files", "-z", "flake8_torchperf", cwd=ROOT)
    files = {name for name in filter(None, listed.split("\0")) if (ROOT / name).is_file()}
    assert any(name.endswith(".html") for name in files)
    assert files <= names


def test_it_lints_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(READS_IN_A_LOOP, encoding="utf-8")
    run = flake8("--select=TPF", file, cwd=tmp_path, python=installed)
    assert run.codes == ["TPF101"], run.errors
    place = call(
        installed,
        "-c",
        "import flake8_torchperf.findings.catalogue as c; print(c.load_catalogue().rules[0].path)",
        cwd=tmp_path,
    )
    assert "site-packages" in place
    assert Path(place.strip()).parts[-3:-1] == ("flake8_torchperf", "rules")


def test_it_needs_neither_torch_nor_numpy(installed: Path) -> None:
    names = call(installed, "-m", "pip", "list", "--format=freeze").lower()
    assert "torch==" not in names
    assert "numpy==" not in names


def lowest_requirements(python: tuple[int, int]) -> list[str]:
    """The lower bounds of setup.cfg as exact versions, for one version of Python."""
    from packaging.requirements import Requirement

    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    version = f"{python[0]}.{python[1]}"
    lowest: dict[str, str] = {}
    for line in filter(None, config["options"]["install_requires"].splitlines()):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"python_version": version}):
            (bound,) = [one.version for one in requirement.specifier if one.operator == ">="]
            lowest[requirement.name] = f"{requirement.name}=={bound}"
    return sorted(lowest.values())


def oldest_python() -> tuple[str, tuple[int, int]]:
    """The oldest Python from 3.10 up that starts, or the one running the tests."""
    for minor in range(10, sys.version_info.minor):
        found = [
            shutil.which(f"python3.{minor}"),
            *map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python")),
        ]
        for name in filter(None, found):
            asked = subprocess.run([name, "-c", "import venv, ensurepip"], capture_output=True)
            if asked.returncode == 0:
                return name, (3, minor)
    return sys.executable, (3, sys.version_info.minor)


def test_the_oldest_versions_claimed(wheel: Path, tmp_path: Path) -> None:
    name, version = oldest_python()
    python = environment(tmp_path / "env", name, wheel, *lowest_requirements(version))
    file = tmp_path / "model.py"
    file.write_text(READS_IN_A_LOOP, encoding="utf-8")
    run = flake8("--select=TPF", file, cwd=tmp_path, python=python)
    assert run.codes == ["TPF101"], run.errors
    fixtures = flake8("--select=TPF", "-j1", ROOT / "fixtures", python=python)
    newest = flake8("--select=TPF", "-j1", ROOT / "fixtures")
    assert fixtures.results == newest.results
