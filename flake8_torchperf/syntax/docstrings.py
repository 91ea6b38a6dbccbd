"""The docstring of a class or function, cached."""

from __future__ import annotations

import ast
from inspect import cleandoc
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import once

if TYPE_CHECKING:
    from typing import TypeAlias

    Documented: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def raw_docstring(node: Documented) -> str:
    """Return the docstring as written in the code; "" if there is none."""
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        text = first.value.value
        return text if isinstance(text, str) else ""
    return ""


@once
def docstring(node: Documented) -> str:
    """Return the docstring without its indentation."""
    return cleandoc(raw_docstring(node))
