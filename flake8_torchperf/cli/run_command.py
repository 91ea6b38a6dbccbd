"""``torchperf run``: runs the user's script, module or tests with the counter, then reports.

The command line goes in; the workload's exit status comes out. The report goes to stderr or a
file, because stdout is the workload's own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flake8_torchperf.cli.main import save, unwritable
from flake8_torchperf.cli.parser import add_parser, fail
from flake8_torchperf.cli.profile.written_profiles import number, save_profile_of
from flake8_torchperf.cli.settings.command_line import add_settings, settings
from flake8_torchperf.history.kept_inputs import (
    KeptInputsError,
    cleared,
    folder_beside,
    kept_calls,
    unsuitable,
)
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.options import Options

if TYPE_CHECKING:
    from flake8_torchperf.runtime.workload.launch import RunOutcome
    from flake8_torchperf.runtime.workload.matching import FileReport
    from flake8_torchperf.runtime.workload.ranks.merge import MergedRun

NO_TORCH = "counting dispatches needs torch: pip install flake8-torchperf[confirm]"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``run``."""
    parser = add_parser(
        commands,
        "run",
        "run a script, module or test suite and tell which findings it confirms",
        "torchperf run train.py --epochs 1\n  torchperf run --owner mypackage -m pytest tests\n"
        "  torchperf run -m torch.distributed.run --nproc_per_node 2 train.py",
    )
    parser.add_argument(
        "--owner",
        dest="owners",
        action="append",
        default=[],
        metavar="PATH",
        help="whose lines count: a file, a folder or an installed package; may be repeated "
        "(default: files below the current directory and the script's, installed ones left out)",
    )
    _add_outputs(parser)
    parser.add_argument(
        "--level",
        choices=("full", "reads"),
        default="full",
        help="reads: count host reads and transfers only, at a fraction of the cost",
    )
    _add_gate(parser)
    _add_steps(parser)
    add_settings(parser)
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, help="a module and its arguments"
    )
    parser.add_argument(
        "script", nargs=argparse.REMAINDER, metavar="SCRIPT [ARGS...]", help="a script"
    )
    parser.set_defaults(run=run)


def _add_gate(parser: argparse.ArgumentParser) -> None:
    """Add the options that make a run fail for what it counts."""
    parser.add_argument(
        "--contracts",
        action="store_true",
        help="fail with the lines that waited on the way from functions that must not wait",
    )
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="CONDITION",
        help='exit with 1 if this holds: "waits>0", "transfers>10 and host_reads>0", '
        '"waits/step>0"; of waits, host_reads, transfers and graph_breaks; may be repeated',
    )
    parser.add_argument(
        "--raise",
        dest="stops",
        action="store_true",
        help="stop the program with its stack at the first wait that no allow_sync allows",
    )


def _add_steps(parser: argparse.ArgumentParser) -> None:
    """Add the options that ask for numbers per step."""
    parser.add_argument(
        "--warmup",
        type=_steps,
        metavar="N",
        help="tell what a step cost, without the first N (default with --step: 1)",
    )
    parser.add_argument(
        "--step",
        metavar="NAME",
        help="what ends a step: a function that returns (train_step, Trainer.train_step, "
        "train.py::train_step), optimizer.step or profiler.step (default: optimizer.step, or "
        "profiler.step where no optimizer steps)",
    )


def _steps(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word!r} is no number of steps")
    return int(word)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options that name files."""
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the report as JSON; {rank} in a name makes a file for each rank",
    )
    parser.add_argument("--html", metavar="FILE", help="write the annotated source as one page")
    parser.add_argument("--output", metavar="FILE", help="write the report there, not to stderr")
    parser.add_argument(
        "--save-profile",
        metavar="FILE",
        help="write how often each statement ran and waited, for torchperf check to rank findings "
        "by; {rank} in the name becomes the process's rank",
    )
    parser.add_argument(
        "--keep-inputs",
        action="store_true",
        help="with --save-profile: keep what some calls of each function were given, beside the "
        "profile, for torchperf fix --verify --profile; they are pickles, and hold your data",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="write when each wait, transfer and graph break happened, in Chrome's trace format, "
        "which Perfetto opens",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the workload, report, and exit with the workload's own exit status.

    If a signal ended the workload, the same signal ends this process. A workload that can't be
    started is a usage error (2): torch or the script is missing, or an option is invalid.
    """
    command = arguments.module or _found(arguments.script)
    problem = _problem(arguments, command)
    if problem:
        return fail(problem)
    # Checked before the workload, which may run for hours. A run measures what heat only infers, so
    # it is compared with the findings of every scope, unless the user chose one.
    options = settings(arguments, "run", Options(scope=Level.COLD))
    inputs = _inputs(arguments)
    if inputs is not None:
        cleared(inputs)
    # Imported late, because these modules import torch.
    from flake8_torchperf.runtime.workload.launch import leave_like, run_workload
    from flake8_torchperf.runtime.workload.ranks.team import TeamError

    try:
        outcome = run_workload(
            command[0],
            command[1:],
            is_module=bool(arguments.module),
            owners=arguments.owners,
            level=arguments.level,
            profile=bool(arguments.save_profile),
            contracts=options.sync_free if arguments.contracts else None,
            trace=bool(arguments.trace),
            inputs="" if inputs is None else str(inputs.resolve()),
            stops=arguments.stops,
            step=arguments.step or "",
            warmup=_warmup(arguments),
        )
    except TeamError as error:
        return fail(f"run: {error}")
    if outcome.run is None:  # The last rank on this machine reports for all of them.
        return leave_like(outcome.returncode)
    if outcome.run.merged is None:
        fail(_no_results(outcome))
        return leave_like(outcome.returncode)
    status = _report(arguments, command, outcome.returncode, outcome.run, options)
    return leave_like(outcome.returncode) or status


def _warmup(arguments: argparse.Namespace) -> int | None:
    """Return the steps to leave out; None if steps are not asked for."""
    if arguments.warmup is None and arguments.step is not None:
        return 1  # All that runs before the first step ends belongs to it: imports, the model.
    warmup: int | None = arguments.warmup
    return warmup


def _report(
    arguments: argparse.Namespace,
    command: Sequence[str],
    returncode: int,
    run: MergedRun,
    options: Options,
) -> int:
    """Write and print the reports; returns the exit status, 0 unless one cannot be written."""
    from flake8_torchperf.cli.run_report import judged_report, print_report
    from flake8_torchperf.runtime.workload.gate.conditions import ConditionError, add_gate

    def report(run: MergedRun) -> _Report:
        from flake8_torchperf.runtime.workload.summary import broken_contracts

        data, files = judged_report(_command_line(arguments, command), returncode, run, options)
        if arguments.contracts and run.merged is not None:
            data["broken_contracts"] = broken_contracts(run.merged)
        return data, files

    merged = report(run)
    unanswered = ""
    if arguments.fail_on:
        try:
            add_gate(merged[0], arguments.fail_on)
        except ConditionError as error:
            unanswered = f"run: --fail-on: {error}"
    # The workload may have run for hours: a report that can't be written must not lose the others.
    saved = {
        option: max(
            save(
                f"run: --{option}",
                path,
                _text(option, merged if one is run else report(one)),
            )
            for path, one in _files(name, run)
        )
        for option in _FILES
        if (name := getattr(arguments, option))
    }
    if inputs := _inputs(arguments):
        saved["keep_inputs"] = _say_kept(inputs)
    if arguments.save_profile:
        of_ranks = _files(arguments.save_profile, run)
        saved["save_profile"] = max(
            save_profile_of("run: --save-profile", path, one) for path, one in of_ranks
        )
    if arguments.trace:
        from flake8_torchperf.runtime.workload.timeline.chrome import as_trace

        words = _command_line(arguments, command)
        saved["trace"] = max(
            save("run: --trace", path, as_trace(one, words))
            for path, one in _files(arguments.trace, run)
        )
    if saved.get("output", 1):
        print_report(merged[0], sys.stderr)
    if unanswered:
        return fail(unanswered)
    failed = any(row["failed"] for row in merged[0].get("gate", ()))
    broken = bool(merged[0].get("broken_contracts"))
    return max(saved.values(), default=0) or int(broken or failed)


_FILES = ("json", "html", "output")
_RANK = "{rank}"
_Report = tuple[dict[str, Any], "Sequence[FileReport]"]


def _files(name: str, run: MergedRun) -> Iterator[tuple[Path, MergedRun]]:
    """Yield the files that an option names, each with the run that it describes."""
    if _RANK not in name:
        yield Path(name), run
        return
    for rank, alone in run.by_rank().items():
        yield Path(name.replace(_RANK, str(rank))), alone


def _text(option: str, report: _Report) -> str:
    from flake8_torchperf.cli.run_page import page
    from flake8_torchperf.cli.run_report import as_text

    data, files = report
    if option == "json":
        return json.dumps(data, indent=1) + "\n"
    return page(data, files) if option == "html" else as_text(data)


def _found(words: list[str]) -> list[str]:
    """Return the words; a Python command such as `torchrun` becomes its path, as in a shell."""
    if words and not Path(words[0]).exists() and (path := shutil.which(words[0])):
        with open(path, "rb") as file:
            if b"python" in file.read(200):  # As pip writes it, with the interpreter's path.
                return [path, *words[1:]]
    return words


def _say_kept(folder: Path) -> int:
    """Say how many calls were kept, and why the others were not; returns the exit status."""
    try:
        calls = kept_calls(folder)
    except KeptInputsError as error:
        return fail(f"run: --keep-inputs: {error}")
    kept = [one for one in calls if one.file]
    functions = len({(one.path, one.function) for one in kept})
    words = f"{number(len(kept), 'call')} of {number(functions, 'function')}"
    reasons = Counter(one.problem for one in calls if one.problem)
    left = "".join(f"; {times:,} not kept: {why}" for why, times in reasons.most_common(3))
    print(f"torchperf: {folder}: {words}{left}", file=sys.stderr)
    return 0


def _problem(arguments: argparse.Namespace, command: Sequence[str]) -> str:
    """Return what is wrong with the command line, in one line; "" if nothing is."""
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
    for option in (*_FILES, "trace"):
        name = (getattr(arguments, option) or "").replace(_RANK, "0")
        if name and (problem := unwritable(Path(name))):
            return f"run: --{option}: {problem}"
    if arguments.save_profile:
        from flake8_torchperf.cli.profile.written_profiles import unsuitable as unsuitable_profile

        if problem := unsuitable_profile(Path(arguments.save_profile.replace(_RANK, "0"))):
            return f"run: --save-profile: {problem}"
    if arguments.keep_inputs and not arguments.save_profile:
        return "run: --keep-inputs needs --save-profile FILE: inputs are kept beside the profile"
    if (inputs := _inputs(arguments)) and (problem := unsuitable(inputs)):
        return f"run: --keep-inputs: {problem}"
    problem = _condition_problem(arguments) or _step_problem(arguments.step)
    return problem or _owner_problem(arguments.owners)


def _inputs(arguments: argparse.Namespace) -> Path | None:
    """Return the folder where inputs are to be kept, None if they are not."""
    if not arguments.keep_inputs:
        return None
    # One folder for all ranks: what a function is given differs little between them.
    return folder_beside(Path(arguments.save_profile.replace(_RANK, "")))


def _condition_problem(arguments: argparse.Namespace) -> str:
    from flake8_torchperf.runtime.workload.gate.conditions import (
        ConditionError,
        read_conditions,
    )

    try:
        read_conditions(arguments.fail_on)
    except ConditionError as error:
        return f"run: --fail-on: {error}"
    return ""


def _step_problem(step: str | None) -> str:
    from flake8_torchperf.runtime.workload.steps.step_names import named_function

    try:
        named_function(step or "")
    except ValueError as error:
        return f"run: --step: {error}"
    return ""


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


def _no_results(outcome: RunOutcome) -> str:
    run = outcome.run
    if run is not None and run.problem:
        return f"the workload spoilt its report, nothing can be said of it: {run.problem}"
    if run is not None and run.not_started:
        return f"{run.not_started} never started: there is no report"
    if outcome.returncode < 0:
        number = -outcome.returncode
        return f"the workload was killed by signal {number}: nothing it did could be reported"
    return "the workload left without a report (os._exit)"
