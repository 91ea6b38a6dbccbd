"""Lines for sites: loops and heat get the line numbers that only positions can tell.

Enters a site and the snippet it stands in; leaves the same site, located.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.sites.model import Heat, Loop, Site

if TYPE_CHECKING:
    from flake8_torchperf.parse.snippet import Snippet

# Longer sources of what a loop iterates are left out of messages.
MAX_OVER = 40
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def locate(site: Site, snippet: Snippet) -> Site:
    """Fill in the lines of a site's loops and of its heat."""
    loops = tuple(_loop(loop, snippet) for loop in site.loops)
    return replace(site, loops=loops, heat=_heat(site.heat, loops))


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


def _heat(heat: Heat, loops: tuple[Loop, ...]) -> Heat:
    if heat.node is None:
        return heat
    loop = next((x for x in loops if x.node is heat.node), None)
    if loop is None:
        return heat
    over = f" over {loop.over}" if loop.over else ""
    return replace(heat, because=f"in the loop at line {loop.line}{over}")
