"""``torchperf fix --verify`` on the command line: what is written, what is told, what is run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import libcst as cst
import pytest

pytest.importorskip("torch")

from flake8_torchperf.cli.main import main
from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.safe import device_argument

pytestmark = pytest.mark.usefixtures("forked_sandboxes")

RIGHT = """\
import torch
from torch import Tensor


def step(x: Tensor) -> Tensor:
    for _ in range(3):
        x = x + torch.arange(x.shape[0]).to(x.device)
    return x
"""
UNKNOWN = RIGHT.replace("import torch\n", "import no_such_module\nimport torch\n", 1).replace(
    "def step(x: Tensor)", "@no_such_module.wrapped\ndef step(x: Tensor)"
)
LINE = "        x = x + torch.arange(x.shape[0], device=x.device)\n"


def fix(folder: Path, *options: str) -> int:
    """Run the command on a folder in this process, without its configuration."""
    return main(["fix", "--isolated", "-j", "1", "--torchperf-scope=all", *options, str(folder)])


def test_a_verified_fix_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.py"
    path.write_text(RIGHT)
    assert fix(tmp_path, "--verify") == 0
    assert LINE in path.read_text()
    told = capsys.readouterr()
    assert f"{path}:7:17: TPF501 fixed (device-argument, safe), verified: 3 copies" in told.out
    assert "1 finding fixed in 1 file, 0 left; 1 verified, 0 withdrawn, 0 unverified" in told.err


def test_a_wrong_fix_is_withdrawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
        wrong = "torch.arange(1, x.shape[0] + 1, device=x.device)"
        return [cst.parse_expression(wrong) for _ in nodes]

    path = tmp_path / "model.py"
    path.write_text(RIGHT)
    monkeypatch.setattr(device_argument, "rewrite", rewrite)
    assert fix(tmp_path, "--verify") == 1
    assert path.read_text() == RIGHT
    told = capsys.readouterr()
    assert f"{path}:7:17: TPF501 withdrawn (device-argument, safe): result: " in told.out
    assert "for x=float tensor (n), n = 16" in told.out
    assert "0 findings fixed in 0 files, 1 left; 0 verified, 1 withdrawn" in told.err
    assert fix(tmp_path) == 0  # nobody looks where nobody asks
    assert path.read_text() != RIGHT


def test_what_cannot_be_run_is_written_unless_that_is_required(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.py"
    path.write_text(UNKNOWN)
    assert fix(tmp_path, "--verify", "--require-verified") == 1
    assert path.read_text() == UNKNOWN
    told = capsys.readouterr()
    assert "TPF501 not fixed (device-argument, safe): unverified, import failed: " in told.out
    assert "0 findings fixed in 0 files, 1 left; 0 verified, 0 withdrawn, 1 unver" in told.err
    assert fix(tmp_path, "--verify") == 0
    assert LINE in path.read_text()
    told = capsys.readouterr()
    assert "TPF501 fixed (device-argument, safe), unverified: import failed: " in told.out


def test_a_diff_tells_the_verdicts_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.py"
    path.write_text(RIGHT)
    assert fix(tmp_path, "--verify", "--diff") == 1
    assert path.read_text() == RIGHT
    told = capsys.readouterr()
    assert "+" + LINE in told.out
    assert "verified" not in told.out
    assert "TPF501 would be fixed (device-argument, safe), verified: " in told.err


@pytest.mark.parametrize("options", [(), ("--diff",), ("--unsafe",)])
def test_nothing_is_run_without_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    from flake8_torchperf.runtime.confirm.sandbox import Sandbox

    def started(self: Sandbox) -> None:
        raise AssertionError("a child was started")

    monkeypatch.setattr(Sandbox, "_start", started)
    mark = tmp_path / "mark"
    source = RIGHT + f"\n\nopen({str(mark)!r}, 'w').close()\n"
    (tmp_path / "marking_model.py").write_text(source)
    fix(tmp_path, *options)
    assert not mark.exists()
    assert "marking_model" not in sys.modules


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--require-verified",), "--require-verified needs --verify"),
        (("--verify", "--timeout", "0"), "--timeout: 0 is not between 1 and 86400"),
        (("--verify", "--timeout", "nan"), "--timeout: nan is not between"),
        (("--verify", "--memory", "1"), "--memory: 1 is not between 64 and"),
    ],
)
def test_what_cannot_be_asked_ends_it_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        fix(tmp_path, *options)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1


def test_a_configuration_cannot_ask_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.py").write_text(RIGHT)
    config = tmp_path / "setup.cfg"
    config.write_text("[flake8]\nverify = true\nrequire-verified = true\n")
    monkeypatch.chdir(tmp_path)
    main(["fix", "-j", "1", "--diff", "model.py"])
    assert "verified" not in capsys.readouterr().err
