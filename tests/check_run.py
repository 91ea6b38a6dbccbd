"""Run ``torchperf`` as a user does, in a process of its own, with a cache of the test's own.

`fork_server` starts it, except where a test brings its own program.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import fork_server
from environments import clean_environment
from flake8_run import Run

COMMAND = (sys.executable, "-m", "flake8_torchperf.cli.main")


def torchperf(
    *arguments: str | Path,
    cwd: Path | None = None,
    stdin: str | bytes | None = None,
    cache: Path | None = None,
    program: tuple[str, ...] = COMMAND,
    debug: bool = True,
    forked: bool = False,
) -> Run:
    """``torchperf ARGUMENTS``; ``cache`` is the folder the environment names for the cache.

    ``forked`` says that it does not matter to ``program`` what has been imported before.
    """
    # Elsewhere, what is installed there is to run, not this checkout.
    ours = program[0] == sys.executable
    environment = {**(os.environ if ours else clean_environment()), "PYTHONHASHSEED": "0"}
    environment.pop("TORCHPERF_DEBUG", None)
    if debug:
        environment["TORCHPERF_DEBUG"] = "1"
    if cache is not None:
        environment["TORCHPERF_CACHE_DIR"] = str(cache)
    given = stdin.encode() if isinstance(stdin, str) else stdin or b""
    start = fork_server.run if forked or program == COMMAND else fork_server.start
    done = start([*program, *arguments], cwd=cwd, env=environment, stdin=given)
    return Run(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def without_devices() -> dict[str, str]:
    """Return the variables that hide devices from a program; none where there is no device.

    Programs with the same variables are forked from the same process.
    """
    import torch

    return {"CUDA_VISIBLE_DEVICES": ""} if torch.cuda.is_available() else {}


def python(*arguments: str | Path, cwd: Path) -> Run:
    """``python ARGUMENTS``, a program that uses torch, which it finds imported: see `fork_server`."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = fork_server.run_with_torch([sys.executable, *arguments], cwd=cwd, env=environment)
    return Run(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))


def check(
    *arguments: str | Path,
    cwd: Path | None = None,
    stdin: str | bytes | None = None,
    cache: Path | None = None,
    isolated: bool = True,
) -> Run:
    """``torchperf check``; without a cache unless the test gives a folder for it."""
    options = ["--isolated"] if isolated else []
    options += [] if cache is not None else ["--no-cache"]
    return torchperf("check", *options, *arguments, cwd=cwd, stdin=stdin, cache=cache)
