"""``torchperf run``: a person's own script, module or tests under the counter, then the report.

The command line enters; the workload's exit status leaves. The report goes to stderr or a file,
because stdout is the workload's own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.cli.main import add_parser, save, unwritable
from flake8_torchperf.cli.parser import fail

if TYPE_CHECKING:
    from flake8_torchperf.runtime.workload.launch import Outcome

NO_TORCH = "counting dispatches needs torch: pip install flake8-torchperf[confirm]"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``run``."""
    parser = add_parser(
        commands,
        "run",
        "run a script, module or test suite and tell which findings it confirms",
        "torchperf run train.py --epochs 1\n  torchperf run --owner mypackage -m pytest tests",
    )
    parser.add_argument(
        "--owner",
        "--source",
        dest="owners",
        action="append",
        default=[],
        metavar="PATH",
        help="whose lines count: a file, a folder or an installed package; may be repeated "
        "(default: files below the current directory and the script's, installed ones left out)",
    )
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON")
    parser.add_argument("--html", metavar="FILE", help="write the annotated source as one page")
    parser.add_argument(
        "--output", metavar="FILE", help="write the report there instead of to stderr"
    )
    parser.add_argument(
        "--level",
        choices=("full", "reads"),
        default="full",
        help="reads: count host reads and transfers only, at a fraction of the cost",
    )
    parser.add_argument(
        "--no-metrics", action="store_true", help="leave out the times of each operation"
    )
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, help="a module and its arguments"
    )
    parser.add_argument(
        "script", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS...]", help="a script"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the workload, report, and leave with the workload's own exit status.

    Where the workload died of a signal, so does this process. What cannot be started is a usage
    error (2): no torch, no such script, an option that cannot be used.
    """
    command = arguments.module or arguments.script
    problem = _problem(arguments, command)
    if problem:
        return fail(problem)
    # Only now: what is below imports the linter.
    from flake8_torchperf.runtime.workload.launch import leave_like, run_workload

    outcome = run_workload(
        command[0],
        command[1:],
        is_module=bool(arguments.module),
        owners=arguments.owners,
        level=arguments.level,
    )
    if outcome.observed is None:
        fail(_no_results(outcome))
        return leave_like(outcome.returncode)
    from flake8_torchperf.cli.run_page import page
    from flake8_torchperf.cli.run_report import as_text, print_report
    from flake8_torchperf.runtime.workload.matching import judge
    from flake8_torchperf.runtime.workload.summary import as_data

    files = judge(outcome.observed)
    data = as_data(_command_line(arguments, command), outcome.returncode, outcome.observed, files)
    metrics = not arguments.no_metrics
    texts: dict[str, Callable[[], str]] = {
        "json": lambda: json.dumps(data, indent=1) + "\n",
        "html": lambda: page(data, files),
        "output": lambda: as_text(data, metrics=metrics),
    }
    # The workload may have run for hours: what cannot be written costs none of the other reports.
    saved = [
        save(f"run: --{option}", Path(name), text()) if (name := getattr(arguments, option)) else 0
        for option, text in texts.items()
    ]
    if not arguments.output or saved[-1]:
        print_report(data, sys.stderr, metrics=metrics)
    return leave_like(outcome.returncode) or max(saved)


def _problem(arguments: argparse.Namespace, command: Sequence[str]) -> str:
    """What is wrong with the command line, in one line; "" where nothing is."""
    if not command:
        return "run: name a script, or a module after -m"
    if not arguments.module:
        script = Path(command[0])
        if script.is_dir():
            return f"run: {command[0]} is a folder; name the script in it, or a module after -m"
        if not script.is_file():
            return f"run: there is no script {command[0]}"
    if find_spec("torch") is None:
        return NO_TORCH
    if arguments.html and find_spec("jinja2") is None:
        return "run: --html needs jinja2: pip install flake8-torchperf[confirm]"
    for option in ("json", "html", "output"):
        name = getattr(arguments, option)
        if name and (problem := unwritable(Path(name))):
            return f"run: --{option}: {problem}"
    return _owner_problem(arguments.owners)


def _owner_problem(owners: Sequence[str]) -> str:
    from flake8_torchperf.runtime.workload.ownership import OwnerError, owner_paths

    try:
        for name in owners:
            owner_paths(name)
    except OwnerError as error:
        return f"run: {error}"
    return ""


def _command_line(arguments: argparse.Namespace, command: Sequence[str]) -> list[str]:
    return ["-m", *command] if arguments.module else list(command)


def _no_results(outcome: Outcome) -> str:
    if outcome.problem:
        return f"the workload spoilt its report, nothing can be said of it: {outcome.problem}"
    if outcome.returncode < 0:
        number = -outcome.returncode
        return f"the workload was killed by signal {number}: nothing it did could be reported"
    return "the workload left without a report (os._exit, or it never started)"
