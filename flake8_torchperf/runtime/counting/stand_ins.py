"""Objects that take the place of torch's functions and pass for them.

torch, and libraries that extend it, keep functions of torch's in sets and dictionaries: what a
device context redirects, what a subclass of Tensor overrides, what torch.compile puts into a graph.
Some are filled while a counter is open, some before. A stand-in is found in both, as it hashes and
compares as the function that it replaces, and has its attributes and class.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, MethodType
from typing import Any

import torch


class StandIn:
    """Calls ``call`` in place of ``original``."""

    def __init__(self, original: Any, call: Callable[..., Any]) -> None:
        self._original = original
        self._call = call
        # A builtin function has no __get__: as an attribute of a class it does not bind.
        self._binds = hasattr(type(original), "__get__")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the stand-in's function."""
        return self._call(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None or not self._binds:
            return self
        return MethodType(self._call, instance)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._original

    def __hash__(self) -> int:
        return hash(self._original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __repr__(self) -> str:
        return repr(self._original)

    def __copy__(self) -> StandIn:
        return self

    def __deepcopy__(self, memo: Any) -> StandIn:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._original.__reduce_ex__(protocol)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._original)


def hide_from_dynamo(code: CodeType) -> None:
    """Let torch.compile neither trace nor compile this code, nor what it calls, where it runs.

    After a graph break a compiled function runs on in Python, and dynamo compiles each function
    that it calls there. This costs no import of dynamo, whose C part comes with torch.
    """
    dynamo: Any = torch._C._dynamo.eval_frame
    if not hasattr(dynamo, "set_code_exec_strategy"):  # before torch 2.7
        dynamo.skip_code(code)
        return
    skip = dynamo._FrameAction.SKIP
    dynamo.set_code_exec_strategy(code, dynamo._FrameExecStrategy(skip, skip))


for _member in vars(StandIn).values():
    _function = getattr(_member, "fget", _member)
    if hasattr(_function, "__code__"):
        hide_from_dynamo(_function.__code__)
