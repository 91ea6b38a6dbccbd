"""``torchperf confirm``: arguments in, verdicts on the screen or as JSON, a status out.

Only this command starts a run: the configuration decides the findings, but can't start one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.cli.parser import INTERRUPTED, add_parser, fail
from flake8_torchperf.cli.settings.command_line import add_settings, settings
from flake8_torchperf.cli.settings.inputs_by_hand import check_harness, parse_inputs
from flake8_torchperf.options import OptionError

if TYPE_CHECKING:
    from flake8_torchperf.runtime.confirm.plan import ConfirmSettings, Group
    from flake8_torchperf.runtime.confirm.report import Circumstances, ConfirmedFinding

DEFAULT_SIZES = (16, 64, 256)
# The smallest and largest values: up to a day, and more memory than machines have. With larger
# values the system's own calls overflow, and so do the numbers in reports.
BOUNDS = {"timeout": (1, 86_400), "memory": (64, 2**24), "project": (1, 10**18)}
# The reasons extrapolate to a probe this many times the size of the largest one.
PROJECTION = 1000
STATUSES = """\
exit status:
  0  every verdict was given and nothing was asked to fail
  1  --fail-on confirmed, and there is a confirmed finding
  2  the command line or a file it names cannot be used, or torch is missing
  130  interrupted

The code runs in a child process: with limits on time, memory and file size, in an empty folder,
without your environment variables and, where the system allows it, without the network and with
all other files read-only. It is still your code that runs: confirm what you would run anyway.
"""
MISSING_TORCH = "confirm runs code and needs torch: pip install flake8-torchperf[confirm]"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``confirm``."""
    parser = add_parser(
        commands,
        "confirm",
        "run what was found under a dispatch counter and say whether it is true",
        "torchperf confirm src/scaler.py:41 --project 320008\n\n" + STATUSES.rstrip(),
    )
    parser.add_argument(
        "path", nargs="+", metavar="PATH[:LINE]", help="a file, a line of one, or a folder"
    )
    parser.add_argument(
        "--inputs",
        default="",
        metavar="TEXT",
        help="parameters by hand, over n, torch, np and the names of the file: "
        '"grads=[torch.randn(n)], eps=0.1"; self is the object of a method: "self=Model(4)"',
    )
    parser.add_argument(
        "--harness", type=Path, metavar="FILE", help="a file defining inputs(n) -> dict"
    )
    parser.add_argument(
        "--sizes", default="", metavar="N,N,N", help="values of n to probe (default: 16,64,256)"
    )
    parser.add_argument(
        "--project", type=int, metavar="N", help="extrapolate to n = N (default: largest x 1000)"
    )
    parser.add_argument(
        "--timeout", type=float, default=20.0, metavar="S", help="seconds a snippet (default: 20)"
    )
    parser.add_argument(
        "--memory", type=int, default=2048, metavar="MB", help="for each snippet (default: 2048)"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    parser.add_argument("--json", action="store_true", help="the report as JSON on stdout")
    parser.add_argument("--fail-on", choices=("confirmed",), help="exit with 1 where there is one")
    add_settings(parser)
    parser.set_defaults(run=confirm)


def confirm(arguments: argparse.Namespace) -> int:
    """Lint, run, judge and report; returns the exit status."""
    if os.name != "posix":
        return fail("confirm needs Linux or macOS: elsewhere code cannot be run within limits")
    if find_spec("torch") is None:
        return fail(MISSING_TORCH)
    from flake8_torchperf.runtime.confirm.plan import PlanError, parse_request, plan
    from flake8_torchperf.runtime.confirm.sandbox import SandboxError

    try:
        settings = _settings(arguments)
        requests = [parse_request(text) for text in arguments.path]
        groups = plan(requests, settings, lambda problem: fail(f"passed over: {problem}"))
        size = arguments.project or settings.sizes[-1] * PROJECTION
        judged, session = _run(groups, arguments, size)
    except (PlanError, OptionError, SandboxError) as error:
        return fail(str(error))
    except KeyboardInterrupt:
        print("torchperf: interrupted; the child process was ended", file=sys.stderr)
        return INTERRUPTED
    return _report(judged, session, arguments)


def _settings(arguments: argparse.Namespace) -> ConfirmSettings:
    """Return the checked arguments. Raises OptionError with one line."""
    from flake8_torchperf.runtime.confirm.plan import ConfirmSettings

    _check_bounds(arguments)
    if arguments.harness is not None:
        check_harness(arguments.harness)
    if arguments.device == "cuda" and not _has_cuda():
        raise OptionError("--device cuda: torch finds no CUDA device here")
    return ConfirmSettings(
        sizes=parse_sizes(arguments.sizes),
        device=arguments.device,
        given=parse_inputs(arguments.inputs),
        harness=arguments.harness,
        options=settings(arguments, "confirm"),
    )


def _check_bounds(arguments: argparse.Namespace) -> None:
    for name, (least, most) in BOUNDS.items():
        given = getattr(arguments, name)
        if given is None:
            continue
        shown = f"{given:g}" if isinstance(given, float) else given
        if not given >= least:  # also refuses nan
            raise OptionError(f"--{name}: {shown} is too small, give {least} or more")
        if given > most:
            raise OptionError(f"--{name}: {shown} is too large, give {most} or less")


def _has_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return the numbers of a text like ``16,64,256`` in ascending order. Raises OptionError."""
    if not text:
        return DEFAULT_SIZES
    from flake8_torchperf.runtime.confirm.plan import positive

    numbers = {positive(part.strip()) for part in text.split(",")}
    if 0 in numbers:
        raise OptionError(f"--sizes: {text!r} is not a list of sizes; write for example 16,64,256")
    sizes = tuple(sorted(numbers))
    if len(sizes) < 3:
        raise OptionError(f"--sizes: {text!r} has fewer than three sizes, too few to see a law")
    return sizes


def _run(
    groups: list[Group], arguments: argparse.Namespace, size: int
) -> tuple[list[ConfirmedFinding], Circumstances]:
    """Run every group and judge its findings, in the order of the files."""
    from flake8_torchperf.runtime.confirm.report import (
        Circumstances,
        ConfirmedFinding,
        line_of_text,
    )
    from flake8_torchperf.runtime.confirm.sandbox import Sandbox
    from flake8_torchperf.runtime.confirm.verdict import verdict_of_call

    judged: list[ConfirmedFinding] = []
    if not groups:
        return judged, Circumstances(_torch_version(), arguments.device, size, {})
    limits = (arguments.timeout, arguments.memory, arguments.device)
    with Sandbox(*limits) as sandbox, _progress(len(groups)) as tell:
        for group in groups:
            tell(f"{group.path}: {group.function}", None)
            answer = sandbox.run(group.job)
            for target in group.targets:
                verdict = verdict_of_call(group, target, answer, size, arguments.device)
                judged.append(ConfirmedFinding(group, target, verdict))
                tell("", None if arguments.json else line_of_text(judged[-1]))
        session = Circumstances(sandbox.torch, arguments.device, size, sandbox.isolation)
    return judged, session


def _torch_version() -> str:
    from importlib.metadata import version

    return version("torch")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[str, str | None], None]]:
    """Show progress: a bar on a terminal, plain lines as they come where the output is piped.

    Yields a function of two arguments: the name of the function about to run ("" for none), and a
    finished line or None.
    """
    if not sys.stderr.isatty() or find_spec("rich") is None:

        def tell(function: str, line: str | None) -> None:
            if line is not None:
                print(line, flush=True)

        yield tell
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, redirect_stdout=True) as bar:
        task = bar.add_task("", total=total)
        started = [0]

        def show(function: str, line: str | None) -> None:
            if function:
                bar.update(task, description=os.path.basename(function), completed=started[0])
                started[0] += 1
            if line is not None:
                print(line)

        yield show


def _report(
    judged: list[ConfirmedFinding], session: Circumstances, arguments: argparse.Namespace
) -> int:
    from flake8_torchperf.runtime.confirm.report import as_json, isolation_notes, summary

    for note in isolation_notes(session):
        print(f"torchperf: {note}", file=sys.stderr)
    if arguments.json:
        print(json.dumps(as_json(judged, session), indent=2))
    else:
        print(summary(judged))
    failing = arguments.fail_on is not None
    return int(failing and any(one.verdict.status == arguments.fail_on for one in judged))
