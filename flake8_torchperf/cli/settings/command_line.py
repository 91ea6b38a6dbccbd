"""The linter's settings for our own commands: command line and configuration in, ``Options`` out.

flake8 parses them, as for ``check``, so its files, pyproject.toml and command lines mean the same
in every command. flake8 is imported only when settings are read: parsers are built without it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from flake8_torchperf.options import PREFIX, SETTINGS, Options, spellings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

# An older flake8 makes its parts in another way and runs unchanged: same findings, no speed-up.
OLDEST_BUILT_ON = (6,)
# The attribute of a command's namespace that holds the given settings, in flake8's spelling.
_KEPT = "settings"
# The setting that names the profile of a run.
PROFILE = "profile"


def add_settings(
    parser: argparse.ArgumentParser, only: Sequence[str] = (), *, profile: bool = False
) -> None:
    """Give a command the options that change the findings, or only those named in ``only``.

    With ``profile``, also the one that names the profile of a run.
    """
    group = parser.add_argument_group("settings", "As of flake8 and torchperf check.")
    add = partial(group.add_argument, dest=_KEPT, action="append", default=[])
    for one in SETTINGS:
        if not (one.finds or (profile and one.name == PROFILE)) or (only and one.name not in only):
            continue
        names = spellings(one.name, short=True)
        if one.metavar:
            add(
                *names, type=f"--{PREFIX}{one.name}={{}}".format, metavar=one.metavar, help=one.help
            )
            continue
        off = spellings(one.name, short=True, no=True)
        add(*names, action="append_const", const=names[-1], help=one.help)
        add(*off, action="append_const", const=off[-1], help=f"not --{one.name}")


def settings(
    arguments: argparse.Namespace,
    command: str,
    defaults: Options | None = None,
    *,
    profile: bool = False,
) -> Options:
    """Return the options for the current folder and this command line.

    ``defaults`` applies to settings that are not set, and ``profile`` keeps the profile that is
    set. An invalid setting ends the process with a one-line error.
    """
    import flake8

    from flake8_torchperf.plugin import TorchPerfPlugin

    # None of these commands leaves old findings out, and few rank them by a run.
    unset = ["baseline"] if profile else ["baseline", PROFILE]
    words = [*(f"--{PREFIX}{one}=" for one in unset), *getattr(arguments, _KEPT, [])]
    TorchPerfPlugin.defaults = defaults
    try:
        if flake8.__version_info__ < OLDEST_BUILT_ON:
            from flake8.main.application import Application

            Application().initialize(words)
        else:
            from flake8_torchperf.cli.check_options import Face
            from flake8_torchperf.cli.check_run import read_options

            face = Face(f"torchperf {command}", "", "", local=False)
            read_options(words, command, lambda options: None, face)
    finally:
        TorchPerfPlugin.defaults = None
    return TorchPerfPlugin.options()
