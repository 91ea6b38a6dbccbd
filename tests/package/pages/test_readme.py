"""README.md and docs/: generated parts are current, options exist, examples and links work."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest
from check_run import check
from documents import README, ROOT, TEXT, broken_links, with_links
from flake8_run import flake8

from flake8_torchperf.runtime.recorded_tests import SAVE

RUNNABLE = re.findall(
    r"<!-- tests/package/pages/test_readme\.py runs this -->\n```python\n(.*?)```", TEXT, re.DOTALL
)

NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@NEEDS_TORCH
def test_generated_parts_are_current() -> None:
    tool = ROOT / "tools" / "update_readme.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_option_is_documented_and_every_documented_option_exists() -> None:
    """In README.md, where one looks for it; the pages in docs/ name no other."""
    option = re.compile(r"--(?:no-)?torchperf-[\w-]+")
    offered = set(option.findall(flake8("--help").output))
    assert offered == set(option.findall(README))
    assert set(option.findall(TEXT)) == {*offered, SAVE}  # the last is pytest's


def test_the_readme_stays_short() -> None:
    assert len(README.splitlines()) <= 250


def test_the_configuration_example_is_accepted(tmp_path: Path) -> None:
    (block,) = re.findall(r"```ini\n(\[flake8\].*?)```", TEXT, re.DOTALL)
    pages = tmp_path / "perf-rules"
    pages.mkdir()
    page = (ROOT / "rules" / "TPF205-tensor-grown-in-a-loop.md").read_text(encoding="utf-8")
    page = page.replace("TPF205", "TPF705").replace("tensor-grown-in-a-loop", "our-own-growth")
    (pages / "TPF705-our-own-growth.md").write_text(page, encoding="utf-8")
    (tmp_path / "tox.ini").write_text(block, encoding="utf-8")
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    run = flake8("empty.py", cwd=tmp_path, isolated=False)
    assert (run.status, run.output, run.errors) == (0, "", "")


def test_the_tables_for_pyproject_are_accepted(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(\[tool\.torchperf\].*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 3
    (tmp_path / "perf-rules").mkdir()
    (tmp_path / "perf-rules" / "conventions.toml").write_text("", encoding="utf-8")
    check("--isolated", "--write-baseline", "torchperf-baseline.json", cwd=tmp_path)
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    for block in blocks:
        (tmp_path / "pyproject.toml").write_text(block, encoding="utf-8")
        run = flake8("empty.py", cwd=tmp_path, isolated=False)
        assert (run.status, run.output, run.errors) == (0, "", "")


def test_the_page_that_is_shown_is_the_page_that_is_kept() -> None:
    (shown,) = re.findall(r"<!-- page: .* -->\n```toml\n(.*?)```", TEXT, re.DOTALL)
    (page,) = (ROOT / "fixtures" / "team_rules" / "perf-rules").glob("*.md")
    assert page.read_text(encoding="utf-8").split("+++\n")[1] == shown


def test_the_conventions_that_are_shown_are_accepted(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(\[\[convention\]\].*?)```", TEXT, re.DOTALL)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "conventions.toml").write_text(block, encoding="utf-8")
    source = "import torch\n\n\ndef tabulate_losses(x: torch.Tensor) -> None:\n    print(x)\n"
    (tmp_path / "tables.py").write_text(source, encoding="utf-8")
    words = ("--select=TPF", "--torchperf-scope=all", "--torchperf-explain", "tables.py")
    run = flake8("--torchperf-rules=rows/", *words, cwd=tmp_path)
    assert run.errors == ""
    assert "hidden by default: convention table-writers" in run.output


def test_a_mistake_in_a_page_is_one_line_with_file_and_line(tmp_path: Path) -> None:
    """Of flake8, whichever way it is told of the page."""
    (page,) = (ROOT / "fixtures" / "team_rules" / "perf-rules").glob("*.md")
    broken = page.read_text(encoding="utf-8").replace('heat = "hot"', 'haet = "hot"')
    (tmp_path / "perf-rules").mkdir()
    (tmp_path / "perf-rules" / page.name).write_text(broken, encoding="utf-8")
    (tmp_path / "tox.ini").write_text("[flake8]\ntorchperf-rules = ./perf-rules\n")
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    run = flake8("empty.py", cwd=tmp_path, isolated=False)
    place = (
        f"{tmp_path / 'perf-rules' / page.name}:{broken[: broken.index('haet')].count(chr(10)) + 1}"
    )
    problem = "unknown key 'haet' in [match]; did you mean 'heat'?"
    assert run.errors == f"flake8: error: --torchperf-rules: {place}: {problem}\n"
    assert (run.status, run.output) == (2, "")
    assert flake8("--torchperf-rules=perf-rules/", "empty.py", cwd=tmp_path).errors == run.errors


@pytest.mark.parametrize(
    "document", with_links(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_links_to_files_and_headings_lead_somewhere(document: Path) -> None:
    assert list(broken_links(document)) == []


def test_a_link_to_a_file_or_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# `a`: The page, at once\n[1](#a-the-page-at-once) [2](#elsewhere) [3](none.md)\n"
        "[4](page.md#a-the-page-at-once) [5](https://example.org/#x)\n```\n[6](none.md)\n```\n"
    )
    assert list(broken_links(page)) == ["#elsewhere", "none.md"]


def test_times_and_versions_may_differ_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    same = importlib.import_module("update_readme").same
    line = (
        "t.py:1:1: TPF301 [8 host reads, 0.12 ms in operations]\n1 missed in 1.35 s on cpu with x"
    )
    assert same(line, line.replace("0.12 ms", "1,200 s").replace("1.35 s on cpu", "2.0 s on cuda"))
    assert not same(line, line.replace("8 host", "9 host"))
    assert not same(line, line.replace("1 missed", "2 missed"))


def test_only_what_times_sort_may_stand_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "tools")
    same = importlib.import_module("update_readme").same
    slow, fast = "a.py:1 [8 host reads, 8.24 ms]", "a.py:2 [8 host reads, 82 µs]"
    assert same(f"{slow}\n{fast}", f"{fast}\n{slow}", by_time=True)
    assert not same(f"{slow}\n{fast}", f"{fast}\n{slow}")


@NEEDS_TORCH
@pytest.mark.parametrize("example", RUNNABLE)
@pytest.mark.slow
def test_runtime_examples_run(example: str, tmp_path: Path) -> None:
    """As tests, where they are tests; a script whose output is shown prints what is shown."""
    (tmp_path / "test_example.py").write_text(example, encoding="utf-8")
    pytest_options = ["-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider"]
    # Where the package is installed, pytest loads the plugin by itself and refuses it twice.
    if not entry_points(group="pytest11", name="torchperf"):
        pytest_options += ["-p", "flake8_torchperf.runtime.api.pytest_plugin"]
    is_test = "def test_" in example
    done = subprocess.run(
        [sys.executable, *(pytest_options if is_test else ["test_example.py"])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if not is_test:
        shown = TEXT.split(example)[1].split("```")[2].splitlines()
        for line in shown:
            if line.startswith(("Metric", "Counter", "  TotalSamples", "  Value")):
                assert line in done.stdout.splitlines()


def test_the_runtime_examples_are_found() -> None:
    assert len(RUNNABLE) == 3


@pytest.mark.parametrize("command", ["confirm", "run"])
def test_every_option_that_is_documented_for_a_command_exists(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flake8_torchperf.cli.main", command, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    options = done.stdout.partition("\nexample:")[0]  # an example may give the script options
    # Each setting has a long name too, as flake8 spells it.
    offered = {word for word in re.findall(r"--[a-z][a-z-]+", options) if "torchperf" not in word}
    page = (ROOT / "docs" / "confirm-and-run.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## `torchperf {command}`\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.M)
    named = {word for word in re.findall(r"--[a-z][a-z-]+", section) if "torchperf" not in word}
    assert named
    assert named <= offered
    assert offered - {"--help"} == named


@pytest.mark.thorough
def test_the_command_that_lints_the_fixtures_finds_something() -> None:
    """The README's first command, with the checkout's own configuration, not around it.

    The slow tests run it where test_readme_commands.py installs the checkout, and so does .ci/run.
    """
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--select", "TPF", "fixtures"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "fixtures/issue82206_sharded_grad_scaler/before.py:" in done.stdout
    assert "TPF203" in done.stdout


def test_the_pictures_show_what_is_found_today() -> None:
    """Written by tools/terminal_pictures.py; the words of a message stand in pieces in an SVG."""
    picture = (ROOT / "docs" / "_static" / "check.svg").read_text(encoding="utf-8")
    shown = "".join(re.findall(r"<text[^>]*>(.*?)</text>", picture)).replace("&#160;", " ")
    example = README.partition("<!-- example: ")[2].partition("<!-- end of example -->")[0]
    file = example.split("\n$ ")[1].split("\n")[0].split()[-1]
    codes = re.findall(r": (TPF\d{3}) ", flake8("--select=TPF", file, cwd=ROOT).output)
    assert codes
    assert re.findall(r": (TPF\d{3}) ", shown) == codes
    for name in re.findall(r"docs/_static/\w+\.svg", README):
        assert (ROOT / name).is_file()
