"""The ``torchperf`` command: arguments in, an exit status out.

Each command has its own module with a function ``add_command(commands)``; to add a command, add its
module to ``COMMANDS``. The module may import only what parsing its arguments needs, so that
``torchperf --help`` never imports torch.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from flake8_torchperf import __version__
from flake8_torchperf.cli.parser import Parser, complain, fail

CHECK, FIX = "check", "fix"
# Errors of writing to standard output, besides a closed pipe.
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
COMMANDS = (
    "flake8_torchperf.cli.check_command",
    "flake8_torchperf.cli.fix.command",
    "flake8_torchperf.cli.explain",
    "flake8_torchperf.cli.why.command",
    "flake8_torchperf.cli.confirm_command",
    "flake8_torchperf.cli.run_command",
    "flake8_torchperf.cli.compare.command",
    "flake8_torchperf.cli.profile.command",
    "flake8_torchperf.cli.cache_command",
    "flake8_torchperf.cli.settings.init_command",
    "flake8_torchperf.cli.skill.command",
    "flake8_torchperf.server.command",
    "flake8_torchperf.cli.mcp.command",
)

EPILOG = """\
examples:
  torchperf check src            find where Python makes the accelerator wait
  torchperf explain TPF203       why, and what to write instead
  torchperf why train.py:41      why a line is reported, or is not
  torchperf rules                every rule in one table
  torchperf run train.py         run a workload and tell which findings it confirms
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; a user's mistake is one line on stderr."""
    _fill_standard_streams()
    _escape_what_cannot_be_encoded()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Python would complain again when it flushes.
        _stop_writing()
        return 0
    except OSError as error:
        if error.errno not in DISK_FULL or error.filename is not None:
            raise
        _stop_writing()
        return fail(f"standard output cannot be written: {error.strerror}")
    return status


def _stop_writing() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fill_standard_streams() -> None:
    """Open streams that were closed at the start (``<&-``), or the next file would replace them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number, this one
            os.set_inheritable(opened, True)
            setattr(sys, name, os.fdopen(opened, "w" if number else "r"))


def _escape_what_cannot_be_encoded() -> None:
    """Print an escape for characters that a terminal lacks: pages and sources can hold any."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(words: list[str]) -> int:
    if words[:1] == [CHECK]:
        # Its options are flake8's to parse, and it must start fast: no other command is loaded.
        from flake8_torchperf.cli.check_command import check

        return check(words[1:])
    if words[:1] == [FIX]:
        from flake8_torchperf.cli.fix.command import fix

        return fix(words[1:])
    from flake8_torchperf.findings.page import CatalogueError

    parser = build_parser()
    arguments = parser.parse_args(words)
    if "run" not in arguments:
        complain(parser, "name a command")
    try:
        status: int = arguments.run(arguments)
    except CatalogueError as error:
        return fail(str(error))
    return status


def build_parser() -> Parser:
    """Return the parser with every command's own."""
    parser = Parser(
        prog="torchperf",
        description="Find where Python makes the accelerator wait, explain it and confirm it.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(metavar="command")
    for name in COMMANDS:
        import_module(name).add_command(commands)
    return parser


def save(option: str, path: Path, text: str) -> int:
    """Write a report to the file that an option names; returns the exit status.

    Text that UTF-8 can't encode, above all a path that is not UTF-8, is written escaped.
    """
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        return fail(f"{option}: {path} cannot be written: {error.strerror}")
    return 0


def unwritable(path: Path) -> str:
    """Return why no report can be written there, as far as one can know beforehand, or ""."""
    folder = path.absolute().parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    if path.is_dir():
        return f"{path} is a folder; name a file"
    if not os.access(path if path.exists() else folder, os.W_OK):
        return f"{path} cannot be written: Permission denied"
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
