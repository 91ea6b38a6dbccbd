"""``torchperf compare``: tells which statements wait more or less often than in an earlier run."""

from __future__ import annotations

import argparse
from pathlib import Path

from flake8_torchperf.cli.parser import add_parser, fail

FORMATS = ("text", "json", "markdown")


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``compare``."""
    parser = add_parser(
        commands,
        "compare",
        "compare reports that torchperf run --json wrote, statement by statement",
        "torchperf compare before.json after.json\n"
        "  torchperf compare --before a.json b.json --after c.json d.json --fail-on more-waits",
    )
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="a report before, and one after"
    )
    for side in ("before", "after"):
        parser.add_argument(
            f"--{side}",
            type=Path,
            nargs="+",
            default=[],
            metavar="FILE",
            help=f"the reports {side}, if there are several: their mean is compared",
        )
    parser.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    parser.add_argument(
        "--fail-on",
        choices=("more-waits",),
        help="exit with 1 if there are more waits in all than before, or a program was cut short",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare and print; returns the exit status."""
    from flake8_torchperf.cli.compare.report import REPORTS
    from flake8_torchperf.history.run_comparison import compared
    from flake8_torchperf.history.run_record import RunRecordError, read_record

    before, after = arguments.before, arguments.after
    if arguments.files:
        if before or after or len(arguments.files) != 2:
            return fail("compare: name two files, or several after --before and --after")
        before, after = arguments.files[:1], arguments.files[1:]
    if not (before and after):
        return fail("compare: name the reports before and after")
    try:
        comparison = compared(
            [read_record(path) for path in before], [read_record(path) for path in after]
        )
    except RunRecordError as error:
        return fail(f"compare: {error}")
    print(REPORTS[arguments.format](comparison), end="")
    more = comparison.after["waits"] > comparison.before["waits"]
    return int(arguments.fail_on == "more-waits" and (more or not comparison.is_whole))
