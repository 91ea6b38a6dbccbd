"""Any module of the package can be imported first, in a process that has imported none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[3] / "flake8_torchperf"
# One process imports what is not ours and takes seconds; each module has a fork of it. To fork one that
# holds torch takes longer, which only `runtime` needs.
OUTSIDE = (
    "flake8.main.application",
    "libcst.metadata",
    "libcst.matchers",
    "asyncio",
    "multiprocessing.pool",
)
EACH_FIRST = """
import gc, importlib, json, os, sys, traceback
for outside in sys.argv[1:]:
    try:
        importlib.import_module(outside)
    except ModuleNotFoundError:
        continue  # torch is not installed where only the linter is
gc.freeze()
gc.disable()
failed = []
for name in json.load(sys.stdin):
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException:
            os.write(writes, traceback.format_exc()[-2000:].encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as said:
        text = said.read().decode()
    os.waitpid(child, 0)
    if text:
        failed.append([name, text])
json.dump(failed, sys.stdout)
"""


def modules() -> list[str]:
    """Every module of the package; without torch, those of `runtime` are left out."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        if "runtime" not in parts or find_spec("torch") is not None:
            found.append(".".join(parts).removesuffix(".__init__"))
    return found


def failures(names: list[str], *outside: str) -> list[list[str]]:
    """Return the modules that cannot be imported first, each with its traceback."""
    done = subprocess.run(
        [sys.executable, "-c", EACH_FIRST, *outside],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=True,
    )
    failed: list[list[str]] = json.loads(done.stdout)
    return failed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each module is imported in a fork")
@pytest.mark.thorough
def test_every_module_can_be_imported_first() -> None:
    names = modules()
    assert len(names) > 150
    runtime = [name for name in names if "runtime" in name.split(".")]
    rest = [name for name in names if name not in runtime]
    assert failures(rest, *OUTSIDE) == []
    assert failures(runtime, *OUTSIDE, "torch") == []
