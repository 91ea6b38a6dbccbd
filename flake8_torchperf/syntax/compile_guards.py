"""Tests for the mode in which code runs, and the words that compiling code must contain.

This module is imported for every file with suspects, so it has few imports.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

from flake8_torchperf.syntax.traversal import LEAVING

RunMode: TypeAlias = Literal["compiled", "traced", "symbolic", "scripted", "exported"]
# The functions of torch.compiler, torch.jit, torch.onnx and torch.fx that test how code runs, each
# with the mode for which it returns True, and the names under which libraries (transformers,
# kornia) wrap them. Leading underscores don't count. Under torch.compile's tracer, only those for
# "compiled" return True (torch 2.13, as run).
MODE_TESTS: Final[dict[str, RunMode]] = {
    "is_compiling": "compiled",
    "is_dynamo_compiling": "compiled",
    "is_torchdynamo_compiling": "compiled",
    "is_tracing": "traced",
    "is_jit_tracing": "traced",
    "is_tracing_or_exporting": "traced",
    "get_tracing_state": "traced",
    "is_fx_tracing": "symbolic",
    "is_fx_symbolic_tracing": "symbolic",
    "is_make_fx_tracing": "symbolic",
    "is_torch_fx_proxy": "symbolic",
    "is_scripting": "scripted",
    "is_exporting": "exported",
    "is_torchdynamo_exporting": "exported",
    "is_in_onnx_export": "exported",
}
# A module that has none of these words compiles and transforms nothing.
COMPILE_WORDS = ("compile", "vmap", "functorch", "torch.func", "_dynamo")


def asks_for_mode(name: str, *modes: RunMode) -> bool:
    """True if a function of this name tests that code runs in one of these modes, or in any."""
    mode = MODE_TESTS.get(name.lstrip("_"))
    return mode is not None and (not modes or mode in modes)


def speaks_of_compiling(lines: Iterable[str]) -> bool:
    """True if a module with these lines may contain compiled code."""
    text = "".join(lines)
    return any(word in text for word in COMPILE_WORDS)


def guarded(test: ast.expr, named: Callable[[str], bool | None] | None = None) -> bool | None:
    """Return the outcome that a test has in compiled code; None if the test is not about the mode.

    ``named`` returns the outcome in compiled code of a name that stores the result of a test.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            side = guarded(inner, named)
            return None if side is None else not side
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            if not asks_for_mode(name):
                return None
            return asks_for_mode(name, "compiled") or _asks_of_a_value(name, test)
        case ast.Name(id=name) if named is not None:
            return named(name)
        case ast.BoolOp(op=op, values=values):
            # `a and not is_compiling()` never holds; `is_compiling() or a` always does.
            decisive = isinstance(op, ast.Or)
            sides = [guarded(value, named) for value in values]
            if decisive in sides:
                return decisive
            return None if None in sides else not decisive
    return None


def _asks_of_a_value(name: str, call: ast.Call) -> bool:
    """True for ``is_tracing(x)``, which transformers' function answers for the compiler as well.

    ``torch.jit.is_tracing`` takes no arguments.
    """
    return asks_for_mode(name, "traced") and bool(call.args or call.keywords)


def leaves(node: ast.If, named: Callable[[str], bool | None] | None = None) -> bool:
    """True if compiled code never reaches the statements after this ``if``."""
    side = guarded(node.test, named)
    if side is None:
        return False
    taken = node.body if side else node.orelse
    return bool(taken) and isinstance(taken[-1], LEAVING)
