"""The wheel, installed far from the checkout: it holds what linting needs, and lints.

``test_the_oldest_versions_claimed`` installs the lowest versions that setup.cfg claims, on the oldest Python found.
"""

from __future__ import annotations

import configparser
import tarfile
import zipfile
from pathlib import Path

import pytest
from check_run import torchperf
from environments import ROOT, attempt, call, environment, installed_in, pythons
from flake8_run import flake8

READS_IN_A_LOOP = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]
"""

pytestmark = pytest.mark.slow


def test_the_wheel_holds_pages_and_table(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    pages = {Path(name).name for name in names if name.startswith("flake8_torchperf/rules/")}
    assert {path.name for path in (ROOT / "rules").glob("TPF*.md")} <= pages
    assert "flake8_torchperf/knowledge/torch_table.json" in names
    assert "flake8_torchperf/skills/torchperf/SKILL.md" in names
    assert {"flake8_torchperf/py.typed", "torchperf/py.typed"} <= set(names)
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "flake8_torchperf",
        "torchperf",
    }


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
    names = installed_in(installed)
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


@pytest.fixture(scope="module")
def oldest(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the oldest Python found and the lowest versions."""
    version, name = min(pythons().items())
    folder = tmp_path_factory.mktemp("oldest") / "env"
    return environment(folder, name, wheel, *lowest_requirements(version))


def test_the_oldest_versions_claimed(oldest: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(READS_IN_A_LOOP, encoding="utf-8")
    run = flake8("--select=TPF", file, cwd=tmp_path, python=oldest)
    assert run.codes == ["TPF101"], run.errors
    options = ("--select=TPF", "-j1", "--torchperf-min-worth=0")
    fixtures = flake8(*options, ROOT / "fixtures", python=oldest)
    newest = flake8(*options, ROOT / "fixtures")
    # flake8 5 prints the files in another order.
    assert sorted(fixtures.results, key=repr) == sorted(newest.results, key=repr)
    assert fixtures.results


def test_the_sdist_holds_what_the_tests_and_the_readme_need(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = call("git", "ls-files", "-z", cwd=ROOT)
    ours = {name for name in filter(None, listed.split("\0")) if (ROOT / name).is_file()}
    assert {name for name in ours - names if not name.startswith((".ci/", ".git"))} == set()


@pytest.mark.thorough
def test_the_index_would_take_both(
    distributions: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What ``twine upload`` and a reader of the wheel would object to."""
    folder = tmp_path_factory.mktemp("checkers") / "env"
    python = environment(folder, pythons()[max(pythons())], "twine", "check-wheel-contents")
    files = sorted(distributions.iterdir())
    assert len(files) == 2
    said = call(python, "-m", "twine", "check", "--strict", *files)
    assert said.count("PASSED") == 2
    checked = attempt(python, "-m", "check_wheel_contents", distributions)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_explain_needs_no_rich(installed: Path, tmp_path: Path) -> None:
    names = installed_in(installed)
    assert "rich==" not in names
    done = attempt(installed, "-m", "flake8_torchperf.cli.main", "explain", "TPF203", cwd=tmp_path)
    assert done.stdout.startswith("# nonfinite-check-per-tensor (TPF203)\n")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "release",
    ["5.0.4", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("6.0.0", "7.0.0"))],
)
def test_check_prints_what_an_older_flake8_prints(
    wheel: Path, oldest: Path, tmp_path: Path, release: str
) -> None:
    if f"flake8=={release}" in installed_in(oldest):
        python = oldest
    else:
        _, name = min(pythons().items())
        python = environment(tmp_path / "env", name, wheel, f"flake8=={release}")
    options = ("--isolated", "-j2", "--torchperf-scope=all", ROOT / "fixtures")
    plain = flake8("--select=TPF", *options[1:], cwd=tmp_path, python=python)
    assert plain.output
    for turn in ("first", "second"):
        found = torchperf(
            "check",
            *options,
            cache=tmp_path / "cache",
            program=(str(python), "-m", "flake8_torchperf.cli.main"),
            cwd=tmp_path,
        )
        assert (found.output, found.errors) == (plain.output, ""), turn
        assert found.status == plain.status
