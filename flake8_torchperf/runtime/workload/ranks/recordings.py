"""The folder in which the processes of a run leave their recordings: a plan each, then results.

A plan without results means that the process was killed or left by `os._exit`.
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from flake8_torchperf.runtime.workload.exchange import (
    Observed,
    Plan,
    UnreadableResultsError,
    load_observed,
    load_plan,
)

_PLAN, _RESULTS = ".plan.json", ".results.json"
_NAME = re.compile(r"\d+-\d+")


@dataclass(frozen=True)
class Recording:
    """One process: its plan and its observations; ``problem`` says why the latter are None."""

    plan: Plan | None
    observed: Observed | None
    problem: str = ""


def new_plan(folder: Path, plan: Plan) -> Path:
    """Save a plan for this or a new process under a unique name, and return its path."""
    name = _new_name()
    path = folder / (name + _PLAN)
    replace(plan, results=str(folder / (name + _RESULTS))).save(path)
    return path


def results_beside(results: Path) -> Path:
    """Return the path for the results of a forked process, which has no plan of its own."""
    return results.with_name(_new_name() + _RESULTS)


def _new_name() -> str:
    # A restarted process keeps its number, and numbers are reused.
    return f"{os.getpid()}-{time.time_ns()}"


def read_recordings(folder: Path) -> tuple[Recording, ...]:
    """Return all recordings in a folder, in the order in which the processes were started."""
    names = {
        one.name.removesuffix(ending)
        for ending in (_PLAN, _RESULTS)
        for one in folder.glob(f"*{ending}")
    }
    ours = [one for one in names if _NAME.fullmatch(one)]
    return tuple(_read(folder, name) for name in sorted(ours, key=_started))


def _started(name: str) -> int:
    return int(name.rpartition("-")[2])


def _read(folder: Path, name: str) -> Recording:
    plan, results = folder / (name + _PLAN), folder / (name + _RESULTS)
    started = None
    try:
        started = load_plan(plan) if plan.exists() else None
        return Recording(started, load_observed(results) if results.exists() else None)
    except UnreadableResultsError as error:
        return Recording(started, None, str(error))
