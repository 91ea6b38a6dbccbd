"""Loops over the elements of a tensor or the parameters of a model."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import LAUNCHING_KINDS, SiteKind
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context, LoopPlace

# Sites that are loops over elements or parameters; a dispatch costs the same without a device.
PER_ELEMENT = (*LAUNCHING_KINDS, SiteKind.HOST_ACCUMULATION)
# Checks that TPF203 reports in loops.
_NON_FINITE = methods_of("tests-finite-reals")
# Operations that take a whole tensor apart at once, without a loop.
AT_ONCE = ("unpack", "tuple", "list", "star")


def over_elements(ctx: Context, kind: SiteKind, operation: str) -> bool:
    """True if a site is or stands in a loop over a tensor's elements or a model's parameters."""
    if kind in PER_ELEMENT and operation not in AT_ONCE:
        return True
    return any(map(by_elements, ctx.loops))


def by_elements(place: LoopPlace) -> bool:
    """True for ``for row in t`` and ``for i in range(len(t))``, but not if the range has a step."""
    if isinstance(place.value, Tensor):
        return True
    match place.over:
        case ast.Call(func=ast.Name(id="range"), args=[_, _, _]):
            return False
    return bool(place.measures)


def costs_without_device(ctx: Context, kind: SiteKind, operation: str, tensor: Tensor) -> bool:
    """True for a loop over elements, or a check in one, on a branch that runs without a device.

    Nothing waits there, but each element still costs a dispatch.
    """
    if ctx.demoted is not Cause.NO_DEVICE or not over_elements(ctx, kind, operation):
        return False
    return kind in PER_ELEMENT or not _NON_FINITE.isdisjoint(tensor.chain)
