"""Calls of helpers that only wait: the wait is recorded at the call.

Examples are ``def item(x): return x.item()`` and ``def sync(): torch.cuda.synchronize()``. The
helper itself is reported at its definition; a site here shows a caller that runs it in each step.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.events.recording import emit, emit_read
from flake8_torchperf.project.function_facts import MAY_ONLY_CALL
from flake8_torchperf.syntax.docstrings import raw_docstring
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import UNKNOWN, tensor_of

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.values import Function

# The trait of a wait that a helper does for its caller.
IN_HELPER = "in-helper"
# The trait of a copy that a helper makes only because the call names the host.
NAMED_HOST = "named-host"
OF_HELPERS = frozenset((IN_HELPER, NAMED_HOST))
WRAPPED_READS = {
    "item": SiteKind.HOST_READ, "tolist": SiteKind.TRANSFER, "float": SiteKind.HOST_READ,
    "int": SiteKind.HOST_READ, "bool": SiteKind.HOST_READ, "numpy": SiteKind.TRANSFER,
}  # fmt: skip
# Methods that a wrapper may call before its read, without a further wait.
BEFORE = frozenset(("detach", "cpu", "float", "mean", "sum", "squeeze", "flatten", "clone"))
SYNCHRONISING = frozenset(
    f"torch.{device}.synchronize" for device in ("cuda", "xpu", "mps", "accelerator")
)


class Wrapped(NamedTuple):
    """The wait in a helper: the kind of its site, the operation, and the parameter read."""

    kind: SiteKind
    operation: str
    parameter: str = ""


WRAPPED: Cache[str, Wrapped | None] = Cache("helpers that only wait")


def note_helper(function: Function, arguments: Arguments, ctx: Context) -> None:
    """Record a call of a helper that only waits."""
    info = function.info
    if ctx.sink is None or not MAY_ONLY_CALL.of(info):
        return
    # In compiled code the helper is compiled too; in the same file both would be reported.
    if ctx.compiled or info.module is ctx.module:
        return
    wrapped = WRAPPED.kept(ctx.analysis, info.key, lambda: _wrapped(info))
    if wrapped is None:
        return
    node = arguments.node
    if not wrapped.parameter:
        emit(ctx, wrapped.kind, wrapped.operation, node, traits=(IN_HELPER,))
        return
    names = [one.arg for one in named_parameters(info.tree.args)]
    place = names.index(wrapped.parameter) - (1 if function.bound is not None else 0)
    given = arguments.get(place, wrapped.parameter) if place >= 0 else None
    value = UNKNOWN if given is None else given.value
    if given is not None and tensor_of(value) is not None:
        traits = ("to-host", IN_HELPER) if wrapped.kind is SiteKind.TRANSFER else (IN_HELPER,)
        emit_read(
            ctx,
            wrapped.kind,
            wrapped.operation,
            node,
            value,
            operand_node=given.node,
            traits=traits,
        )


def _wrapped(info: FunctionInfo) -> Wrapped | None:
    """Return the wait of a helper that only waits, perhaps after a test; None for other code."""
    if info.tree.decorator_list:
        return None
    body = info.node.body[1:] if raw_docstring(info.node) else info.node.body
    match body:
        case [ast.If(body=[inner], orelse=[])]:
            return _synchronising(inner, info)
        case [ast.If(test=test, body=[inner], orelse=[]), ast.Return()] if _asks_type(test):
            return _returned(inner, info)
        case [statement]:
            return _synchronising(statement, info) or _returned(statement, info)
    return None


def _asks_type(test: ast.expr) -> bool:
    match test:
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
        case ast.Call(func=ast.Attribute(attr="is_tensor")):
            return True
    return False


def _synchronising(statement: ast.stmt, info: FunctionInfo) -> Wrapped | None:
    match statement:
        case ast.Expr(value=ast.Call(func=func)) | ast.Return(value=ast.Call(func=func)):
            name = info.module.qualify(func)
            if name in SYNCHRONISING:
                return Wrapped(SiteKind.SYNCHRONIZE, name)
    return None


def _returned(statement: ast.stmt, info: FunctionInfo) -> Wrapped | None:
    """Return the wait of ``return x.detach().item()`` or ``return float(x)``; None for the rest."""
    read: ast.expr | None = None
    name = ""
    match statement:
        case ast.Return(value=ast.Call(func=ast.Attribute(value=read, attr=name), args=[])):
            pass
        case ast.Return(value=ast.Call(func=ast.Name(id=name), args=[read], keywords=[])):
            if name not in ("float", "int", "bool"):
                return None
        case _:
            return None
    while (
        isinstance(read, ast.Call)
        and isinstance(read.func, ast.Attribute)
        and read.func.attr in BEFORE
    ):
        read = read.func.value
    parameters = {one.arg for one in named_parameters(info.tree.args)}
    if name not in WRAPPED_READS or not isinstance(read, ast.Name) or read.id not in parameters:
        return None
    return Wrapped(WRAPPED_READS[name], name, read.id)
