"""The heat of the functions that sites stand in, including nested and compiled functions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.frequency.own_heat import FINAL, MODULE_HEAT
from flake8_torchperf.judgement.heat import Heat, Level
from flake8_torchperf.syntax.traversal import once, walk
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from flake8_torchperf.interpreter.engine.place import Frame
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.knowledge.conventions import Conventions
    from flake8_torchperf.project.module_index import FunctionInfo


class FrameHeats:
    """The heats of frames; ``base``, if it is given, is the heat of the outermost frame."""

    def __init__(self, heats: FunctionHeats, base: Heat | None = None) -> None:
        self._heats = heats
        self._base = base
        self._known: dict[Frame, Heat] = {}
        self._loops: dict[Frame, AbstractSet[int]] = {}

    def of(self, frame: Frame) -> Heat:
        """Return how often a function runs; one that is compiled runs in every step."""
        known = self._known.get(frame)
        if known is None:
            known = self._known[frame] = self._of(frame)
        return known

    def step_loops(self, frame: Frame) -> AbstractSet[int]:
        """Return the identities of the loops over steps of a function without other evidence."""
        known = self._loops.get(frame)
        if known is None:
            known = self._loops[frame] = self._step_loops(frame)
        return known

    def evaluates(self, frame: Frame, heat: Heat) -> bool:
        """True if a function of some heat holds loops over steps which only evaluate a model."""
        if heat.cause is not Cause.OUTSIDE_STEPS or frame.info is None or frame.outer is not None:
            return False
        return self._heats.evaluates(frame.info)

    def _step_loops(self, frame: Frame) -> AbstractSet[int]:
        if frame.info is None:
            return frozenset() if frame.outer is None else self.step_loops(frame.outer)
        if frame.outer is not None:
            return frozenset()
        known = self._outermost(frame.info).cause in (Cause.OUTSIDE_STEPS, Cause.NOTHING)
        return self._heats.step_loops(frame.info) if known else frozenset()

    def _of(self, frame: Frame) -> Heat:
        plain = self._as_plain(frame)
        if not frame.compiled or _stays_cold(plain, frame.info, self._heats.conventions):
            return plain
        return Heat(Level.STEP, Cause.COMPILED, frame.compiled, around=Level.STEP)

    def _as_plain(self, frame: Frame) -> Heat:
        """Return how often a function runs, whether it is compiled or not."""
        if frame.outer is None:
            return MODULE_HEAT if frame.info is None else self._outermost(frame.info)
        outer = self.of(frame.outer)
        if frame.info is None:
            return outer
        heat = self._heats.nested(frame.info)
        return outer if _as_outer(heat, outer, frame.info, frame.outer.info) else heat

    def _outermost(self, info: FunctionInfo) -> Heat:
        return self._heats.called(info) if self._base is None else self._base


def _stays_cold(heat: Heat, info: FunctionInfo | None, conventions: Conventions) -> bool:
    """True if a compiled function stays as cold as the user, a test or its module says."""
    if heat.cause is Cause.NAMED_COLD:
        return True
    if info is None:
        return False
    if heat.cause is Cause.CONVENTION:
        return conventions.effect_of(heat.name) == "cold-if-compiled"
    return heat.cause is Cause.TEST


def _as_outer(heat: Heat, outer: Heat, info: FunctionInfo, around: FunctionInfo | None) -> bool:
    """True if a nested function runs as often as the function around it.

    It does if nothing else is known of it, if the outer function's heat is final, or if a cold
    outer function only calls it. A nested function that is passed on may run in each step.
    """
    if heat.cause is Cause.NOTHING or outer.cause in FINAL:
        return True
    if outer.level is not Level.COLD or heat.cause is not Cause.GIVEN_TENSORS:
        return False
    if info.tree.decorator_list or around is None:
        return False
    return info.name in _names_only_called(around.node)


@once
def _names_only_called(function: ast.AST) -> frozenset[str]:
    """Return the names that a function only calls."""
    nodes = walk([function])
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    handed_on = {node.id for node in names if id(node) not in called}
    return frozenset(node.id for node in names) - handed_on
