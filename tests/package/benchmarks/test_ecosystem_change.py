"""benchmarks/ecosystem_change.py: new and gone findings, by rule, cost and residence, with links."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from linting import TRAINING_STEP as STEP

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from ecosystem_change import MOST_LISTED, PACKAGES, Told, report  # noqa: E402


def told(line: int, code: str = "TPF101", cost: str = "per step") -> Told:
    return Told("timm", "timm/a.py", line, 5, code, "`x.item()` waits", cost, "unknown")


def test_what_is_new_and_gone_is_counted_and_linked() -> None:
    text = report([told(1), told(2)], [told(2), told(3, "TPF301", "per element")])
    assert text.startswith("**1 new** and **1 gone** of 2 findings.\n")
    assert "| TPF101 | 0 | 1 |\n| TPF301 | 1 | 0 |" in text
    assert "| per element | 1 | 0 |\n| per step | 0 | 1 |" in text
    assert "| unknown | 1 | 1 |" in text
    package = PACKAGES["timm"]
    link = f"https://github.com/{package.repository}/blob/{package.revision}/timm/a.py#L3"
    assert f"[timm/a.py:3]({link}) TPF301" in text


def test_a_long_list_is_cut() -> None:
    text = report([], [told(line) for line in range(MOST_LISTED + 3)])
    assert "- and 3 more" in text
    assert "| TPF101 | 63 | 0 |" in text


def test_the_same_linter_finds_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "nanoGPT"
    folder.mkdir()
    (folder / "train.py").write_text(STEP)
    command = [sys.executable, str(ROOT / "benchmarks" / "ecosystem_change.py")]
    words = ["--before", str(ROOT), "--clones", str(tmp_path), "--only", "nanoGPT"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "**0 new** and **0 gone** of 1 findings.\n\n"


def test_an_unknown_package_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "ecosystem_change.py")]
    words = ["--before", str(ROOT), "--clones", str(tmp_path), "--only", "nanogpt"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "no package nanogpt; known are " + ", ".join(PACKAGES)
    )
