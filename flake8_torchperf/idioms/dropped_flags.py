"""Functions that take ``non_blocking`` and do not pass it on to the copies that they make."""

from __future__ import annotations

import ast

from flake8_torchperf.syntax.traversal import FUNCTIONS, once, walk

FLAG = "non_blocking"


@once
def drops_flag(function: ast.AST) -> bool:
    """True if a function has a parameter ``non_blocking`` that its body never reads."""
    if not isinstance(function, FUNCTIONS):
        return False
    given = function.args
    names = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    return FLAG in names and not any(
        isinstance(node, ast.Name) and node.id == FLAG for node in walk(function.body)
    )
