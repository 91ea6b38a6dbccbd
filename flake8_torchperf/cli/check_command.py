"""``torchperf check``: the findings of ``flake8 --select TPF``, an exit status out.

Its options are flake8's, so flake8 parses them. Must not import flake8 before it is run: the other
commands load this module too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.cli.settings.command_line import OLDEST_BUILT_ON

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

SUMMARY = "find where Python makes the accelerator wait, as flake8 --select TPF but faster"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``check`` for the list of commands; `cli.main` hands its arguments to `check`."""
    commands.add_parser("check", help=SUMMARY, add_help=False)


def check(arguments: Sequence[str]) -> int:
    """Lint, and return flake8's exit status.

    Our codes are selected first, so that a ``--select`` of the person's still decides.
    """
    import flake8

    if "--fix" in _options(arguments):
        from flake8_torchperf.cli.fix.command import fix_first

        status = fix_first(arguments)
        if status is not None:
            return status
    words = ["--select=TPF", *arguments]
    if flake8.__version_info__ < OLDEST_BUILT_ON:
        from flake8.main.cli import main

        from flake8_torchperf.plugin import TorchPerfPlugin

        TorchPerfPlugin.short_names = True
        return main(words)
    from flake8_torchperf.cli.check_run import run_check

    return run_check(words)


def _options(arguments: Sequence[str]) -> Sequence[str]:
    """Return the words before ``--``; all words after it are paths."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments
