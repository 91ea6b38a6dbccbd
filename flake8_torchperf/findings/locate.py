"""Lines and source texts of the loops around a site, taken from positions in the file."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import COMPREHENSIONS

if TYPE_CHECKING:
    from flake8_torchperf.judgement.judged_site import JudgedSite, Loop
    from flake8_torchperf.syntax.positions import Snippet

# Messages leave out a loop's iterable if its source text is longer than this.
MAX_OVER = 40


def locate(site: JudgedSite, snippet: Snippet) -> JudgedSite:
    """Return the site with the lines of its loops and of its leader filled in."""
    loops = tuple(_loop(loop, snippet) for loop in site.loops)
    leader = None if site.leader is None else snippet.position(site.leader)
    return replace(site, loops=loops, leader_line=leader[0] if leader else 0)


def _loop(loop: Loop, snippet: Snippet) -> Loop:
    place = snippet.position(loop.node) if loop.node is not None else None
    return replace(loop, line=0 if place is None else place[0], over=_over(loop.node, snippet))


def _over(node: ast.AST | None, snippet: Snippet) -> str:
    if isinstance(node, (ast.For, ast.AsyncFor)):
        text = snippet.code(node.iter)
    elif isinstance(node, COMPREHENSIONS):
        text = snippet.code(node.generators[0].iter)
    else:
        return ""
    return text if len(text) <= MAX_OVER else ""
