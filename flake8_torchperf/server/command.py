"""``torchperf server``: the command line. Must not import pygls before it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.cli.parser import add_parser, fail

if TYPE_CHECKING:
    import argparse

MISSING = "server: pygls 2 is not installed: pip install 'flake8-torchperf[server]'"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``server``."""
    parser = add_parser(
        commands,
        "server",
        "show findings in an editor as you type: a language server on standard input and output",
        "torchperf server",
    )
    parser.add_argument("--stdio", action="store_true", help="what it does anyway; editors say so")
    parser.set_defaults(run=run)


def run(_arguments: argparse.Namespace) -> int:
    """Serve until the client sends exit; returns the exit status."""
    try:
        from pygls.lsp.server import LanguageServer  # noqa: F401
    except ImportError:
        return fail(MISSING)
    from flake8_torchperf.server.app import serve

    return serve()
