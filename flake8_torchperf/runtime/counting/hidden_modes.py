"""Keeps this package's modes out of what torch does that is not the program's: compiling, tracing.

torch.compile would trace through the function mode. Nothing imports dynamo for that: its module is
changed when the program itself imports it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

import torch
from torch.utils import _python_dispatch

_STATE = "torch._dynamo.variables.torch_function"


def hide_modes() -> None:
    """Let dynamo trace as if no mode with ``steps_aside`` were open, now or once it is imported."""
    if _STATE in sys.modules:
        _hide(sys.modules[_STATE])
    elif not any(isinstance(one, _AtImport) for one in sys.meta_path):
        sys.meta_path.insert(0, _AtImport())


def stop_hiding() -> None:
    """Stop waiting for dynamo's import. What was changed in it concerns no other mode."""
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, _AtImport)]


class _AtImport(MetaPathFinder):
    """Changes dynamo's module directly after it was executed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """Return a spec for dynamo's module alone."""
        spec = PathFinder.find_spec(name, path) if name == _STATE else None
        loader: Any = None if spec is None else spec.loader
        if loader is None:
            return None
        stop_hiding()
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            _hide(module)

        loader.exec_module = exec_module
        return spec


def _hide(module: Any) -> None:
    state = module.SymbolicTorchFunctionState
    original = state.__init__
    if hasattr(original, "hides_modes"):
        return

    @functools.wraps(original)
    def init(self: Any, py_stack: Any, *args: Any, **kwargs: Any) -> None:
        stack = list(py_stack)
        original(self, stack, *args, **kwargs)
        shown = [not _is_ours(mode) for mode in stack]
        # Guards look at the real stack, so each mode keeps its place there.
        pairs = zip(self.mode_stack, shown, strict=True)
        self.mode_stack = type(self.mode_stack)(mode for mode, seen in pairs if seen)

    init.hides_modes = True  # type: ignore[attr-defined]
    state.__init__ = init
    _keep_modes(sys.modules["torch._dynamo.utils"])


def _keep_modes(utils: Any) -> None:
    """Keep our modes where a compiled function that opened one sets the stack that dynamo knew."""
    replace = utils.set_torch_function_mode_stack

    @functools.wraps(replace)
    def set_stack(stack: list[Any]) -> None:
        ours = [one for one in utils.get_torch_function_mode_stack() if _is_ours(one)]
        replace([*ours, *(one for one in stack if not _is_ours(one))])

    utils.set_torch_function_mode_stack = set_stack


def _is_ours(mode: Any) -> bool:
    return bool(getattr(mode, "steps_aside", False))


@contextmanager
def dispatch_modes_aside() -> Iterator[None]:
    """Take off the dispatch modes of this thread that have ``steps_aside``; the program's stay."""
    depth: Any = torch._C._len_torch_dispatch_stack
    modes: Any = _python_dispatch
    with _without_ours(depth, modes._pop_mode, modes._push_mode):
        yield


@contextmanager
def _without_ours(
    depth: Callable[[], int], pop: Callable[[], Any], push: Callable[[Any], None]
) -> Iterator[None]:
    stack = [pop() for _ in range(depth())][::-1]
    kept = [mode for mode in stack if not _is_ours(mode)]
    for mode in kept:
        push(mode)
    try:
        yield
    finally:
        for _ in kept:
            pop()
        for mode in stack:
            push(mode)
