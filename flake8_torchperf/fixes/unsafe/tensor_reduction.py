"""``max(a, b)`` -> ``torch.maximum(a, b)``, and other reductions of Python's -> torch's.

``max(t, 1)`` becomes ``t.clamp(min=1)``. A reduction of one tensor or of a list of tensors becomes
one reduction on the device.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.kinds import have_one_dtype, have_one_kind
from flake8_torchperf.fixes.shared.numbers import is_whole
from flake8_torchperf.fixes.shared.tensors import bindings
from flake8_torchperf.values.values import Strength, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

_METHODS = {"max": "max()", "min": "min()", "sum": "sum(0)", "any": "any()", "all": "all()"}
_OF_TWO = {"max": "maximum", "min": "minimum"}
_LISTS = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp)


def plan(place: FixPlace) -> Edit | None:
    """Apply to reductions without a key, a default or a start."""
    call, site = place.site.node, place.site
    if not isinstance(call, ast.Call) or call.keywords or "keyed" in site.traits:
        return None
    if not isinstance(site.operand, Tensor) or site.operand.reason.strength < Strength.INFERRED:
        return None
    name = place.around.qualified(call.func).removeprefix("builtins.")
    if name not in _METHODS or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if len(call.args) == 2 and name in _OF_TWO:
        return _of_two(call, name, place)
    if len(call.args) != 1:
        return None
    if "whole" in site.traits:
        return Edit((call,), {"form": "method", "method": _METHODS[name]})
    return _of_list(call, name, place)


def _of_two(call: ast.Call, name: str, place: FixPlace) -> Edit | None:
    if "bounded" not in place.site.traits:
        # Python returns one of the two unchanged; torch promotes to a dtype that both fit into.
        if not have_one_dtype(call.args, place.around):
            return None
        written = place.around.reach(f"torch.{_OF_TWO[name]}", call)
        if written is None:
            return None
        return Edit((call,), {"form": "function", "function": written[0]}, written[1])
    index = next((i for i, one in enumerate(call.args) if one is place.site.operand_node), None)
    if index is None or (index == 1 and not _is_plain(call.args[0])):
        return None
    operand = place.site.operand
    ints = isinstance(operand, Tensor) and operand.dtype in ("int", "bool")
    if ints and not is_whole(call.args[1 - index], place.around):
        return None  # it would become a tensor of floats
    bound = {"max": "min", "min": "max"}[name]
    return Edit((call,), {"form": "clamp", "index": index, "bound": bound})


def _is_plain(node: ast.expr) -> bool:
    """True if an expression can be computed after the tensor as well as before it."""
    if isinstance(node, ast.BinOp):
        return _is_plain(node.left) and _is_plain(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_plain(node.operand)
    return repeatable(node)


def _of_list(call: ast.Call, name: str, place: FixPlace) -> Edit | None:
    (given,) = call.args
    if "bounded" in place.site.traits:
        return None
    if isinstance(given, (ast.List, ast.Tuple)) and not have_one_kind(given.elts, place.around):
        return None
    if isinstance(given, _LISTS) or _is_list(given, place.around):
        if isinstance(given, ast.GeneratorExp) and (name in ("any", "all") or _waits(given)):
            return None  # it stops at the first deciding item, and an async one makes no list
        written = place.around.reach("torch.stack", call)
        if written is not None:
            facts = {"form": "stack", "stack": written[0], "method": _METHODS[name]}
            return Edit((call,), facts, written[1])
    return None


def _waits(node: ast.GeneratorExp) -> bool:
    """True if a generator holds an ``await`` or an ``async for``."""
    return any(
        isinstance(part, ast.Await) or (isinstance(part, ast.comprehension) and part.is_async)
        for part in ast.walk(node)
    )


def _is_list(node: ast.expr, around: Surroundings) -> bool:
    """True if a name is surely a list: `torch.stack` does not take every iterable."""
    function = around.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    found = bindings(function, node.id)
    return bool(found) and all(one is not None and _makes_list(one) for one in found)


def _makes_list(bound: ast.expr | ast.arg) -> bool:
    if isinstance(bound, ast.arg):
        hint = bound.annotation
        kind = hint.value if isinstance(hint, ast.Subscript) else hint
        return isinstance(kind, ast.Name) and kind.id in ("list", "List", "tuple", "Tuple")
    if isinstance(bound, ast.BinOp):
        return isinstance(bound.op, ast.Mult) and _makes_list(bound.left)
    return isinstance(bound, (ast.List, ast.ListComp, ast.Tuple))


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Replace Python's reduction by torch's."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build
    from flake8_torchperf.fixes.shared.nodes import reductions

    (call,) = nodes
    assert isinstance(call, cst.Call)
    return [build.in_place_of(call, reductions.reduced(call, edit.facts))]
