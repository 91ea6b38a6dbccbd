"""The VS Code extension: its settings are the linter's; it builds, passes its tests and packs."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from environments import ROOT
from hangs import HANG

from flake8_torchperf.findings.rule import SITE
from flake8_torchperf.options import SETTINGS

HERE = ROOT / "editors" / "vscode"


def test_package_json_has_the_current_settings() -> None:
    text = (HERE / "package.json").read_text(encoding="utf-8")
    current = runpy.run_path(str(HERE / "settings.py"))["current"]
    assert text == current(text), "run editors/vscode/settings.py"


def test_the_page_of_the_marketplace_has_the_current_settings() -> None:
    """And its picture: one of the documentation's site, since the extension has no other address."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    page = runpy.run_path(str(HERE / "settings.py"))["current_page"]
    assert text == page(text), "run editors/vscode/settings.py"
    assert "| `torchperf.scope` | " in text
    (picture,) = re.findall(r"!\[.*\]\((.*)\)", text)
    assert picture.startswith(f"{SITE}_static/")
    assert (ROOT / "docs" / "_static" / picture.rpartition("/")[2]).is_file()


def test_why_gets_the_settings_that_it_takes() -> None:
    source = (HERE / "src" / "settings.ts").read_text(encoding="utf-8")
    listed = re.search(r"NOT_FOR_WHY = (\[.*\]);", source)
    assert listed is not None
    assert json.loads(listed[1]) == [one.name for one in SETTINGS if not one.finds]


def npm(*words: str, folder: Path) -> str:
    """Run npm; return what it printed."""
    program = shutil.which("npm")
    assert program is not None
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    python = {"TORCHPERF_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "PATH": scripts}
    done = subprocess.run(
        [program, *words],
        cwd=folder,
        env={**os.environ, **python},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, f"npm {' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.thorough
def test_it_builds_passes_its_tests_and_packs() -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    asked = subprocess.run(
        [shutil.which("npm") or "npm", "ping"], capture_output=True, timeout=HANG, check=False
    )
    if asked.returncode:
        pytest.skip("the npm registry does not answer")
    npm("ci", "--no-audit", "--no-fund", folder=HERE)
    npm("run", "package", folder=HERE)
    npm("test", folder=HERE)
    names = set(zipfile.ZipFile(HERE / "torchperf.vsix").namelist())
    inside = {name.removeprefix("extension/") for name in names if name.startswith("extension/")}
    assert {"package.json", "readme.md", "out/extension.js"} <= inside
    assert "bundled/flake8_torchperf/server/app.py" in inside
    assert any(
        re.match(r"bundled/flake8_torchperf-.*\.dist-info/entry_points\.txt$", one)
        for one in inside
    )
    tops = {one.split("/")[0] for one in inside}
    assert tops == {"package.json", "readme.md", "out", "bundled"}
    assert not any(one.endswith((".so", ".pyd", ".dylib")) for one in inside)
