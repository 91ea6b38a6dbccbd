"""Calls of modules in evaluation mode that record gradients nothing asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_roles import is_beside_steps
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.events.guards import NO_GRADIENTS, gradients_off
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.events.training.evaluated_calls import (
    evaluated_calls,
    is_called_without_gradients,
    is_switched_off,
)
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method, is_module
from flake8_torchperf.project.mapped_files import read_file
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import UNKNOWN, Instance, Value

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.interpreter.engine.place import Context

# The most modules that are read to find the calls of a function.
MOST_MODULES = 5
UNRECORDED: Cache[str, bool] = Cache("functions that run without gradients")


def note_evaluation(node: ast.Call, callee: Value, ctx: Context) -> None:
    """Record a call in a loop over data of a module that was put in evaluation mode before."""
    code = ctx.module.tree if ctx.node is None else ctx.node
    if not ctx.loops or id(node) not in evaluated_calls(code) or NO_GRADIENTS in ctx.traits:
        return
    if callee is not UNKNOWN and not (is_module(callee, ctx.analysis) and _records(callee, ctx)):
        return
    if is_beside_steps(ctx.module, ctx.analysis.conventions) or is_switched_off(node, ctx.module):
        return
    if not ctx.module.says("set_grad_enabled") and not _runs_unrecorded(ctx):
        emit(ctx, SiteKind.RECORDED_EVALUATION, "call", node)


def _records(module: Value, ctx: Context) -> bool:
    """True unless the module's own `forward` switches gradients off."""
    if not isinstance(module, Instance) or module.info is None:
        return True
    forward = find_method(module.info, "forward", ctx.analysis)
    if forward is None:
        return True
    decorators = forward.info.tree.decorator_list
    return not any(gradients_off(one, forward.info.module) for one in decorators)


def _runs_unrecorded(ctx: Context) -> bool:
    """True if some call of the current function, in its project, has gradients off."""
    name = ctx.function.rpartition(".")[2]
    if ctx.node is None:
        return False
    key = f"{ctx.module.name}:{name}"
    return UNRECORDED.kept(ctx.analysis, key, lambda: _is_called_unrecorded(name, ctx))


def _is_called_unrecorded(name: str, ctx: Context) -> bool:
    if is_called_without_gradients(name, ctx.module):
        return True
    project = ctx.analysis.project
    for path in project.modules_that_call(name)[:MOST_MODULES]:
        project.note_whole(path)
        module, _ = read_file(path)
        if module is not None and (
            module.says("set_grad_enabled") or is_called_without_gradients(name, module)
        ):
            return True
    return False
