"""Finds the source line of an event: the innermost frame of a file that counts as the user's.

Knows only frames and file names; the recorder keeps the events themselves.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from types import CodeType, FrameType
from typing import TypeAlias

Owner: TypeAlias = "Callable[[str], bool] | Iterable[str | os.PathLike[str]] | None"
"""The user's files: a predicate over file names, files and folders, or None for the default."""

_RUNTIME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = tuple(
    {os.path.abspath(sysconfig.get_paths()[name]) + os.sep for name in ("stdlib", "platstdlib")}
)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
# torch.fx and torch.compile run generated code under such names on the user's behalf.
_GENERATED = ("<frozen ", "<eval_with_key>", "<__array_function__")


def _torch_folder() -> str:
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return _RUNTIME
    return os.path.dirname(os.path.abspath(spec.origin)) + os.sep


def _is_users(filename: str) -> bool:
    if filename.startswith(_GENERATED):
        return False
    path = os.path.abspath(filename)
    if path.startswith(_STANDARD) and not any(part in path for part in _INSTALLED):
        return False
    return not path.startswith(_torch_folder())


def owner_predicate(owner: Owner) -> Callable[[str], bool]:
    """Return the test whether a code object's file name counts as the user's.

    By default all files do but torch's, the standard library's and generated code. This package's
    own frames never do: the counter must not count itself.
    """
    if owner is None:
        chosen: Callable[[str], bool] = _is_users
    elif callable(owner):
        chosen = owner
    else:
        chosen = _under(owner)
    return lambda filename: not os.path.abspath(filename).startswith(_RUNTIME) and chosen(filename)


def _under(paths: Iterable[str | os.PathLike[str]]) -> Callable[[str], bool]:
    if isinstance(paths, (str, os.PathLike)):
        raise TypeError(f"owner= takes a function or several paths, not one path: [{paths!r}]")
    roots = tuple(os.path.realpath(path) for path in paths)
    folders = tuple(root + os.sep for root in roots)

    def owned(filename: str) -> bool:
        real = os.path.realpath(filename)
        return real in roots or real.startswith(folders)

    return owned


def waiting_frame(opener: int) -> FrameType | None:
    """Return the frame where the thread that opened a counter waits, for a thread without frames.

    Autograd runs a CUDA backward on its own threads, which have the opener's modes; the opener
    waits in `backward()` meanwhile.
    """
    return sys._current_frames().get(opener)


def lines_of(code: CodeType) -> dict[int, int]:
    """Return the source line of each instruction offset of a code object."""
    lines: dict[int, int] = {}
    for start, end, line in code.co_lines():
        if line is not None:
            lines.update(dict.fromkeys(range(start, end, 2), line))
    return lines


def qualified_name(code: CodeType) -> str:
    """Return a function's name with its class and enclosing functions (Python 3.11 and later)."""
    return str(getattr(code, "co_qualname", code.co_name))
