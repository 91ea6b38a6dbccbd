"""A workload that the tests fork finds the process that a workload finds which is started anew."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import fork_server
import pytest
from workload_forks import COMMAND

pytest.importorskip("torch")

TELLS = """
import atexit, gc, json, os, signal, sys, threading

status = dict(line.split(":", 1) for line in open("/proc/self/status"))
told = {
    "modules": sorted(set(sys.modules) - {"resource"}),
    "path": sys.path,
    "arguments": sys.argv,
    "flags": str(sys.flags),
    "options": sys.warnoptions,
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "signals": [status[name] for name in ("SigBlk", "SigIgn", "SigCgt")],
    "group": os.getpgrp() == os.getpgid(os.getppid()),
    "session": os.getsid(0) == os.getsid(os.getppid()),
    "folder": os.getcwd(),
    "variables": {k: v for k, v in os.environ.items() if not k.startswith("TORCHPERF_")},
    "collections": gc.get_threshold(),
    "recursion": sys.getrecursionlimit(),
    "threads": threading.active_count(),
    "input": sys.stdin.read(),
    "forked": "fork_server.py" in open("/proc/self/cmdline").read(),
}
json.dump(told, open(sys.argv[1], "w"))
atexit.register(print, "at the end")
sys.exit(7)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no workload is forked")
def test_a_forked_workload_finds_what_one_started_anew_finds(tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    told, ended = [], []
    for start in (fork_server.run, fork_server.start):
        command = [sys.executable, *COMMAND, "tells.py", "told.json"]
        done = start(command, cwd=tmp_path, env=environment, stdin=b"a line\n")
        told.append(json.loads((tmp_path / "told.json").read_text()))
        ended.append((done.returncode, done.stdout))
        (tmp_path / "told.json").unlink()
    assert [one.pop("forked") for one in told] == [True, False]
    assert told[0] == told[1]
    assert ended == [(7, b"at the end\n")] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no program is forked")
def test_a_forked_program_finds_torch_imported_and_all_else_as_started_anew(tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    told, ended = [], []
    for start in (fork_server.run_with_torch, fork_server.start):
        done = start([sys.executable, "tells.py", "told.json"], cwd=tmp_path, env=environment)
        told.append(json.loads((tmp_path / "told.json").read_text()))
        ended.append((done.returncode, done.stdout))
    assert [one.pop("forked") for one in told] == [True, False]
    found, anew = [set(one.pop("modules")) for one in told]
    assert "torch" in found > anew
    assert not {name for name in found if name.startswith(("flake8.", "torch._dynamo", "weighing"))}
    assert told[0] == told[1]
    assert ended == [(7, b"at the end\n")] * 2
