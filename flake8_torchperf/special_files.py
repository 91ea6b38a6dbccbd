"""Pipes, devices and sockets: files that can be endless, or that wait for a writer.

Whatever the linter finds by itself is read only if it is a regular file.
"""

from __future__ import annotations

import errno
import os
import stat

_KINDS = (
    ("a pipe", stat.S_ISFIFO),
    ("a socket", stat.S_ISSOCK),
    ("a device", stat.S_ISCHR),
    ("a device", stat.S_ISBLK),
)


def special_kind(path: str | os.PathLike[str]) -> str:
    """Return "a pipe", "a device" or "a socket" if that is what a path leads to, otherwise ""."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ""
    return next((kind for kind, is_one in _KINDS if is_one(mode)), "")


def refuse_special(path: str | os.PathLike[str]) -> None:
    """Raise OSError if a path leads to a pipe, a device or a socket."""
    kind = special_kind(path)
    if kind:
        raise OSError(errno.EINVAL, f"it is {kind}, not a file", os.fspath(path))
