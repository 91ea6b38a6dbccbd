"""The devices that calls are given, told apart by how the code of the caller writes them."""

from __future__ import annotations

import linecache
import os
from types import FrameType
from typing import Any

import torch

HOST = torch.device("cpu")
# Stand-ins for torch's functions pass calls on from here.
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Code that asks for an accelerator, and says "cpu" where there is none.
_CHOOSES = "is_available"


def as_written(
    frame: FrameType | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, with a `torch.device` for a "cpu" that a variable holds.

    Where the caller itself writes "cpu", it means the host. A variable that holds "cpu" says where
    a program without an accelerator computes; on a machine with one, it holds that.
    """
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    if frame is None:
        return args, kwargs
    named = kwargs.get("device")
    if _is_held(named, frame):
        kwargs = {**kwargs, "device": HOST}
    if any(_is_held(one, frame) for one in args):
        args = tuple(HOST if _is_held(one, frame) else one for one in args)
    return args, kwargs


def _is_held(value: Any, frame: FrameType) -> bool:
    """True for the text "cpu" that the code of a frame holds in a variable."""
    if not isinstance(value, str) or not value.startswith("cpu"):
        return False
    code = frame.f_code
    if value not in code.co_consts:
        return True
    if _CHOOSES not in code.co_names:
        return False
    line = linecache.getline(code.co_filename, frame.f_lineno)
    return _CHOOSES in line or not any(f"{quote}{value}{quote}" in line for quote in "'\"")
