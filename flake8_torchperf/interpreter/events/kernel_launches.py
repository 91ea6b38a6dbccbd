"""Launches of Triton kernels that give a ``tl.constexpr`` parameter a size of the data."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_roles import is_beside_steps
from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.events.data_sizes import Sizes
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.stated_types.class_hierarchy import torch_kind
from flake8_torchperf.knowledge.triton_kernels import COMPILED_IN, KERNEL_MAKERS
from flake8_torchperf.syntax.names import called_name
from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Function, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.environments import Env


def note_launch(node: ast.Call, env: Env, ctx: Context) -> None:
    """Record the first argument of ``kernel[grid](...)`` for which the kernel compiles again."""
    if not isinstance(node.func, ast.Subscript) or ctx.sink is None or ctx.node is None:
        return
    kernel = _kernel(node.func.value, env, ctx)
    if kernel is None or is_beside_steps(ctx.module, ctx.analysis.conventions):
        return
    sizes = Sizes(ctx.node, ctx.module, is_forward=_is_forward(ctx))
    for given in _compiled_in(node, kernel):
        owner = sizes.owner(given)
        if owner and not _is_parameter(owner, env, ctx):
            emit(ctx, SiteKind.KERNEL_SIZE, "constexpr", given)
            return


def _kernel(launched: ast.expr, env: Env, ctx: Context) -> FunctionInfo | None:
    """Return the kernel that a launch names, of this module or of one that it imports."""
    value = evaluate(launched, env, ctx.silent())
    if isinstance(value, Function):
        info: FunctionInfo | None = value.info
    else:
        found = ctx.analysis.project.find(ctx.module.qualify(launched))
        info = found[0].functions.get(found[1][0]) if found and len(found[1]) == 1 else None
    return info if info is not None and not KERNEL_MAKERS.isdisjoint(info.decorators) else None


def _compiled_in(node: ast.Call, kernel: FunctionInfo) -> Iterator[ast.expr]:
    """Yield what a launch gives the kernel's ``constexpr`` parameters."""
    parameters = [*kernel.node.args.posonlyargs, *kernel.node.args.args]
    constants = {
        one.arg
        for one in (*parameters, *kernel.node.args.kwonlyargs)
        if one.annotation is not None and kernel.module.qualify(one.annotation) in COMPILED_IN
    }
    for parameter, given in zip(parameters, node.args, strict=False):
        if isinstance(given, ast.Starred):
            break
        if parameter.arg in constants:
            yield given
    yield from (one.value for one in node.keywords if one.arg in constants)


def _is_forward(ctx: Context) -> bool:
    """True for the ``forward`` of a module, whose arguments are data."""
    return (
        ctx.function.rpartition(".")[2] == "forward"
        and ctx.owner is not None
        and torch_kind(ctx.owner, ctx.analysis) == "module"
    )


def _is_parameter(name: str, env: Env, ctx: Context) -> bool:
    """True if a name holds a parameter of a module, or calls only give the argument attributes."""
    value = env.get(name)
    if isinstance(value, Tensor) and value.role == "parameter":
        return True
    info = ctx.frame.info
    given = [] if info is None else list(_given(name, info))
    return bool(given) and all(
        isinstance(one, ast.Attribute)
        and isinstance(one.value, ast.Name)
        and one.value.id == "self"
        for one in given
    )


def _given(name: str, info: FunctionInfo) -> Iterator[ast.expr]:
    """Yield what the calls in its own module give a function's argument."""
    names = [one.arg for one in (*info.tree.args.posonlyargs, *info.tree.args.args)]
    if names[:1] == ["self"]:
        del names[0]
    for call in walk([info.module.tree]):
        if isinstance(call, ast.Call) and called_name(call.func) == info.name:
            yield from (one for at, one in zip(names, call.args, strict=False) if at == name)
            yield from (one.value for one in call.keywords if one.arg == name)
