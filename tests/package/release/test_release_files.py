"""The files that a release needs say the same as the package: version, dependencies, licence."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path

import tomli

from flake8_torchperf import __version__

ROOT = Path(__file__).resolve().parents[3]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
RECIPE = (ROOT / "tools" / "conda" / "meta.yaml").read_text(encoding="utf-8")


def test_every_file_has_the_version_of_the_package() -> None:
    assert re.findall(r"^version: (.*)$", CITATION, re.MULTILINE) == [__version__]
    assert re.findall(r'set version = "(.*)"', RECIPE) == [__version__]


def test_what_stands_beside_the_package_has_its_version() -> None:
    extension = json.loads((ROOT / "editors" / "vscode" / "package.json").read_bytes())
    page = (ROOT / "docs" / "editors-and-notebooks.md").read_text(encoding="utf-8")
    named = re.findall(r"rev: v(\S+)\n +hooks:\n +- id: torchperf\n", page)
    assert named + re.findall(r"flake8-torchperf==([\w.]+)", page) == [__version__] * 2
    assert extension["version"] == __version__


def test_wheels_are_compiled_for_each_python_that_is_supported() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    supported = re.findall(r"Python :: 3\.(\d+)", config["metadata"]["classifiers"])
    tools = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert tools["cibuildwheel"]["build"].split() == [f"cp3{minor}-*" for minor in supported]
    assert config["options"]["python_requires"] == f">=3.{supported[0]}"


def test_the_recipe_needs_what_the_package_needs() -> None:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    needed = config["options"]["install_requires"].strip().splitlines()
    wanted = {one.partition(";")[0].replace(">=", " >=") for one in needed}
    run = RECIPE.partition("  run:\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"- (\S+ >=\S+)", run)) - {"python >=3.10"} == wanted
    assert f"python {config['options']['python_requires'].replace('>=', '>=')}" in run


def test_the_changelog_begins_with_what_is_not_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(.*?)\]", text, re.MULTILINE)[0] == "Unreleased"


def test_the_checklist_names_files_and_commands_that_exist() -> None:
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\d+\. ", page, re.MULTILINE)) == 10
    for name in re.findall(r"`(?:bash |python )?([\w./-]+\.(?:py|cff|yaml))", page):
        assert (ROOT / name).is_file(), name
    for name in re.findall(r"bash (\S+?)`", page):
        assert (ROOT / name).is_file(), name
