"""A mistake on ``torchperf``'s command line is one line with the nearest match, and status 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from flake8_torchperf.cli.main import COMMANDS, build_parser, main

MISTAKES = [
    (["explian"], "torchperf: there is no command explian; did you mean 'explain'?"),
    (["--versoin"], "torchperf: there is no option --versoin; did you mean '--version'?"),
    ([], "torchperf: name a command; torchperf --help tells what can be used"),
    (
        ["explain", "TPF203", "--formt", "json"],
        "torchperf explain: there is no option --formt; did you mean '--format'?",
    ),
    (
        ["explain", "TPF203", "--formt=json"],
        "torchperf explain: there is no option --formt; did you mean '--format'?",
    ),
    (
        ["explain", "--formt"],
        "torchperf explain: there is no option --formt; did you mean '--format'?",
    ),
    (
        ["confirm", "--formt", "json"],
        "torchperf confirm: there is no option --formt; torchperf confirm --help tells what can be used",
    ),
    (["explain", "XYZ"], "torchperf: there is no rule XYZ; torchperf rules lists them"),
    (["explain", ""], "torchperf: there is no rule ''; torchperf rules lists them"),
    (
        ["explain"],
        "torchperf explain: the following arguments are required: code; "
        "torchperf explain --help tells what can be used",
    ),
    (["explain", "TPF2003"], "torchperf: there is no rule TPF2003; did you mean 'TPF203'?"),
    (
        ["explain", "TPF900", "branch-on-tensor"],
        "torchperf: there is no rule branch-on-tensor; did you mean 'branch-on-a-tensor'?",
    ),
    (
        ["rules", "--format", "jsn"],
        "torchperf rules: --format: 'jsn' is not offered; did you mean 'json'?",
    ),
    (
        ["rules", "TPF203"],
        "torchperf rules: one argument too many: TPF203; "
        "torchperf rules --help tells what can be used",
    ),
    (
        ["confirm", "x.py", "--timout", "3"],
        "torchperf confirm: there is no option --timout; did you mean '--timeout'?",
    ),
    (
        ["run", "--levl", "reads", "x.py"],
        "torchperf run: there is no option --levl; did you mean '--level'?",
    ),
    (
        ["run", "--level", "read", "x.py"],
        "torchperf run: --level: 'read' is not offered; did you mean 'reads'?",
    ),
]


@pytest.mark.parametrize(("arguments", "line"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
def test_a_mistake_is_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        sys.exit(main(arguments))
    assert (ended.value.code, *capsys.readouterr()) == (2, "", f"{line}\n")


def test_the_help_of_every_command_ends_with_an_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (commands,) = [action for action in build_parser()._actions if action.dest == "==SUPPRESS=="]
    assert commands.choices is not None
    names = list(commands.choices)
    assert len(names) >= len(COMMANDS)
    for name in names:
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        text = capsys.readouterr().out
        assert f"\nexample:\n  torchperf {name}" in text


def test_the_reserved_code_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "TPF900", "TPF203", "--format", "json"]) == 0
    reserved, page = json.loads(capsys.readouterr().out)
    assert (reserved["code"], page["code"]) == ("TPF900", "TPF203")


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are POSIX's")
def test_rich_in_a_terminal_and_plain_in_a_pipe() -> None:
    pytest.importorskip("rich")
    command = [sys.executable, "-m", "flake8_torchperf.cli.main", "explain", "TPF203"]
    piped = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"\x1b[" not in piped
    assert b"## What it does" in piped
    shown = in_a_terminal(command)
    assert b"\x1b[" in shown
    assert b"What it does" in shown
    assert b"## What it does" not in shown


def in_a_terminal(command: list[str]) -> bytes:
    """What a command writes where its output is a terminal."""
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdout=theirs, env=environment) as process:
        os.close(theirs)
        read = b""
        while piece := _read(ours):
            read += piece
    os.close(ours)
    assert process.returncode == 0
    return read


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux says so, instead of an empty read, when the other end is closed.
        return b""
