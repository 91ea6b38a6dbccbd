"""Words for how often code runs that stands beside the loop over steps."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import head_of, names_in
from flake8_torchperf.knowledge.names import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable

# Code that runs once the steps are done.
AT_THE_END = "at the end"
# Shorter names say nothing about what a round is.
SHORTEST_NAME = 3


def rate_of(loop: ast.AST) -> str:
    """Return how often a loop around the steps repeats its body: "per scene" for each scene.

    "" for a loop that only counts, whose rounds are epochs.
    """
    head = head_of(loop)
    if head is None:
        return ""
    target, source = head.target, head.iter
    while isinstance(source, ast.Call) and source.args and isinstance(source.func, ast.Name):
        if source.func.id == "enumerate" and isinstance(target, ast.Tuple):
            target = target.elts[-1]
        elif source.func.id == "range":
            return ""
        source = source.args[0]
    if not isinstance(target, ast.Name):
        return ""
    words = target.id.strip("_").split("_")
    said = len(target.id) >= SHORTEST_NAME and names_of("counters").isdisjoint(words)
    return f"per {' '.join(words)}" if said and all(map(str.isalpha, words)) else ""


def counts(loop: ast.AST) -> bool:
    """True for a loop that only counts its rounds, as one over epochs does."""
    head = head_of(loop)
    if head is None:
        return isinstance(loop, ast.While)
    words = (word for name in names_in(head.target) for word in name.split("_"))
    return "range" in names_in(head.iter) or not names_of("counters").isdisjoint(words)


def is_after(node: ast.AST, loops: Iterable[ast.AST]) -> bool:
    """True if an expression or a statement stands after all of some loops, of which there are any.

    Both are of one function.
    """
    return ends_before(getattr(node, "lineno", 0), loops)


def ends_before(line: int, loops: Iterable[ast.AST]) -> bool:
    """True if a line of a function is below all of some of its loops, of which there are any."""
    ends = [getattr(loop, "end_lineno", 0) for loop in loops]
    return ends != [] and line > max(ends)
