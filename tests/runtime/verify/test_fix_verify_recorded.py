"""``fix --verify`` with inputs of a recorded run, and with inputs by hand."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import libcst as cst
import pytest
from check_run import torchperf

torch = pytest.importorskip("torch")

from flake8_torchperf.cli.main import main  # noqa: E402
from flake8_torchperf.findings.finding import Edit  # noqa: E402
from flake8_torchperf.fixes.safe import device_argument  # noqa: E402
from flake8_torchperf.history.kept_inputs import kept_calls  # noqa: E402
from flake8_torchperf.runtime.workload.watching import kept_inputs  # noqa: E402

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

# Neither the layer's width, which a file states, nor the batch's key can be made up.
TRAIN = """\
import torch
from torch import nn


class Config:
    def __init__(self, path):
        self.width = int(open(path).read())


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layer = nn.Linear(config.width, 3)

    def forward(self, batch):
        x = batch["x"]
        shift = torch.ones(x.shape[0], 3).to(x.device)
        return self.layer(x) + shift


def main():
    net = Net(Config("width.txt"))
    for _ in range(12):
        net({"x": torch.randn(4, net.config.width)}).sum().backward()


if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program, a profile of its run, and the inputs that were kept."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "train.py").write_text(TRAIN)
    (folder / "width.txt").write_text("5")
    run = torchperf("run", "--save-profile", "run.json", "--keep-inputs", "train.py", cwd=folder)
    assert run.status == 0, run.errors
    # `main` ran once; `forward` was kept in its first, second and tenth call.
    assert "run.inputs: 6 calls of 4 functions\n" in run.errors
    return folder


def fix(folder: Path, *options: str) -> int:
    """Run the command in a folder in this process, without its configuration."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        return main(["fix", "--isolated", "-j", "1", "--torchperf-scope=all", "--verify", *options])
    finally:
        os.chdir(before)


def test_made_up_inputs_do_not_reach_the_line(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fix(recorded, "--diff", "train.py") == 1
    told = capsys.readouterr().err
    assert "TPF501 would be fixed (device-argument, safe), unverified: not reached:" in told


def test_recorded_inputs_verify_the_fix(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fix(recorded, "--diff", "--profile", "run.json", "train.py") == 1
    told = capsys.readouterr().err
    words = "verified: 1 copy to the device -> 0; 3 calls alike, 3 of them recorded"
    assert f"train.py:18:17: TPF501 would be fixed (device-argument, safe), {words}\n" in told


def test_recorded_inputs_show_that_a_fix_is_wrong(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
        return [cst.parse_expression("torch.zeros(x.shape[0], 3, device=x.device)") for _ in nodes]

    monkeypatch.setattr(device_argument, "rewrite", rewrite)
    fix(recorded, "--diff", "--profile", "run.json", "train.py")
    told = capsys.readouterr().err
    assert "TPF501 withdrawn (device-argument, safe): result: 12 of 12 numbers differ" in told
    assert "for batch=as recorded" in told


def test_classes_are_found_by_another_name_of_their_module(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run knows the script as ``__main__``, and a module by its package's name."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "model.py").write_text(TRAIN)
    (tmp_path / "start.py").write_text("from package.model import main\nmain()\n")
    shutil.copy(recorded / "width.txt", tmp_path)
    run = torchperf("run", "--save-profile", "run.json", "--keep-inputs", "start.py", cwd=tmp_path)
    assert run.status == 0, run.errors
    fix(tmp_path, "--diff", "--profile", "run.json", "package")
    assert "3 calls alike, 3 of them recorded" in capsys.readouterr().err


@pytest.mark.parametrize("by_hand", ["inputs", "harness"])
def test_inputs_by_hand_verify_the_fix(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], by_hand: str
) -> None:
    made = f"Net(Config({str(recorded / 'width.txt')!r}))"
    given = f'batch={{"x": torch.randn(n, 5)}}, self={made}'
    if by_hand == "harness":
        harness = tmp_path / "harness.py"
        harness.write_text(
            "import torch\n\n\ndef inputs(n):\n    from train import Config, Net\n"
            f'    return dict(batch={{"x": torch.randn(n, 5)}}, self={made})\n'
        )
        given = str(harness)
    fix(recorded, "--diff", f"--{by_hand}", given, "train.py")
    told = capsys.readouterr().err
    assert "(device-argument, safe), verified: 1 copy to the device -> 0;" in told


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--inputs", "batch"], "--inputs: 'batch' is not of the form \"name=expression, ...\""),
        (["--harness", "nowhere.py"], "--harness: nowhere.py cannot be read: No such file"),
        (["--profile", "run.json"], "run.inputs; keep them with torchperf run --save-profile"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_unusable_inputs_end_it(
    recorded: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    problem: str,
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    shutil.copy(recorded / "run.json", tmp_path)
    (tmp_path / "run.inputs").mkdir()
    with pytest.raises(SystemExit) as ended:
        sys.exit(fix(tmp_path, *options, "train.py"))
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_inputs_need_verification(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    with pytest.raises(SystemExit) as ended:
        sys.exit(main(["fix", "--isolated", "--inputs", "x=1", str(tmp_path)]))
    assert ended.value.code == 2
    assert "--inputs needs --verify" in capsys.readouterr().err


def test_an_index_that_is_damaged_ends_it(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    index = next((tmp_path / "run" / "run.inputs").glob("*.jsonl"))
    index.write_text('{"path": "train.py", "function": "main", "file": "../elsewhere.pt"}\n')
    with pytest.raises(SystemExit) as ended:
        sys.exit(fix(tmp_path / "run", "--profile", "run.json", "train.py"))
    assert ended.value.code == 2
    assert "run.inputs names files elsewhere; write it anew with" in capsys.readouterr().err


UNKEPT = """\
import threading
import torch


def with_names(x, **names):
    return x


def with_a_lock(x, lock):
    return x


def large(x):
    return x


def changed(x):
    x.zero_()


def numbers(*several, last=1):
    return several


def lazily(x):
    yield x


def main():
    x = torch.ones(4)
    with_names(x)
    with_names(x, name=1)
    with_a_lock(x, threading.Lock())
    large(torch.empty(2**25))
    changed(x)
    numbers(1, 2, last=3)
    list(lazily(x))


main()
"""


def test_what_cannot_be_kept_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(UNKEPT)
    run = torchperf(
        "run", "--save-profile", "run.json", "--keep-inputs", "program.py", cwd=tmp_path
    )
    assert run.status == 0, run.errors
    calls = kept_calls(tmp_path / "run.inputs")
    problems = {one.function: one.problem for one in calls if one.problem}
    assert problems == {
        "with_names": "UnkeptError: it was given **names, which --verify does not pass",
        "with_a_lock": "TypeError: cannot pickle '_thread.lock' object",
        "large": "UnkeptError: its arguments take more than 64 MiB",
    }
    kept = {one.function: tmp_path / "run.inputs" / one.file for one in calls if one.file}
    assert sorted(kept) == ["changed", "main", "numbers", "with_names"]
    # They are those of the beginning of the call.
    assert torch.load(kept["changed"])["x"].tolist() == [1.0] * 4
    assert torch.load(kept["numbers"]) == {"last": 3, "several": (1, 2)}
    assert "; 1 not kept: UnkeptError: it was given **names" in run.errors


def test_keeping_inputs_changes_no_count(recorded: Path, tmp_path: Path) -> None:
    shutil.copy(recorded / "train.py", tmp_path)
    shutil.copy(recorded / "width.txt", tmp_path)
    profile = ("--save-profile", "run.json")
    totals = []
    for more in ((), ("--keep-inputs",)):
        command = ("run", "--json", "report.json", *profile, *more, "train.py")
        assert torchperf(*command, cwd=tmp_path).status == 0
        report = json.loads((tmp_path / "report.json").read_text())
        totals.append({name: n for name, n in report["totals"].items() if "seconds" not in name})
    assert totals[0] == totals[1]


def test_each_run_begins_anew_and_leaves_other_files_alone(recorded: Path, tmp_path: Path) -> None:
    shutil.copytree(recorded, tmp_path / "run")
    command = ("run", "--save-profile", "run.json", "--keep-inputs", "train.py")
    assert torchperf(*command, cwd=tmp_path / "run").status == 0
    kept_calls.cache_clear()
    assert len(kept_calls(tmp_path / "run" / "run.inputs")) == 6
    (tmp_path / "run" / "run.inputs" / "mine.txt").write_text("mine")
    refused = torchperf(*command, cwd=tmp_path / "run")
    assert refused.status == 2
    assert "run: --keep-inputs: run.inputs holds mine.txt, and is left as it is" in refused.errors
    without = torchperf("run", "--keep-inputs", "train.py", cwd=tmp_path / "run")
    assert without.status == 2
    assert "--keep-inputs needs --save-profile FILE" in without.errors


def test_shared_tensors_are_counted_once() -> None:
    x = torch.ones(1000)
    alone, several = kept_inputs.Sizer(10**6), kept_inputs.Sizer(10**6)
    alone.dump([x])
    several.dump([x, x[:10], x.view(10, 100)])
    assert several.bytes - alone.bytes < 1000
