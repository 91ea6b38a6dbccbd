"""``torch.stack(x).pin_memory().to(d)`` -> ``....to(d, non_blocking=True)``: no wait.

Only where nothing else can write to the pinned memory before the copy is complete, because the same
expression made it. `pin_memory` returns an already pinned tensor unchanged.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

# Functions of torch whose result shares no memory with their arguments.
_NEW = frozenset(("tensor", "stack", "cat", "concat", "zeros", "ones", "full", "empty", "arange",
                  "rand", "randn", "randint", "randperm"))  # fmt: skip


def plan(place: FixPlace) -> Edit | None:
    """Apply to a copy of a tensor that is pinned in the same expression."""
    call = planned(place)
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Attribute(value=owner)))):
            made = owner.func if isinstance(owner, ast.Call) else None
            name = "" if made is None else place.around.qualified(made)
            return Edit((call,)) if name.removeprefix("torch.") in _NEW else None
    return None


def planned(place: FixPlace) -> ast.Call | None:
    """Return the edit of a copy from pinned memory, where the flag can be passed to it."""
    operand = place.site.operand
    if not isinstance(operand, Tensor) or operand.memory != "pinned":
        return None
    return queueable(place.site.node)


def queueable(call: ast.AST) -> ast.Call | None:
    """Return the call of ``to`` or ``cuda`` that a node is, where the flag can be passed to it."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    given = [one.arg for one in call.keywords]
    if call.func.attr not in ("to", "cuda") or None in given or "non_blocking" in given:
        return None
    if len(call.args) > 2 or any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    return call if len(call.args) < 2 or _is_dtype(call.args[1]) else None


def _is_dtype(node: ast.expr) -> bool:
    """True for ``x.dtype`` and ``torch.float16``, which as a second argument are surely no flag."""
    match node:
        case ast.Attribute(attr="dtype") | ast.Attribute(value=ast.Name(id="torch")):
            return True
    return False


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Pass the flag."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    assert isinstance(call, cst.Call)
    return [build.with_arguments(call, [build.keyword("non_blocking", cst.Name("True"))])]
