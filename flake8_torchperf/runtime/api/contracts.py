"""Functions that must not wait, at run time: `sync_free`, and the one that a frame belongs to."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import torch

from flake8_torchperf.contracts.marked_functions import nested_in, read_whole
from flake8_torchperf.judgement.frequency.own_heat import matches_glob
from flake8_torchperf.project.files import stamp
from flake8_torchperf.runtime.api.budget import dispatch_budget
from flake8_torchperf.runtime.counting.counts import REPORTED_WAITS
from flake8_torchperf.runtime.counting.user_frames import Owner
from flake8_torchperf.syntax.contract_comments import contract_comments

P = ParamSpec("P")
R = TypeVar("R")

# Events that would wait, where no device reports waits.
INFERRED_COUNTS = ("host_reads", "transfers", "synchronisations", "dynamic_shapes")


class _NoWaits(dispatch_budget):
    """A budget of zero waits."""

    def __init__(self, owner: Owner, host_as_device: bool | None) -> None:
        super().__init__(max_dispatches=0, owner=owner, host_as_device=host_as_device)
        # Sizes that depend on data are counted only at the level that counts dispatches.
        self.limits = dict.fromkeys(
            REPORTED_WAITS if torch.cuda.is_available() else INFERRED_COUNTS, 0
        )


@overload
def sync_free(function: Callable[P, R]) -> Callable[P, R]: ...


@overload
def sync_free(*, owner: Owner = None, host_as_device: bool | None = None) -> dispatch_budget: ...


def sync_free(
    function: Callable[..., Any] | None = None,
    *,
    owner: Owner = None,
    host_as_device: bool | None = None,
) -> Any:
    """Allow each call of a function, or a block, no wait for the device.

        @sync_free
        def decode_step(tokens): ...

        with sync_free():
            decode_step(tokens)

    With CUDA the device itself reports the waits; otherwise they are inferred from the calls: host
    reads, copies between host and device, sizes that depend on data. owner and host_as_device are
    those of `DispatchCounter`. Lines with `# noqa` or `# noqa: TPF...` may wait. For a generator or
    coroutine function only the call counts, which does not run its body.
    Raises BudgetExceeded (an AssertionError), which names the lines, after the call.
    """
    budget = _NoWaits(owner, host_as_device)
    return budget if function is None else budget(function)


class _Defined(NamedTuple):
    """A function of a file: its names, and whether it is marked."""

    name: str
    qualname: str
    method: bool
    marked: bool


class ContractFrames:
    """Finds the function that must not wait, if any, that led to a frame.

    ``globs`` are those of the settings; marks are read from the files of the code that runs.
    """

    def __init__(self, globs: tuple[str, ...]) -> None:
        self._globs = globs
        self._known: dict[CodeType, _Defined | None] = {}

    def around(self, frame: FrameType | None) -> str:
        """Return the name of the nearest sync-free function on the call stack; "" if none."""
        while frame is not None:
            found = self._stated(frame)
            if found:
                return found
            frame = frame.f_back
        return ""

    def _stated(self, frame: FrameType) -> str:
        code = frame.f_code
        if code not in self._known:
            self._known[code] = _defined(code)
        one = self._known[code]
        if one is None:
            return ""
        if one.marked or self._names(one.name, one.qualname):
            return one.qualname.replace(".<locals>", "")
        if one.method and self._globs and code.co_argcount:
            # A method that the glob's class inherits.
            own = frame.f_locals.get(code.co_varnames[0])
            for klass in type(own).__mro__:
                inherited = f"{klass.__qualname__}.{one.name}"
                if self._names(one.name, inherited):
                    return inherited
        return ""

    def _names(self, name: str, qualname: str) -> bool:
        return any(matches_glob(name, qualname, glob) for glob in self._globs)


def _defined(code: CodeType) -> _Defined | None:
    path = code.co_filename
    return _functions(path, stamp(path)).get((code.co_firstlineno, code.co_name))


@lru_cache(maxsize=1024)
def _functions(path: str, changed: tuple[int, int]) -> dict[tuple[int, str], _Defined]:
    """Return the functions of a file by their first line, decorators included."""
    found: dict[tuple[int, str], _Defined] = {}
    module = read_whole(path, *changed) if Path(path).is_file() else None
    for info in () if module is None else module.defined:
        own = [(info.qualname, info.node), *nested_in(info.node, info.qualname)]
        for qualname, node in own:
            line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            method = node is info.node and info.owner is not None
            marked = module is not None and contract_comments(module.lines).mark(node)
            found[line, node.name] = _Defined(node.name, qualname, method, marked)
    return found
