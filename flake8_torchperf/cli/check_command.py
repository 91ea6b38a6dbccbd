"""``torchperf check``: the findings of ``flake8 --select TPF``, an exit status out.

Its options are flake8's, so flake8 parses them. Must not import flake8 before it is run: the other
commands load this module too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.cli.parser import USAGE_ERROR

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

SUMMARY = "find where Python makes the accelerator wait, as flake8 --select TPF but faster"
# An older flake8 makes its parts in another way, and is run as it is: the same findings, no sooner.
OLDEST_BUILT_ON = (6,)
# What the command's short options are in flake8's parser.
_SHORT = {
    "--no-cache": "--no-torchperf-cache",
    "--cache-dir": "--torchperf-cache-dir",
    "--baseline": "--torchperf-baseline",
}


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``check`` for the list of commands; `cli.main` hands its arguments to `check`."""
    commands.add_parser("check", help=SUMMARY, add_help=False)


def check(arguments: Sequence[str]) -> int:
    """Lint, and return flake8's exit status.

    Our codes are selected first, so that a ``--select`` of the person's still decides.
    """
    import flake8

    if "--fix" in _options(arguments):
        from flake8_torchperf.cli.fix.command import fix

        arguments = [word for word in arguments if word != "--fix"]
        if fix(_in_full(arguments)) not in (0, 1):
            return USAGE_ERROR
    words = ["--select=TPF", *_in_full(arguments)]
    if flake8.__version_info__ < OLDEST_BUILT_ON:
        from flake8.main.cli import main

        return main(words)
    from flake8_torchperf.cli.check_run import CheckApplication

    application = CheckApplication()
    application.run(words)
    return application.exit_code()


def read_configuration() -> None:
    """Let the plugin take its options from flake8's configuration alone, as for a run."""
    import flake8

    if flake8.__version_info__ < OLDEST_BUILT_ON:
        from flake8.main.application import Application

        Application().initialize([])
    else:
        from flake8_torchperf.cli.check_run import read_options

        read_options([], "cache", lambda options: None)


def _in_full(arguments: Sequence[str]) -> list[str]:
    options = _options(arguments)
    return [*map(_spelt, options), *arguments[len(options) :]]


def _options(arguments: Sequence[str]) -> Sequence[str]:
    """The words before ``--``, behind which everything is a path."""
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _spelt(argument: str) -> str:
    name, equals, value = argument.partition("=")
    return f"{_SHORT.get(name, name)}{equals}{value}"
