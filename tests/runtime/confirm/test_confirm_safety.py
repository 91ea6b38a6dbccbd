"""Snippets that misbehave: each ends with its reason, in time, and leaves the user's files alone."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("torch")

from flake8_torchperf.cli.confirm_command import DEFAULT_SIZES
from flake8_torchperf.runtime.confirm.plan import ConfirmSettings, Request, plan
from flake8_torchperf.runtime.confirm.sandbox import Answer, Sandbox
from flake8_torchperf.runtime.confirm.verdict import verdict_of_call

# For what runs until its limit; for the rest the limit only has to be far away, also under load.
TIMEOUT, AMPLE = 3.0, 300.0
HANGING = ("hangs", "hangs_and_swallows", "fine")
READ = "    return x.sum().item()\n"
DEEP = 20_000 * "-" + "1"
BODIES = {
    "hangs": "    while True:\n        time.sleep(0.01)\n",
    "hangs_and_swallows": (
        "    while True:\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            pass\n"
    ),
    "aborts": "    os.abort()\n",
    "exits": "    os._exit(0)\n",
    "kills_its_parent": "    os.kill(os.getppid(), 9)\n    time.sleep(0.3)\n",
    "allocates": "    kept = []\n    while True:\n        kept.append(torch.ones(25_000_000))\n",
    "forges": (
        "    for fd in range(3, 1024):\n        try:\n"
        '            os.write(fd, b\'{"targets": {"0": {"reached": true}}}\\n\')\n'
        "        except OSError:\n            pass\n    os._exit(0)\n"
    ),
    "leaves_a_process": ("    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n"),
    "writes": (
        "    print('loud')\n    os.write(1, b'loud')\n"
        "    with open('left.txt', 'w') as file:\n        file.write('x')\n"
    ),
    "overwrites": "    with open(__file__, 'w') as file:\n        file.write('gone')\n",
    "sees_secrets": "    assert 'TORCHPERF_TEST_SECRET' not in os.environ\n",
    "connects": "    socket.create_connection(('127.0.0.1', PORT), 1).close()\n",
    "reads_input": "    assert sys.stdin.read() == ''\n",
    "fine": "",
}
EXPECTED = {
    "hangs": "timed out",
    "hangs_and_swallows": "timed out after 3 s",
    "aborts": "crashed with SIGABRT",
    "exits": "crashed: the process ended early with exit status 0",
    "allocates": "it ran out of memory",
    "forges": "what it wrote to its result pipe is not a report",
}
HEAD = "import os\nimport socket\nimport sys\nimport time\n\nimport torch\n\nPORT = {port}\n"


@pytest.fixture(scope="module")
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture(scope="module")
def ran(tmp_path_factory, listener):
    """Every snippet of BODIES, one after the other in two sandboxes: name -> (verdict, seconds).

    The first holds those that end at its limit, and one that must not be spoilt by them.
    """
    folder = tmp_path_factory.mktemp("snippets")
    path = folder / "snippets.py"
    source = HEAD.format(port=listener.getsockname()[1])
    for name, body in BODIES.items():
        source += f"\n\ndef {name}(x: torch.Tensor) -> float:\n{body}{READ}"
    path.write_text(source)
    found = {}
    os.environ["TORCHPERF_TEST_SECRET"] = "hunter2"
    try:
        groups = {
            g.function: g
            for g in plan([Request(path)], ConfirmSettings(DEFAULT_SIZES, "cpu"), print)
        }
        others = [name for name in BODIES if name not in HANGING[:2]]
        for limit, names in ((TIMEOUT, HANGING), (AMPLE, others)):
            with Sandbox(limit, 512) as sandbox:
                for name in names:
                    began = time.monotonic()
                    answer = sandbox.run(groups[name].job)
                    took = time.monotonic() - began
                    verdict = verdict_of_call(
                        groups[name], groups[name].targets[0], answer, 1000, "cpu"
                    )
                    found.setdefault(name, []).append((verdict, took))
                isolation = sandbox.isolation
    finally:
        del os.environ["TORCHPERF_TEST_SECRET"]
    return found, isolation, path, source


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.slow
def test_each_ends_with_its_reason_within_the_limit(ran, name):
    ((verdict, took),) = ran[0][name]
    assert verdict.status == "inconclusive"
    assert verdict.reason.startswith(EXPECTED[name])
    assert verdict.probes == ()
    assert took < AMPLE


@pytest.mark.parametrize("name", ["writes", "sees_secrets", "reads_input", "fine"])
@pytest.mark.slow
def test_a_crash_before_does_not_spoil_the_next(ran, name):
    for verdict, _ in ran[0][name]:
        assert verdict.status == "confirmed", verdict.reason


@pytest.mark.slow
def test_the_process_that_started_it_is_out_of_reach_or_missed(ran):
    found, isolation, _, _ = ran
    ((verdict, _),) = found["kills_its_parent"]
    if isolation["processes"] == "apart":
        assert verdict.status == "confirmed", verdict.reason
    else:
        assert verdict.reason == "crashed: it ended the process that started it"


@pytest.mark.slow
def test_nothing_of_the_users_changed(ran):
    _, isolation, path, source = ran
    assert [one.name for one in path.parent.iterdir()] == ["snippets.py"]
    assert not Path("left.txt").exists()
    if isolation["files"] == "read-only":
        assert path.read_text() == source


@pytest.mark.slow
def test_what_it_left_behind_is_ended(ran):
    """The forked process would sleep for ten minutes in a session of its own."""
    ((_, took),) = ran[0]["leaves_a_process"]
    assert took < AMPLE
    left = subprocess.run(
        ["ps", "-eo", "args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    ours = f"{sys.executable} -m flake8_torchperf.runtime.confirm.child"
    assert not [line for line in left if line.startswith(ours)]


@pytest.mark.slow
def test_there_is_no_network_where_it_can_be_dropped(ran):
    found, isolation, _, _ = ran
    if isolation["network"] != "dropped":
        pytest.skip(isolation["network"])
    assert found["connects"][0][0].status == "inconclusive"


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"targets": {}},
        {"targets": {"0": {"reached": True, "inputs": {}, "error": "", "probes": [{}]}}},
        {"targets": {"0": {"reached": True, "inputs": {}, "error": "", "probes": [
            {"counted": True, "executions": {"0": -1}}]}}},
        {"targets": []},
        {"failed": 1},
    ],
)  # fmt: skip
def test_a_malformed_report_is_no_verdict(tmp_path, result):
    path = tmp_path / "one.py"
    path.write_text(f"import torch\n\n\ndef f(x: torch.Tensor) -> float:\n{READ}")
    (group,) = plan([Request(path)], ConfirmSettings(DEFAULT_SIZES, "cpu"), print)
    verdict = verdict_of_call(group, group.targets[0], Answer(result, "", 0.1), 1000, "cpu")
    assert verdict.status == "inconclusive"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["gone.py"], "there is no file or folder gone.py"),
        ([""], "'' names no file: write . for this folder"),
        (["one.py:99"], "no finding at one.py:99; there are findings on lines 5"),
        (["one.py:99:5"], "no finding at one.py:99; there are findings on lines 5"),
        (["one.py:x"], "'x' is not a line number: write one.py:12"),
        (["one.py:x:5"], "there is no file or folder one.py:x:5"),
        ([".:3"], ". is a folder, which has no line 3: name a file"),
        (["broken.py"], "broken.py:1 cannot be parsed: invalid syntax"),
        (["one.py", "--sizes", "4,x"], "--sizes: '4,x' is not a list of sizes"),
        (["one.py", "--sizes", "4,8"], "--sizes: '4,8' has fewer than three sizes"),
        (["one.py", "--timeout", "0"], "--timeout: 0 is too small"),
        (["one.py", "--memory", "1"], "--memory: 1 is too small"),
        (["one.py", "--sizes", "1,2,²"], "--sizes: '1,2,²' is not a list of sizes"),
        (["one.py", "--sizes", f"1,2,1{18 * '0'}"], f"--sizes: '1,2,1{18 * '0'}' is not a list"),
        (["one.py:²"], "'²' is not a line number: write one.py:12"),
        (["one.py", "--timeout", "nan"], "--timeout: nan is too small"),
        (["one.py", "--timeout", "inf"], "--timeout: inf is too large, give 86400 or less"),
        (["one.py", "--timeout", "1e10"], "--timeout: 1e+10 is too large, give 86400 or less"),
        (["one.py", "--memory", str(10**14)], f"--memory: {10**14} is too large, give 16777216 or"),
        (["one.py", "--project", str(10**19)], f"--project: {10**19} is too large, give 1000000"),
        (["one.py", "--inputs", "x="], "--inputs: 'x=' is not of the form"),
        (["one.py", "--inputs", "torch.ones(3)"], "--inputs: 'torch.ones(3)' is not of the form"),
        (
            ["one.py", "--inputs", "z=1"],
            "--inputs: no function with a finding has a parameter z; they have x",
        ),
        (["one.py", "--harness", "gone.py"], "--harness: gone.py cannot be read"),
        (["one.py", "--harness", "one.py"], "--harness: one.py defines no function inputs(n)"),
        (["one.py", "--harness", "broken.py"], "--harness: broken.py:1 cannot be parsed: invalid"),
        (["deep.py"], "deep.py cannot be parsed: it is nested too deeply for Python's parser"),
        (["one.py", "--harness", "deep.py"], "--harness: deep.py cannot be parsed: it is nested"),
        (["one.py", "--device", "cuda"], "--device cuda: torch finds no CUDA device here"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_usage_errors_are_one_line(tmp_path, monkeypatch, capsys, arguments, problem):
    import torch

    from flake8_torchperf.cli.main import main

    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("this machine has the device")
    (tmp_path / "one.py").write_text(f"import torch\n\n\ndef f(x: torch.Tensor) -> float:\n{READ}")
    (tmp_path / "broken.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deep.py").write_text(f"import torch\nx = {DEEP}\n")
    assert main(["confirm", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"torchperf: {problem}")
    assert captured.err.count("\n") == 1


def test_inputs_nested_too_deeply_are_one_line():
    from flake8_torchperf.cli.settings.inputs_by_hand import parse_inputs
    from flake8_torchperf.options import OptionError

    for depth in range(500, 1200, 100):  # some of these can be parsed, but not written again
        with contextlib.suppress(OptionError):
            parse_inputs(f"x=a{depth * '.b'}")
    with pytest.raises(OptionError, match="--inputs: the text is nested too deeply"):
        parse_inputs(f"x={DEEP}")


def test_missing_torch_is_one_line_with_the_command(monkeypatch, capsys):
    from flake8_torchperf.cli import confirm_command
    from flake8_torchperf.cli.main import main

    monkeypatch.setattr(confirm_command, "find_spec", lambda name: None)
    assert main(["confirm", "x.py"]) == 2
    assert "pip install flake8-torchperf[confirm]" in capsys.readouterr().err


def test_the_help_documents_the_exit_statuses(capsys):
    from flake8_torchperf.cli.main import main

    with pytest.raises(SystemExit) as stopped:
        main(["confirm", "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for words in ("exit status:", "  0  ", "  1  ", "  2  "):
        assert words in text
