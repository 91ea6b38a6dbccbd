"""Tensors that are given to loggers, which read them: ``writer.add_scalar("loss", loss, step)``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events.recording import emit_read
from flake8_torchperf.knowledge.logging_calls import IN_EACH_STEP, IN_PROGRESS_BAR, reads
from flake8_torchperf.values.combining import held_tensor
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Instance, Mapping_, Scalar, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.arguments import Argument, Arguments


def note_logged(node: ast.Call, owner: Value | None, arguments: Arguments, ctx: Context) -> None:
    """Record the reads of a logging call, one for each tensor among its arguments.

    A method of the project's own class is followed instead.
    """
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if not reads(ctx.module.qualify(node.func), method, arguments.keywords):
        return
    is_own = isinstance(owner, Instance) and owner.info is not None
    if (is_own or IN_PROGRESS_BAR in arguments.keywords) and not _shown(arguments):
        return
    for argument in arguments.all():
        for given, value in _parts(argument):
            held = held_tensor(value)
            if held is not None:
                emit_read(ctx, SiteKind.HOST_READ, method or "log", given, held, operand_node=given)


def _shown(arguments: Arguments) -> bool:
    """True if Lightning's progress bar shows what is logged, in each step.

    With ``on_step=False`` the values are summed up on the device and read once an epoch
    (lightning/pytorch/trainer/connectors/logger_connector/result.py, ``_ResultMetric.update``).
    """
    return _is(arguments, IN_PROGRESS_BAR, True) and not _is(arguments, IN_EACH_STEP, False)


def _is(arguments: Arguments, name: str, value: bool) -> bool:
    """True if an argument is known to be one of True and False."""
    given = arguments.keywords.get(name)
    return given is not None and isinstance(given.value, Scalar) and given.value.value is value


def _parts(argument: Argument) -> list[tuple[ast.expr, Value]]:
    """Return the values of a dict that is written in place, else the argument."""
    match argument.node, argument.value:
        case ast.Dict(keys=keys, values=values), Mapping_(items=items) if items:
            held = dict(items)
            return [
                (value, held[key.value])
                for key, value in zip(keys, values, strict=True)
                if isinstance(key, ast.Constant) and key.value in held
            ]
    return [(argument.node, argument.value)]
