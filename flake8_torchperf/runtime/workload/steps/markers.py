"""Finds the ends of steps among the functions that return.

An optimizer is known by its class when its `step` returns, so that neither torch nor the program is
changed for it. Several optimizers of one step end it once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch

from flake8_torchperf.runtime.workload.steps.step_names import OPTIMIZER, PROFILER, NamedFunction

_PROFILE: Any = torch.profiler.profile


class Markers:
    """Reports each end of a step to ``ended``, with the marker that it is.

    ``function`` ends steps where it returns; without one, optimizers and profilers do.
    """

    def __init__(self, function: NamedFunction | None, ended: Callable[[str], None]) -> None:
        self._function = function
        self._ended = ended
        self._name = "step" if function is None else function.qualname.rpartition(".")[2]
        self._codes: dict[int, CodeType] = {}
        # The optimizers that have stepped since the last step ended, that which ended it included.
        self._round: dict[int, weakref.ref[Any]] = {}
        self._together: tuple[str, ...] = ()

    @property
    def optimizers(self) -> tuple[str, ...]:
        """The classes of the optimizers in the step that had most of them."""
        return max(self._together, self._classes(), key=len)

    def concerns(self, code: CodeType) -> bool:
        """True if a return of this code may end a step. Called once for each code object."""
        if code.co_name != self._name:
            return False
        if self._function is None:
            return code.co_argcount > 0
        if self._function.means(code):
            self._codes[id(code)] = code
            return True
        return False

    def returned(self, frame: FrameType) -> None:
        """Note the return of a function that may end a step."""
        marker = self._marker(frame)
        if not marker or self._is_inside(frame, marker):
            return
        if marker != OPTIMIZER or self._begins_round(_first_argument(frame)):
            self._ended(marker)

    def _marker(self, frame: FrameType) -> str:
        if self._function is not None:
            return self._function.qualname if id(frame.f_code) in self._codes else ""
        if frame.f_code.co_name != self._name or not frame.f_code.co_argcount:
            return ""
        owner = _first_argument(frame)
        if isinstance(owner, torch.optim.Optimizer):
            return OPTIMIZER
        return PROFILER if isinstance(owner, _PROFILE) else ""

    def _is_inside(self, frame: FrameType, marker: str) -> bool:
        """True if a caller ends the same step: an overridden method, or an optimizer's wrapper."""
        outer = frame.f_back
        while outer is not None:
            if self._marker(outer) == marker:
                return True
            outer = outer.f_back
        return False

    def _begins_round(self, optimizer: Any) -> bool:
        """True if an optimizer has stepped already since the last step, or all that did are gone.

        Others that step meanwhile belong to the same step: those of a GAN, or of a list.
        """
        held = self._round.get(id(optimizer))
        again = held is not None and held() is optimizer
        begins = again or not any(one() is not None for one in self._round.values())
        if begins:
            self._together = self.optimizers
            self._round.clear()
        self._round[id(optimizer)] = weakref.ref(optimizer)
        return begins

    def _classes(self) -> tuple[str, ...]:
        alive = [one() for one in self._round.values()]
        return tuple(type(one).__name__ for one in alive if one is not None)


def _first_argument(frame: FrameType) -> Any:
    """Return the object whose method runs in a frame, if it still has that name."""
    return frame.f_locals.get(frame.f_code.co_varnames[0])
