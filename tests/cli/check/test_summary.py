"""What ``torchperf check`` says of a whole run: the summary on a terminal, and statistics."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from check_run import check

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

from terminal import on_terminal

READ = """\
import torch


def largest(x: torch.Tensor) -> torch.Tensor:
    return x == x.max().item(), torch.zeros(3).to(x.device)


def train(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""
LOOP = """\
import torch


def found(grads: list[torch.Tensor]) -> bool:
    for grad in grads:
        for tensor in grad:
            if torch.isinf(tensor).any().item():
                return True
    return False
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("summary")
    (made / "read.py").write_text(READ)
    (made / "loop.py").write_text(LOOP)
    (made / "clean.py").write_text("import torch\n")
    return made


COMMAND = ("check", "--isolated", "--no-cache", "--min-worth=0")


def test_a_terminal_gets_a_line_at_the_end(folder: Path) -> None:
    run = on_terminal(*COMMAND, "--color=never", ".", cwd=folder)
    *lines, last = run.output.splitlines()
    assert lines == check(".", cwd=folder).output.splitlines()
    codes = "(2 TPF101, 1 TPF201, 1 TPF203, ...)"
    assert last == f"5 findings in 2 files {codes}, 1 per step, 2 per element; 1 with a safe fix"


def test_what_is_silenced_does_not_count(folder: Path) -> None:
    run = on_terminal(*COMMAND, "--select=TPF203", ".", cwd=folder)
    assert run.output.splitlines()[-1] == "1 finding in 1 file (1 TPF203), 1 per element"


@pytest.mark.parametrize("options", [["-q"], ["--format=json"], ["--format=pylint"], ["clean.py"]])
def test_no_line_where_none_is_of_use(folder: Path, options: list[str]) -> None:
    run = on_terminal(*COMMAND, *options, cwd=folder)
    assert run.output == check(*options, cwd=folder).output


def test_statistics_have_the_names_of_rules(folder: Path) -> None:
    expected = [
        "2     TPF101 read-of-a-tensor-value",
        "1     TPF201 iteration-over-a-tensor",
        "1     TPF203 nonfinite-check-per-tensor",
        "1     TPF501 made-on-the-host-then-moved",
    ]
    plain = check(".", cwd=folder).output.splitlines()
    assert check("--statistics", ".", cwd=folder).output.splitlines() == [*plain, *expected]
    grouped = check("--statistics", "--format=grouped", ".", cwd=folder).output.splitlines()
    assert grouped[-4:] == expected
    assert "  2 reads in train" not in grouped
    assert "  1 read in train" in grouped
    (folder / "broken.py").write_text("import torch\ndef (\n")
    run = check("--statistics", "--extend-select=E9", "broken.py", cwd=folder)
    assert "E999 SyntaxError" in run.output.splitlines()[-1]
    (folder / "broken.py").unlink()
