"""``fix --diff`` shows what ``fix`` writes: the same selection, the same count, the same files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from check_run import torchperf

STEP = """\
import torch


def step(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = x + torch.zeros(4).to(x.device)
    return x
"""
MASKED = """\
import torch


def step(x: torch.Tensor, mask: torch.Tensor):
    for _ in range(3):
        y = x[mask > 0].sum()
    return y
"""
# What `b` returns is known to be on the device only once the fix has been made there.
CALLED = {
    "p/__init__.py": "",
    "p/b.py": (
        "import torch\n\n\ndef start(x: torch.Tensor) -> torch.Tensor:\n"
        "    for _ in range(3):\n        y = torch.zeros(4).to(x.device)\n    return y\n"
    ),
    "p/a.py": (
        "import torch\nfrom p.b import start\n\n\ndef step(x: torch.Tensor):\n"
        "    for _ in range(3):\n        y = torch.ones(4).to(start(x).device)\n    return y\n"
    ),
}
PROGRAMS = {
    "one file": ({"model.py": STEP}, ()),
    "with a suggestion": ({"model.py": STEP, "masked.py": MASKED}, ()),
    "with unsafe fixes": ({"model.py": STEP, "masked.py": MASKED}, ("--unsafe",)),
    "with suggestions asked for": ({"model.py": STEP, "masked.py": MASKED}, ("--suggested",)),
    "files that lead to others": (CALLED, ()),
}


def made(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def texts(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*.py")}


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program patch")
@pytest.mark.parametrize(("files", "options"), PROGRAMS.values(), ids=PROGRAMS)
def test_the_diff_is_what_is_written(
    tmp_path: Path, files: dict[str, str], options: tuple[str, ...]
) -> None:
    shown, written = made(tmp_path / "shown", files), made(tmp_path / "written", files)
    diff = torchperf("fix", "--isolated", "--diff", *options, ".", cwd=shown)
    assert texts(shown) == files
    done = torchperf("fix", "--isolated", *options, ".", cwd=written)
    assert diff.errors.replace("would be fixed", "fixed") == done.errors
    if diff.output:
        subprocess.run(["patch", "-p0", "-s"], input=diff.output.encode(), cwd=shown, check=True)
    assert texts(shown) == texts(written)


def test_suggestions_are_headed_and_not_counted(tmp_path: Path) -> None:
    made(tmp_path, {"model.py": STEP, "masked.py": MASKED})
    plain = torchperf("fix", "--isolated", "--diff", ".", cwd=tmp_path)
    assert "suggested" not in plain.output + plain.errors
    assert "masked.py" not in plain.output
    asked = torchperf("fix", "--isolated", "--diff", "--suggested", ".", cwd=tmp_path)
    sure, _, suggested = asked.output.partition("suggested: ./masked.py\n")
    assert not sure  # files come in the order of their names
    assert suggested.startswith("--- ./masked.py\n+++ ./masked.py\n")
    assert "+++ ./model.py" in suggested
    assert "1 finding would be fixed in 1 file, " in asked.errors
    assert asked.errors.endswith("; 1 by suggested fixes\n")


def test_a_file_that_cannot_be_written_is_not_shown(tmp_path: Path) -> None:
    made(tmp_path, {"model.py": STEP})
    (tmp_path / "link.py").symlink_to(tmp_path / "model.py")
    for options in (("--diff",), ()):
        done = torchperf("fix", "--isolated", *options, "link.py", cwd=tmp_path)
        assert "link.py: not fixed: it is a symbolic link" in done.errors
        assert not done.output
