"""Forks the children of `confirm` and `fix --verify` from a process that has imported torch.

    python sandbox_forks.py SOCKET

To import torch takes two seconds of processor time, most jobs of the tests half a second. SOCKET is
the number of an inherited socket, from which the requests come. A child gets the folder, variables
and pipes that it would be started with, and runs the real `main` of `runtime/confirm/child`; it is
the child of whoever asked for it. Tests about the process itself start it as users do.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import weakref
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

# Each sandbox has a folder of its own, which says nothing to what is imported.
_OWN = ("HOME", "TMPDIR")


class ForkedSandbox(subprocess.Popen[bytes]):
    """Takes what `Sandbox` gives to `Popen`, but forks the child."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        pass_fds: Sequence[int],
        **_: object,
    ) -> None:
        self._cwd, self._env, self._pipes = cwd, {**env}, pass_fds
        super().__init__(command)

    def _execute_child(self, args: Sequence[str], *rest: object) -> None:
        from workload_forks import adopt

        shared = tuple(sorted(item for item in self._env.items() if item[0] not in _OWN))
        # After `python -m MODULE`: the pipes by their numbers, the device and the work.
        request = {"folder": self._cwd, "environment": self._env, "rest": [*args[5:]]}
        adopt(True)
        try:
            self.pid = _server(shared).fork(request, self._pipes)
        finally:
            adopt(False)
        self._child_created = True


# A single one, since it holds torch: the tests of a file mostly need the same.
@lru_cache(maxsize=1)
def _server(variables: tuple[tuple[str, str], ...]) -> Server:
    return Server(dict(variables))


class Server:
    """A running server for one set of variables; it ends with the last use of it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        weakref.finalize(self, _end, self._socket, self._process)

    def fork(self, request: Mapping[str, object], pipes: Sequence[int]) -> int:
        """Return the number of a new child of this process."""
        body = json.dumps({**request, "parent": os.getpid()}).encode()
        socket.send_fds(self._socket, [b"%16d" % len(body)], [*pipes])
        self._socket.sendall(body)
        child = int(self._socket.recv(16))
        assert self._socket.recv(
            1
        )  # by now, the process between the server and the child has ended
        return child


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.kill()
    process.wait()


def _serve(requests: socket.socket) -> None:
    """Fork for each request; returns in the fork, once it is the child of who asked."""
    gc.freeze()
    while True:
        length, pipes, _, _ = socket.recv_fds(requests, 16, 2)
        if not length:
            sys.exit()
        body = b""
        while len(body) < int(length):
            body += requests.recv(int(length) - len(body))
        between = os.fork()
        if between == 0:
            child = os.fork()
            if child == 0:
                requests.close()
                return _become(json.loads(body), pipes)
            requests.sendall(b"%16d" % child)
            os._exit(0)
        for pipe in pipes:
            os.close(pipe)
        os.waitpid(between, 0)
        requests.sendall(b".")


def _become(request: Mapping[str, Any], pipes: Sequence[int]) -> None:
    while os.getppid() != request["parent"]:
        time.sleep(0.001)
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None
    sys.argv = ["child", *map(str, pipes), *request["rest"]]


def in_forks() -> types.SimpleNamespace:
    """Return what `sandbox.py` uses of `subprocess`."""
    return types.SimpleNamespace(Popen=ForkedSandbox, DEVNULL=subprocess.DEVNULL)


def main() -> int:
    """Serve; in a fork, do what the child does."""
    # With who asks, the server ends, too.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    import flake8_torchperf.runtime.confirm.child.measure
    import flake8_torchperf.runtime.verify.child.compare  # noqa: F401
    from flake8_torchperf.runtime.confirm.child.__main__ import main as child

    _serve(socket.socket(fileno=int(sys.argv[1])))
    return child()


if __name__ == "__main__":
    sys.exit(main())
