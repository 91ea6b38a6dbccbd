"""Every command in README.md and docs/ is executed, in the place that it speaks of.

Most run in a project with files of the names used there, under an environment that holds the
wheel. What is installed "on a machine with nothing but Python" runs in a new environment, what
speaks of a checkout in a copy of this one. Where a command is shown with its output (after "$"),
the output is compared. Blocks in other languages are configuration, and each kind says who reads
it in the tests.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from documents import TEXT
from environments import ROOT, call, clean_environment, copy_checkout, environment, share_packages
from hangs import HANG

READS_IN_A_LOOP = """\
import torch


def report(values: list[torch.Tensor]) -> list[float]:
    return [value.item() for value in values]
"""
# The example for `confirm` with inputs by hand asks about line 41 of src/scaler.py.
SCALER = (
    "import torch\n{padding}\ndef unscale(grads: list[torch.Tensor], inv_scale: torch.Tensor):\n"
    "    for grad in grads:\n        grad.mul_(inv_scale.item())\n"
)
# The step that calls it: in a project that trains, a helper counts if a step leads to it.
STEP = """\
from scaler import unscale


def train(model, optimizer, loader, inv_scale):
    for batch in loader:
        model(batch).sum().backward()
        unscale([p.grad for p in model.parameters()], inv_scale)
        optimizer.step()
"""
# And the one with an object by hand, about line 12 of src/model.py.
MODEL = """\
import numpy as np
import torch


class Model(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> float:
        scaled = x * self.weight
        return scaled.sum().item()


DEFAULT = Model(len(np.ones(8)))
"""

# What is not executed here, and why; "" is plain output, shown for reading.
OTHER_LANGUAGES = {
    "python": "tests/package/pages/test_readme.py runs those with a marker; the rest are lines to read",
    "ini": "tests/package/pages/test_readme.py gives it to flake8",
    "toml": "tests/package/release/test_clients.py and tests/package/pages/test_readme.py give them to flake8; Helix reads its own",
    "yaml": "tests/package/release/test_clients.py gives ours to pre-commit, tests/package/release/test_publishing.py runs the action; "
    "the others need the published package",
    "json": "tests/package/release/test_clients.py sends pylsp's to it, tests/cli/test_skill.py runs the hook of agents, "
    "tests/cli/test_mcp.py the server; those of editors are read by them alone",
    "lua": "read by Neovim; tests/package/release/test_clients.py and test_server.py run the command it leads to",
    "vim": "read by Vim; tests/package/release/test_clients.py runs the command it leads to",
    "elisp": "read by Emacs; tests/package/release/test_clients.py and test_server.py run the command it leads to",
    "text": "reports, whose words tests/cli/check/test_formats.py, tests/runtime/verify/test_fix_verify.py and "
    "tests/cli/settings/test_configuration.py compare",
    "": "output, compared by tests/package/pages/test_readme.py",
}

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Command:
    """A command line, and the output that is shown for it ("" where none is)."""

    line: str
    output: str = ""


def commands() -> list[Command]:
    found = []
    for block in re.findall(r"^```console\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE):
        if block.startswith("$ "):
            found += [Command(*part.split("\n", 1)) for part in block[2:].split("\n$ ")]
        else:
            found += [Command(line) for line in block.splitlines()]
    return list(dict.fromkeys(found))  # several documents may show the same one


COMMANDS = commands()
# Only these speak of a machine with nothing but Python.
FRESH = ("pip install flake8-torchperf", "flake8 --select TPF path/to/your/code")
# A run of the whole suite inside the suite would never end; .ci/run runs the command.
SUITE = "pip install -e .[test] && python -m pytest -n auto"
ONE_FILE = {"PYTEST_ADDOPTS": "-q tests/lint/findings/test_match.py"}
# These find something in what they lint, and say so by their exit status.
FINDING = re.compile(r"(^|&& )(flake8|nbqa|flake8_nb|torchperf check(?!.*baseline)) ")
FIXING = re.compile(r"^torchperf fix ")


@dataclass(frozen=True)
class Place:
    """A folder and the environment that is active in it."""

    folder: Path
    python: Path


@pytest.fixture(scope="module")
def project(wheel: Path, clients: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A project with what the commands name; torch and the clients are at hand."""
    folder = tmp_path_factory.mktemp("project")
    python = environment(folder / ".venv", sys.executable, pip=True)
    call(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    share_packages(python, folder / "installed")
    call(python, "-m", "pip", "install", "--quiet", "accelerate", env=clean_environment(python))
    files = {
        "path/to/your/code/model.py": READS_IN_A_LOOP,
        "src/scaler.py": SCALER.format(padding="\n" * 36),
        "src/step.py": STEP,
        "src/model.py": MODEL,
        "perf_inputs.py": "import torch\n\n\ndef inputs(n):\n"
        "    return {'grads': [torch.randn(n)], 'inv_scale': torch.tensor([0.5])}\n",
        "train.py": update_readme().TRAINING,
        "installed/mypackage/__init__.py": READS_IN_A_LOOP,
        "installed/mypackage-1.0.dist-info/METADATA": "Metadata-Version: 2.1\n"
        "Name: mypackage\nVersion: 1.0\n",
        "tests/test_mypackage.py": "import mypackage, torch\n\n\ndef test_report():\n"
        "    assert mypackage.report([torch.ones(())]) == [1.0]\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    assert "item()" in files["src/scaler.py"].splitlines()[40]
    shutil.copytree(ROOT / "tests" / "notebooks", folder / "notebooks")
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")
    return Place(folder, python)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = copy_checkout(tmp_path_factory.mktemp("checkout"))
    python = environment(folder / ".venv", sys.executable, pip=True)
    share_packages(python)
    return Place(folder, python)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("fresh")
    code = folder / "path" / "to" / "your" / "code"
    code.mkdir(parents=True)
    (code / "model.py").write_text(READS_IN_A_LOOP, encoding="utf-8")
    return Place(folder, environment(folder / ".venv", sys.executable, pip=True))


def update_readme() -> object:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("update_readme")
    finally:
        sys.path.pop(0)


def place_of(command: Command) -> str:
    """The name of the fixture for the place in which a command is to run."""
    if command.line in FRESH:
        return "fresh"
    return "checkout" if re.search(r"-e \.|fixtures", command.line) else "project"


def run(command: Command, place: Place, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it in a shell, with the wheel where pip looks for packages."""
    return subprocess.run(
        ["bash", "-c", command.line],
        cwd=place.folder,
        env={**clean_environment(place.python), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


# The commands for a machine with nothing but Python. Those for a project of one's own run before a
# release; tests/cli and tests/runtime run the same commands in other words.
IN_CHECKOUT = re.compile(r"-e \.")


def is_quick(command: Command) -> bool:
    """True for what installs the package; .ci/run runs the command for the whole suite itself."""
    installs = command.line in FRESH or IN_CHECKOUT.search(command.line) is not None
    return installs and command.line != SUITE


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(
            command,
            id=command.line[:70],
            marks=[] if is_quick(command) else [pytest.mark.thorough],
        )
        for command in COMMANDS
    ],
)
def test_a_command(command: Command, distributions: Path, request: pytest.FixtureRequest) -> None:
    place: Place = request.getfixturevalue(place_of(command))
    variables = {
        "PIP_FIND_LINKS": f"{distributions} {os.environ.get('PIP_FIND_LINKS', '')}",
        # `torchperf cache --clear` must not meet that of whoever runs the tests.
        "TORCHPERF_CACHE_DIR": str(place.folder / "cache"),
    }
    if command.line == SUITE:
        variables |= ONE_FILE
        tests = SUITE.rpartition("&& ")[2]
        assert f"\n{tests}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    if command.line.startswith(("nbqa ", "flake8_nb ")):
        name = "clients" if command.line.startswith("nbqa") else "flake8_nb"
        place = Place(place.folder, request.getfixturevalue(name))
    done = run(command, place, **variables)
    said = done.stdout + done.stderr
    left = FINDING.search(command.line) or FIXING.search(command.line)
    assert done.returncode == (1 if left else 0), said
    if FIXING.search(command.line):
        assert " left" in done.stderr, said
    if FINDING.search(command.line):
        assert re.search(r": TPF\d{3} ", done.stdout), said
    if command.output:
        changing = update_readme().CHANGING
        assert changing.sub("_", command.output).strip() in changing.sub("_", said)


def test_commands_are_found() -> None:
    lines = [command.line for command in COMMANDS]
    assert len(lines) >= 12
    assert {*FRESH, SUITE} <= set(lines)
    assert not any(line != line.strip() or not line for line in lines)


def test_no_other_page_that_users_read_shows_commands() -> None:
    """Of the site: benchmarks/ is for maintainers, and its commands take hours."""
    others = [*(ROOT / "rules").glob("*.md"), ROOT / "SECURITY.md", ROOT / "CHANGELOG.md"]
    assert not [page for page in others if "```console" in page.read_text(encoding="utf-8")]


def test_every_other_block_is_accounted_for() -> None:
    opened = re.findall(r"^```(\w*)$", TEXT, re.MULTILINE)[::2]
    assert opened.count("console") == TEXT.count("```console\n")
    assert set(opened) - {"console"} == set(OTHER_LANGUAGES)
