"""``torchperf cache``: shows where the cache is and how large, and clears it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.cli.parser import add_parser, fail

if TYPE_CHECKING:
    import argparse

    from flake8_torchperf.cache.entries import Usage


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``cache``."""
    parser = add_parser(
        commands,
        "cache",
        "show where findings are remembered, or forget them all",
        "torchperf cache --clear",
    )
    parser.add_argument("--clear", action="store_true", help="remove what is remembered")
    parser.add_argument(
        "--cache-dir",
        dest="dir",
        type=Path,
        metavar="DIR",
        help="the folder (else the one that torchperf-cache-dir in the configuration names, "
        "or TORCHPERF_CACHE_DIR, or the platform's)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show or clear; returns the exit status."""
    from flake8_torchperf.cache.entries import Store, in_words
    from flake8_torchperf.cache.folder import cache_folder

    if arguments.dir is not None and not arguments.dir.is_dir():
        return fail(f"cache: there is no folder {arguments.dir}")
    store = Store(cache_folder(arguments.dir or configured(arguments)))
    try:
        if arguments.clear:
            print(f"{store.folder}: removed {_words(store.clear())}")
        else:
            print(f"{store.folder}: {_words(store.usage())}, at most {_size(store.limit)}")
    except OSError as error:
        return fail(f"cache: {in_words(error)}; --cache-dir names another folder")
    return 0


def configured(arguments: argparse.Namespace) -> Path | None:
    """Return the folder that the configuration names for the current folder, as `check` reads it.

    A configuration that can't be used ends the process with one line.
    """
    from flake8_torchperf.cli.settings.command_line import settings

    return settings(arguments, "cache").cache_folder


def _words(usage: Usage) -> str:
    plural = "entry" if usage.entries == 1 else "entries"
    return f"{usage.entries} {plural}, {_size(usage.bytes)}"


def _size(number: int) -> str:
    if number < 1024 * 1024:
        return f"{number / 1024:.1f} KiB"
    return f"{number / 1024 / 1024:.1f} MiB"
