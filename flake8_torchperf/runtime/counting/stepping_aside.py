"""Takes this package's modes off torch's stacks while torch does work that is not the program's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.utils import _python_dispatch


@contextmanager
def modes_aside() -> Iterator[None]:
    """Take off the modes of this thread that have ``steps_aside``; those of the program stay."""
    dispatch: Any = torch._C._len_torch_dispatch_stack
    function: Any = torch._C._len_torch_function_stack
    overrides: Any = torch.overrides
    modes: Any = _python_dispatch
    with ExitStack() as back:
        back.enter_context(_without_ours(dispatch, modes._pop_mode, modes._push_mode))
        back.enter_context(_without_ours(function, overrides._pop_mode, overrides._push_mode))
        yield


@contextmanager
def _without_ours(
    depth: Callable[[], int], pop: Callable[[], Any], push: Callable[[Any], None]
) -> Iterator[None]:
    stack = [pop() for _ in range(depth())][::-1]
    kept = [mode for mode in stack if not getattr(mode, "steps_aside", False)]
    for mode in kept:
        push(mode)
    try:
        yield
    finally:
        for _ in kept:
            pop()
        for mode in stack:
            push(mode)
