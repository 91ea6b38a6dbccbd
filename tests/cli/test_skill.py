"""`torchperf skill`: the file follows the format, its commands work, and an edited copy is kept."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from check_run import torchperf
from environments import clean_environment

from flake8_torchperf.cli.main import main
from flake8_torchperf.cli.skill.command import PLACE, installed_text, skill_text

ROOT = Path(__file__).parents[2]
# Step 1 shows two ways to start a workload. Line 41 is the one that the skill asks `why` about.
WORKLOAD = """\
import torch

from src.train import train


def test_step():
    assert train(8, torch.device("cpu")) > 0


if __name__ == "__main__":
    train(8, torch.device("cpu"))
"""
TRAINING = (
    "import torch\n" + "\n" * 28 + "\n"
    "def train(steps: int, device: torch.device) -> float:\n"
    "    model = torch.nn.Linear(4, 2, device=device)\n"
    "    optimizer = torch.optim.SGD(model.parameters())\n"
    "    total = 0.0\n"
    "    for _ in range(steps):\n"
    "        x = torch.ones(3, 4, device=device)\n"
    "        loss = (model(x) * torch.ones(x.shape[0], 1).to(x.device)).square().sum()\n"
    "        loss.backward()\n"
    "        optimizer.step()\n"
    "        optimizer.zero_grad()\n"
    "        total += loss.item()\n"
    "    return total\n"
)
# A line of the skill begins with one of these; check and fix exit with 1, since findings are left.
STATUS = {"run": 0, "check": 1, "why": 0, "explain": 0, "fix": 1, "compare": 0}


def commands() -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", skill_text(), re.DOTALL | re.MULTILINE)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_the_front_matter_follows_the_format() -> None:
    """Name and description are as https://agentskills.io/specification asks."""
    head = re.match(r"---\nname: (.*)\ndescription: >-\n((?:  .*\n)+)", skill_text())
    assert head is not None
    assert head[1] == PLACE.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", head[1])
    assert 0 < len(" ".join(head[2].split())) <= 1024
    assert len(skill_text().splitlines()) < 150


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == (ROOT / "skills" / PLACE).read_text(encoding="utf-8")


def test_its_python_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", skill_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1
    for block in blocks:
        code = f"class total:\n    item = int\n{block}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_every_rule_it_names_exists() -> None:
    named = set(re.findall(r"TPF\d{3}", skill_text()))
    assert named
    for code in named:
        assert list((ROOT / "rules").glob(f"{code}-*.md")), code


@pytest.mark.thorough
def test_its_commands_work_in_their_order(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert TRAINING.splitlines()[40].endswith("loss.item()")
    files = {"train.py": WORKLOAD, "tests/test_step.py": WORKLOAD, "src/train.py": TRAINING}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert {words[1] for words in commands()} == set(STATUS)
    for program, *words in commands():
        assert program == "torchperf"
        done = torchperf(*words, cwd=tmp_path, cache=tmp_path / "cache")
        assert done.status == STATUS[words[0]], (words, done.output, done.errors)
    assert "torch.ones(x.shape[0], 1, device=x.device)" in (tmp_path / "src/train.py").read_text()


def install(folder: Path, status: int = 0) -> str:
    done = torchperf("skill", "--install", folder)
    assert done.status == status, done.errors
    assert not (done.output if status else done.errors)
    return done.errors if status else done.output


def test_it_is_installed_into_a_new_folder(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "skills" / PLACE
    assert install(tmp_path / ".claude" / "skills") == f"{path}: written\n"
    assert path.read_text(encoding="utf-8") == installed_text(skill_text())
    assert install(tmp_path / ".claude" / "skills") == f"{path}: is up to date\n"


@pytest.mark.parametrize(
    "old", [installed_text("an older version\n"), skill_text()], ids=["older", "printed"]
)
def test_what_nobody_edited_is_replaced(tmp_path: Path, old: str) -> None:
    path = tmp_path / PLACE
    path.parent.mkdir()
    path.write_text(old, encoding="utf-8")
    assert install(tmp_path) == f"{path}: replaced\n"
    assert path.read_text(encoding="utf-8") == installed_text(skill_text())


@pytest.mark.parametrize(
    "kept",
    [
        "another skill\n",
        installed_text("an older version\n").replace("older", "edited"),
        f"{installed_text(skill_text())}a line more\n",
    ],
    ids=["another", "edited", "longer"],
)
def test_what_somebody_wrote_is_kept(tmp_path: Path, kept: str) -> None:
    path = tmp_path / PLACE
    path.parent.mkdir()
    path.write_text(kept, encoding="utf-8")
    problem = "was edited, or is not ours; move it away, and install again"
    assert install(tmp_path, status=2) == f"torchperf: skill: {path} {problem}\n"
    assert path.read_text(encoding="utf-8") == kept


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = install(tmp_path / "file", status=2)
    path = tmp_path / "file" / PLACE
    assert said == f"torchperf: skill: {path} cannot be written: Not a directory\n"
    (tmp_path / "torchperf").write_text("")
    said = install(tmp_path, status=2)
    assert said == f"torchperf: skill: {tmp_path / 'torchperf'} is no folder; name another DIR\n"


def hook() -> str:
    """The command of the stop hook that docs/agents.md shows."""
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (block,) = [one for one in blocks if '"hooks"' in one]
    ((entry,),) = [one["hooks"] for one in json.loads(block)["hooks"]["Stop"]]
    assert entry["type"] == "command"
    return str(entry["command"])


def stop(folder: Path, *, active: bool) -> subprocess.CompletedProcess[str]:
    """Run the hook as an agent does: in a shell, with JSON on standard input."""
    return subprocess.run(
        ["sh", "-c", hook()],
        cwd=folder,
        env={**clean_environment(Path(sys.executable)), "TORCHPERF_CACHE_DIR": str(folder.parent)},
        input=json.dumps({"hook_event_name": "Stop", "stop_hook_active": active}),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(os.name != "posix", reason="the hook is a line for sh")
def test_the_hook_tells_of_changed_lines_once(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    name = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (["init", "-q"], [*name, "commit", "-q", "--allow-empty", "-m", "empty"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    done = stop(project, active=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (project / "train.py").write_text(TRAINING, encoding="utf-8")
    done = stop(project, active=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "train.py:41:" in done.stderr
    done = stop(project, active=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    subprocess.run(["git", *name, "commit", "-q", "-m", "old"], cwd=project, check=True)
    done = stop(project, active=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
