"""``torchperf mcp``: the command line, and the server.

Neither the SDK nor the tools may be imported before it is run: every command reads this module.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from flake8_torchperf import __version__
from flake8_torchperf.cli.parser import add_parser, fail

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

MISSING = "mcp: the package mcp 2 is not installed: pip install 'flake8-torchperf[mcp]'"


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``mcp``."""
    parser = add_parser(
        commands,
        "mcp",
        "offer check, why, explain and diffs of fixes to agents: an MCP server on standard input "
        "and output",
        "torchperf mcp",
    )
    parser.set_defaults(run=run)


def run(_arguments: argparse.Namespace) -> int:
    """Serve until the client closes standard input; returns the exit status."""
    try:
        server = make_server()
    except ImportError:
        return fail(MISSING)
    server.run()
    return 0


def make_server() -> Any:
    """Return an ``MCPServer`` of the SDK with our tools. Raises ImportError without the SDK."""
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    from flake8_torchperf.cli.mcp.tools import TOOLS

    server = MCPServer("torchperf", version=__version__, log_level="ERROR")
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for tool in TOOLS:
        # The text alone: as structured content, it would be sent twice.
        server.add_tool(_telling(tool), annotations=reading, structured_output=False)
    return server


def _telling(tool: Callable[..., str]) -> Callable[..., str]:
    """Return a tool whose failure is told to the client in the command's own words."""
    from mcp.server.mcpserver.exceptions import ToolError

    from flake8_torchperf.cli.mcp.tools import NotAnsweredError

    @wraps(tool)
    def told(*args: Any, **named: Any) -> str:
        try:
            return tool(*args, **named)
        except NotAnsweredError as problem:
            raise ToolError(str(problem)) from problem

    return told
