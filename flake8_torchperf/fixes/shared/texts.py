"""Error texts that may be made before it is known whether there is an error.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.numbers import is_whole
from flake8_torchperf.fixes.shared.tensors import has_one_value

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Surroundings

# Attributes that tensors and modules hold on the host; any other object has them or raises.
_KEPT = frozenset(("shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_cuda",
                   "__class__", "__name__"))  # fmt: skip
_PLAIN = frozenset(("builtins.int", "builtins.float", "builtins.bool", "builtins.str"))
_COUNTED = frozenset(("items", "named_parameters", "named_modules", "named_buffers"))


def can_be_made_before(message: ast.expr, test: ast.expr, around: Surroundings) -> bool:
    """True for a literal, and for an f-string of host values that exist in any case.

    A tensor in it would be read each time.
    """
    match message:
        case ast.Constant(value=str()):
            return True
        case ast.JoinedStr(values=parts):
            asked = frozenset(ast.dump(one) for one in ast.walk(test))
            return all(_is_host_text(one, asked, around) for one in parts)
    return False


def _is_host_text(part: ast.expr, asked: frozenset[str], around: Surroundings) -> bool:
    match part:
        case ast.Constant():
            return True
        case ast.FormattedValue(value=value, format_spec=None):
            return _is_host(value, asked, around)
        case ast.FormattedValue(value=value, format_spec=ast.JoinedStr(values=[ast.Constant()])):
            return _is_host(value, asked, around)
    return False


def _is_host(node: ast.expr, asked: frozenset[str], around: Surroundings) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.Attribute(value=value, attr=name) if name in _KEPT:
            return repeatable(value) or _is_host(value, asked, around)
        case ast.Call(func=func, args=[ast.Name()], keywords=[]):
            # `len` raises for objects without a length, unless the test called it before.
            known = around.qualified(func)
            return known == "builtins.type" or (known == "builtins.len" and ast.dump(node) in asked)
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant()):
            return ast.dump(node) in asked
        case ast.Name():
            return _is_host_name(node, asked, around)
    return False


def _is_host_name(name: ast.Name, asked: frozenset[str], around: Surroundings) -> bool:
    if is_number_parameter(name, around, _PLAIN) or _names_what_is_gone_through(name, around):
        return True
    return ast.dump(name) in asked and is_whole(name, around)


def is_number_parameter(name: ast.expr, around: Surroundings, kinds: frozenset[str]) -> bool:
    """True if a name is a parameter annotated with one of ``kinds``, and never bound again."""
    function = around.function(name)
    if function is None or not isinstance(name, ast.Name) or not has_one_value(name, around):
        return False
    return any(
        one.arg == name.id and one.annotation is not None
        and around.qualified(one.annotation) in kinds
        for one in ast.walk(function.args)
        if isinstance(one, ast.arg)
    )  # fmt: skip


def _names_what_is_gone_through(name: ast.Name, around: Surroundings) -> bool:
    """True for the ``name`` of ``for name, t in x.items()`` or ``enumerate(x)`` around a place."""
    here = around.parent(name)
    while here is not None and here is not around.function(name):
        match here:
            case ast.For(target=ast.Tuple(elts=[ast.Name(id=first), *_]), iter=ast.Call(func=func)):
                counts = around.qualified(func) == "builtins.enumerate"
                named = isinstance(func, ast.Attribute) and func.attr in _COUNTED
                if first == name.id and (counts or named):
                    return True
        here = around.parent(here)
    return False
