"""The process that lints for one folder: requests on standard input, replies on standard output.

It is started in the folder and reads the configuration there once, as ``torchperf check`` does. It
keeps the same data from text to text as a run keeps from file to file. It neither imports nor
executes the code that it reads.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
import traceback
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from flake8_torchperf.server.messages import Reply, Request

LENGTH = struct.Struct(">Q")


def packed(message: Any) -> bytes:
    """Return a message as it is sent, its length first."""
    data = pickle.dumps(message)
    return LENGTH.pack(len(data)) + data


def main() -> None:
    """Answer until the input ends. The editor's settings are the argument, as JSON."""
    requests, replies = _streams()
    from flake8_torchperf.server.linting import FolderAnalysis, read_configuration

    work, ready = read_configuration(json.loads(sys.argv[1]))
    replies.write(packed(ready))
    if work is None:
        return
    analysis = FolderAnalysis(work)
    while (request := _received(requests)) is not None:
        replies.write(packed(_answer(analysis, request)))


def _streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the two pipes; redirect printed text to standard error."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def _received(requests: BinaryIO) -> Request | None:
    head = requests.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(head)
    data = requests.read(length)
    if len(data) < length:
        return None
    request: Request = pickle.loads(data)
    return request


def _answer(analysis: Any, request: Request) -> Reply:
    from flake8_torchperf.server.messages import Failed

    try:
        reply: Reply = analysis.answer(request)
    except Exception as error:
        # A bug of ours must not end the process, since the next text may work. The client gets the
        # error.
        traceback.print_exc(file=sys.stderr)
        return Failed(f"{type(error).__name__}: {error}")
    return reply
