"""Restarts a process under the counter, before it has run anything.

The process keeps its number, files and environment, so a launcher notices nothing. POSIX only:
elsewhere a process cannot be replaced.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.machinery import PathFinder
from multiprocessing.spawn import is_forking
from pathlib import Path

from flake8_torchperf.runtime.workload.exchange import (
    Plan,
    UnreadableResultsError,
    load_plan,
    this_interpreter,
)
from flake8_torchperf.runtime.workload.ownership import is_installed_command, owner_of
from flake8_torchperf.runtime.workload.ranks.environment import given_rank, is_worker
from flake8_torchperf.runtime.workload.ranks.recordings import new_plan

_BOOTSTRAP = Path(__file__).parents[1] / "bootstrap.py"


def take_over(first: Path, home: str) -> None:
    """Replace this process by one that is counted, if it is a worker of the run.

    ``first`` is the plan of the run's first process; ``home`` the folder of this package. Returns
    only if this process is to continue unchanged.
    """
    try:
        base = load_plan(first)
    except UnreadableResultsError:
        return  # The run is over, and this process outlives it.
    if os.name != "posix" or base.interpreter != this_interpreter():
        return
    options, words = _split(sys.orig_argv, sys.argv)
    plan = _plan(base, sys.argv[0], words)
    if plan is None:
        return
    results = new_plan(first.parent, plan)
    os.execv(sys.executable, [sys.executable, *options, str(_BOOTSTRAP), str(results), home])


def _split(command: Sequence[str], arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the interpreter's own options, and the script, module or code with its arguments.

    Python strips the options from `sys.argv`, where only "-m" or "-c" is left of a module or code.
    """
    first = len(command) - len(arguments)
    options, words = list(command[1:first]), list(command[first:])
    letter = arguments[0]
    if letter not in ("-m", "-c"):
        return options, words
    if words[0].startswith("-"):  # -mmodule, or -ummodule
        flags, _, words[0] = words[0].partition(letter[1])
    else:  # -m module, or -um module
        flags = options.pop()[:-1]
    return [*options, flags] if flags != "-" else options, words


def _plan(base: Plan, kind: str, words: Sequence[str]) -> Plan | None:
    """Return the plan for the program of this process; None if it is not a worker.

    Of processes that run code, exactly those that multiprocessing starts are counted.
    """
    plan = replace(
        base,
        script=words[0],
        arguments=tuple(words[1:]),
        is_module=kind == "-m",
        is_code=kind == "-c",
        rank=given_rank(),
    )
    if plan.is_code:
        return plan if plan.is_fork_server or is_forking(["", *plan.arguments]) else None
    # A launcher gives its workers a rank, or at least has their script in its own arguments. Other
    # processes, started by a test for instance, are not part of the run.
    if not is_worker() or (plan.rank is None and plan.script not in base.arguments):
        return None
    if plan.rank is not None and (file := _file(plan)):
        plan = replace(plan, defaults=(*plan.defaults, os.path.dirname(file)))
    return plan if is_users_own(plan) else None


def is_users_own(plan: Plan) -> bool:
    """True if a plan's program is the user's, and no installed launcher or test runner."""
    file = _file(plan)
    return bool(file) and not is_installed_command(file) and owner_of((), plan.defaults)(file)


def _file(plan: Plan) -> str:
    """Return the file of a plan's script or module, found without an import; "" if none."""
    if plan.is_code:
        return ""
    if not plan.is_module:
        return os.path.realpath(plan.script) if os.path.isfile(plan.script) else ""
    search: Sequence[str] | None = [os.getcwd(), *sys.path]
    name, spec = "", None
    for part in [*plan.script.split("."), "__main__"]:
        name = f"{name}.{part}" if name else part
        found = PathFinder.find_spec(name, search)
        if found is None:
            break
        spec, search = found, found.submodule_search_locations
        if search is None:
            break
    return os.path.realpath(spec.origin) if spec is not None and spec.origin else ""
