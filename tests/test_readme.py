"""README.md says what is so: its generated parts are current and its configuration is accepted."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from flake8_run import flake8

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_generated_parts_are_current() -> None:
    tool = ROOT / "tools" / "update_readme.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_option_is_documented_and_every_documented_option_exists() -> None:
    offered = set(re.findall(r"--torchperf-\w+", flake8("--help").output))
    assert offered == set(re.findall(r"--torchperf-\w+", TEXT))


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


def test_links_to_files_lead_somewhere() -> None:
    links = re.findall(r"\]\((?!http|#)([^)#]+)", TEXT)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
