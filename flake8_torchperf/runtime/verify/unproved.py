"""Reasons why calls cannot show that a fix is right, however alike their results are.

Reads the two texts of a function. Must not import torch.
"""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from collections.abc import Iterator

# Functions of torch whose result shares no memory with their arguments.
_NEW = frozenset(("tensor", "stack", "cat", "concat", "zeros", "ones", "full", "empty", "arange",
                  "rand", "randn", "randint", "randperm"))  # fmt: skip
_DOUBLES = ("double", "float64")

RACE = "another write to the memory that is copied may come first, which no call here can show"
NO_DOUBLES = "an MPS device has no float64, which only a call there can show"

NO_ERROR = "no call raised the error that is now checked on the device"


def moves_error(before: str, after: str) -> bool:
    """True if a fix of a function leaves the test for an error to the device."""
    old, new = (ast.parse(textwrap.dedent(text)) for text in (before, after))
    return _more(_asserts(old), _asserts(new))


def unshown(before: str, after: str, device: str) -> str:
    """Return why a fix of a function cannot be verified by calls, or "".

    The texts are the function's, without the fix and with it. Someone who asks for CUDA has no MPS.
    """
    old, new = (ast.parse(textwrap.dedent(text)) for text in (before, after))
    if _more(_unwaited(old), _unwaited(new)):
        return RACE
    if device == "cpu" and _more(_doubles(old), _doubles(new)):
        return NO_DOUBLES
    return ""


def _more(before: Iterator[str], after: Iterator[str]) -> bool:
    """True if the fix adds one of the texts."""
    return bool(Counter(after) - Counter(before))


def _doubles(tree: ast.AST) -> Iterator[str]:
    """Return the names of the dtype float64 in a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _DOUBLES:
            yield "float64"


def _asserts(tree: ast.AST) -> Iterator[str]:
    """Return the assertions that the device makes, whose errors come later."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="_assert_async") | ast.Name(id="_assert_async")):
                yield ast.dump(node)


def _unwaited(tree: ast.AST) -> Iterator[str]:
    """Return the copies that do not wait, of memory that other code may hold."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=copied), keywords=keywords):
                flags = [one.value for one in keywords if one.arg == "non_blocking"]
                if any(not _is_off(one) for one in flags) and not _is_new(copied):
                    yield ast.dump(node)


def _is_off(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _is_new(node: ast.expr) -> bool:
    """True if an expression makes the memory of its result."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if isinstance(node.func.value, ast.Name):
            return node.func.value.id == "torch" and node.func.attr in _NEW
        node = node.func.value
    return False
