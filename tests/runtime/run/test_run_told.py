"""What `run` says and passes on: tracebacks, encodings, how a run ended, words for problems."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from check_run import torchperf

pytest.importorskip("torch")

from flake8_torchperf.cli.profile.written_profiles import save_profile_of
from flake8_torchperf.history.profile import read
from flake8_torchperf.runtime.confirm.child.builder import SpecError, find_class
from flake8_torchperf.runtime.workload.exchange import Observed
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun

FAILS = """
    import torch

    def decode(x):
        return x.sum().item()

    decode(torch.nn.Parameter(torch.ones(3)))
    try:
        torch.ones(3, requires_grad=True).numpy()
    except RuntimeError as error:
        raise ValueError("stopped") from error
    """


def test_a_traceback_shows_the_frames_of_the_program_alone(tmp_path: Path) -> None:
    """`numpy` is wrapped while it is counted."""
    (tmp_path / "fails.py").write_text(dedent(FAILS), encoding="utf-8")
    plain = subprocess.run(
        [sys.executable, str(tmp_path / "fails.py")], capture_output=True, text=True, check=False
    )
    done = torchperf("run", "--json", "run.json", str(tmp_path / "fails.py"), cwd=tmp_path)
    assert done.status == 1
    assert plain.stderr in done.errors
    assert "interceptors" not in done.errors
    assert json.loads((tmp_path / "run.json").read_text("utf-8"))["totals"]["host_reads"] == 1


def test_a_source_that_is_not_utf_8_is_linted(tmp_path: Path) -> None:
    source = "# coding: latin-1\n# Gr\xfc\xdfe\n" + dedent(FAILS).partition("try:")[0]
    (tmp_path / "latin.py").write_bytes(source.encode("latin-1"))
    options = ("--json", "run.json", "--save-profile", "profile.json")
    torchperf("run", *options, "latin.py", cwd=tmp_path)
    data = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert [row["line"] for row in data["confirmed"]] == [7]
    profile = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
    assert list(profile["files"]) == ["latin.py"]


def test_a_class_that_cannot_be_found_is_named_as_a_reader_knows_it() -> None:
    with pytest.raises(SpecError) as raised:
        find_class("tensordict._td:TensorDict:19", {})
    assert str(raised.value) == (
        "the class TensorDict cannot be found in tensordict._td: pass --inputs"
    )


def test_a_launcher_is_no_run_of_the_program(tmp_path: Path) -> None:
    """As `torchrun` is, which starts the ranks and runs nothing of the program."""
    path = tmp_path / "train.py"
    path.write_text("x = 1\n", encoding="utf-8")
    ranks = [
        Observed(
            torch="2", device="cpu", level="reads", seconds=1.0, totals={}, lines=(), syncs=(),
            executed={str(path): frozenset({1})}, metrics="", ended="returned", rank=rank,
            times={str(path): (((1, 1),),)},
        )
        for rank in (0, 1)
    ]  # fmt: skip
    launcher = replace(ranks[0], executed={}, times={}, rank=None)
    run = MergedRun(ranks[0], processes=(launcher, *ranks))
    assert save_profile_of("run --save-profile", tmp_path / "profile.json", run) == 0
    assert read(tmp_path / "profile.json").runs == 2


def test_options_of_python_reach_the_workload(tmp_path: Path) -> None:
    (tmp_path / "flags.py").write_text(
        "import sys\nprint(sys.warnoptions, sys.flags.no_user_site, sys._xoptions)\n"
    )
    # `-O` would compile all of torch anew where it never ran: this one costs nothing.
    options = ("-Wignore::FutureWarning", "-s", "-Xfaulthandler")
    python = (sys.executable, *options, "-m", "flake8_torchperf")
    done = torchperf("run", "flags.py", cwd=tmp_path, program=python)
    assert done.output == "['ignore::FutureWarning'] 1 {'faulthandler': True}\n"


LONG = """
    import os, signal, time, torch

    def decode(x):
        return x.sum().item()

    until = time.monotonic() + {seconds}
    x = torch.nn.Parameter(torch.ones(3))
    while time.monotonic() < until:
        decode(x)
    """


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize(
    ("end", "seconds", "status", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", 2, -9, "killed): the report holds what it last"),
        ("os._exit(3)", 0.1, 3, "os._exit): it is counted until then"),
        ("raise ValueError", 0.1, 1, "ValueError): it is counted until then"),
    ],
)
def test_a_program_that_is_cut_short_is_reported(
    tmp_path: Path, end: str, seconds: float, status: int, said: str
) -> None:
    text = dedent(LONG).format(seconds=seconds)  # until what was counted is sent, or none
    (tmp_path / "long.py").write_text(text + end + "\n", encoding="utf-8")
    done = torchperf("run", "--level", "reads", "long.py", cwd=tmp_path)
    assert done.status in (status, 128 - status)
    assert f"note: the program was cut short ({said}" in done.errors
    assert "long.py:5:" in done.errors.partition("confirmed")[2]


def test_the_package_runs_as_a_module() -> None:
    program = (sys.executable, "-m", "flake8_torchperf")
    assert torchperf("--version", program=program).output == torchperf("--version").output
