"""Calls of modules in evaluation mode that record gradients nothing asks for."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_roles import is_beside_steps
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.events.guards import NO_GRADIENTS, gradients_off
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.events.training.evaluated_calls import (
    evaluated_calls,
    is_switched_off,
)
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method, is_module
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import UNKNOWN, Instance, Value

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.interpreter.engine.place import Context

UNRECORDED: Cache[str, bool] = Cache("functions that run without gradients")


def note_evaluation(node: ast.Call, callee: Value, ctx: Context) -> None:
    """Record a call in a loop over data of a module that was put in evaluation mode before."""
    code = ctx.module.tree if ctx.node is None else ctx.node
    if not ctx.loops or id(node) not in evaluated_calls(code) or NO_GRADIENTS in ctx.traits:
        return
    if callee is not UNKNOWN and not (is_module(callee, ctx.analysis) and _records(callee, ctx)):
        return
    module = ctx.module
    if is_beside_steps(module, ctx.analysis.conventions) or is_switched_off(node.lineno, module):
        return
    if not module.says("set_grad_enabled") and not _runs_unrecorded(ctx):
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
    """True if gradients are, or may be, off in some code that leads to the current function."""
    info, analysis = ctx.frame.info, ctx.analysis
    if info is None:
        return False
    return UNRECORDED.kept(
        analysis,
        info.key,
        lambda: any(
            module.says("set_grad_enabled") or is_switched_off(run.line, module)
            for module, run in islice(analysis.leading(info), MOST_PLACES)
        ),
    )


# The most places that are looked at to find where gradients are switched off.
MOST_PLACES = 20
