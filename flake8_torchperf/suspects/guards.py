"""Tests that ask whether code is being compiled, and words without which nothing is.

Enters an expression or lines of text; leaves which way compiled code goes. Imported for every file
with suspects, so kept light. Must not know anything else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

GUARDS = frozenset((
    "is_compiling", "is_dynamo_compiling", "is_exporting", "is_torchdynamo_compiling",
    "is_fx_symbolic_tracing", "is_scripting", "is_tracing",
))  # fmt: skip
# A module that has none of these words compiles and transforms nothing.
WORDS = ("compile", "vmap", "functorch", "torch.func", "_dynamo")


def speaks_of_compiling(lines: Iterable[str]) -> bool:
    """May there be compiled code in a module with these lines?"""
    text = "".join(lines)
    return any(word in text for word in WORDS)


def guarded(test: ast.expr) -> bool | None:
    """For a test that asks whether code is being compiled: which outcome compiled code takes."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            side = guarded(inner)
            return None if side is None else not side
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            if name in GUARDS:
                return name not in ("is_scripting", "is_tracing", "is_fx_symbolic_tracing")
        case ast.BoolOp(op=op, values=values):
            # `a and not is_compiling()` never holds; `is_compiling() or a` always does.
            decisive = isinstance(op, ast.Or)
            if any(guarded(value) is decisive for value in values):
                return decisive
    return None
