"""Runs Python programs in forks of a process that has imported flake8 already.

    python fork_server.py SOCKET [torch | torch._dynamo]

To lint a file takes milliseconds, to start Python and import flake8 takes half a second, and the
tests do it some hundred times. A program gets its own folder, variables, arguments and streams, and
what it changes ends with it, as in a process started anew. SOCKET is the number of an inherited
socket, from which the requests come. For `torchperf run` there is a server that has imported torch as
well: `workload_forks`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import workload_forks
from hangs import HANG

# Variables that Python reads while it starts: where they differ, another server is needed.
_AT_THE_START = ("PYTHON", "LC_", "LANG")
_AT_THE_IMPORT = (*_AT_THE_START, *workload_forks.AT_THE_IMPORT)
# Modules of the tests that a server imports, which nothing that it runs is to see.
_OURS = ("hangs", "workload_forks")
_WAITS = "import torch\n\n\ndef step(x: torch.Tensor):\n    return x.item()\n"


def run(
    command: Sequence[str | Path],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> subprocess.CompletedProcess[bytes]:
    """As `start`, but in a fork where the command is this Python's ``-m`` or ``-c``."""
    words = [str(word) for word in command]
    if words[0] != sys.executable or words[1] not in ("-m", "-c") or not hasattr(os, "fork"):
        return start(words, cwd=cwd, env=env, stdin=stdin)
    environment = dict(os.environ if env is None else env)
    folder = os.getcwd() if cwd is None else str(cwd)
    if words[1:4] == workload_forks.COMMAND and sys.platform == "linux":
        server = _torch_server(
            workload_forks.imports_of(Path(folder)), _those(environment, _AT_THE_IMPORT)
        )
    else:
        server = _server(_those(environment, _AT_THE_START))
    return server.run(words, folder, environment, stdin)


def run_with_torch(
    command: Sequence[str | Path], *, cwd: Path, env: Mapping[str, str]
) -> subprocess.CompletedProcess[bytes]:
    """As `start`, but in a fork that has imported torch, and nothing else that it could see.

    The command is this Python's ``-m``, ``-c`` or a script. It must not matter to it when torch is
    imported.
    """
    words = [str(word) for word in command]
    assert words[0] == sys.executable
    if sys.platform != "linux":
        return start(words, cwd=cwd, env=env)
    server = _torch_server(workload_forks.imports_of(cwd), _those(env, _AT_THE_IMPORT))
    return server.run(words, str(cwd), env, b"", shows_torch=True)


def start(
    command: Sequence[str | Path],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a new process, whatever its exit status, and return what it printed."""
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        input=stdin,
        capture_output=True,
        timeout=HANG,
        check=False,
    )


def _those(
    environment: Mapping[str, str], prefixes: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in environment.items() if item[0].startswith(prefixes)))


@cache
def _server(variables: tuple[tuple[str, str], ...]) -> Server:
    return Server(_with(variables, _AT_THE_START))


# Two at a time, since each holds torch: the tests of a file mostly need the same ones.
@lru_cache(maxsize=2)
def _torch_server(imports: str, variables: tuple[tuple[str, str], ...]) -> Server:
    return Server(_with(variables, _AT_THE_IMPORT), imports)


def _with(variables: tuple[tuple[str, str], ...], prefixes: tuple[str, ...]) -> dict[str, str]:
    rest = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return {**rest, **dict(variables)}


class Server:
    """A running server, for one set of the variables that Python reads while it starts.

    It ends with the last use of it.
    """

    def __init__(self, environment: Mapping[str, str], *options: str) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(HANG)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno()), *options],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._close = weakref.finalize(self, _end, self._socket, self._process)

    def run(
        self,
        command: Sequence[str],
        folder: str,
        environment: Mapping[str, str],
        given: bytes,
        *,
        shows_torch: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command in a fork, and wait for it; ``shows_torch`` is as for `run_with_torch`."""
        with (
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
        ):
            stdin.write(given)
            stdin.flush()
            stdin.seek(0)
            request = {
                "command": [*command[1:]],
                "folder": folder,
                "environment": {**environment},
                "shows torch": shows_torch,
            }
            body = json.dumps(request).encode()
            streams = [stream.fileno() for stream in (stdin, stdout, stderr)]
            socket.send_fds(self._socket, [b"%16d" % len(body)], streams)
            self._socket.sendall(body)
            answer = self._socket.recv(16)
            stdout.seek(0)
            stderr.seek(0)
            return subprocess.CompletedProcess(command, int(answer), stdout.read(), stderr.read())


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """End a server, and what it is running."""
    connection.close()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def serve(requests: socket.socket) -> Mapping[str, Any]:
    """Fork for each request; returns the request in the fork, which has taken over what it says."""
    gc.freeze()
    while True:
        length, streams, _, _ = socket.recv_fds(requests, 16, 3)
        if not length:
            sys.exit()
        body = b""
        while len(body) < int(length):
            body += requests.recv(int(length) - len(body))
        child = os.fork()
        if child == 0:
            requests.close()
            request: Mapping[str, Any] = json.loads(body)
            become(request, streams)
            return request
        for stream in streams:
            os.close(stream)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        requests.sendall(b"%16d" % status)


def become(request: Mapping[str, Any], streams: Sequence[int]) -> None:
    """Take over a request's streams, folder, variables and arguments."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(str(request["folder"]))
    os.environ.clear()
    os.environ.update(request["environment"])
    how, *rest = request["command"]
    # What `python -m` and `python -c` have there.
    sys.argv = [how, *rest[1:]]
    sys.path[0] = os.getcwd() if how == "-m" else ""


def _import_commands() -> None:
    """Import what every program needs once, some of it with the first finding."""
    import flake8.formatting.default
    import flake8.main.application
    import flake8.plugins.pycodestyle
    import flake8.plugins.pyflakes  # noqa: F401
    from weighing import without_threshold

    from flake8_torchperf.cache.key import conditions
    from flake8_torchperf.cli import check_run  # noqa: F401
    from flake8_torchperf.cli.main import build_parser
    from flake8_torchperf.knowledge.conventions import load_conventions
    from flake8_torchperf.linter import lint
    from flake8_torchperf.options import Options
    from flake8_torchperf.plugin import TorchPerfPlugin  # noqa: F401

    build_parser()
    del sys.modules["flake8_torchperf.cli.main"]  # `runpy` is to import it as the main module.
    without_threshold()
    assert lint(_WAITS, f"{__file__}.linted.py", Options())
    conditions(Options())  # keeps the digest of the package
    # `re` keeps the patterns that it has seen: those of the conventions, and of what flake8 asks.
    for row in load_conventions().rows:
        re.compile(row.pattern)
    for one in metadata.distributions():
        _ = one.metadata, one.entry_points


@contextmanager
def _ending_early() -> Iterator[None]:
    """End the process once the program has ended well, without taking down what it never made.

    Python would free each object that the server had made: in a fork, that takes longer than most
    programs. What a user sees of an end comes before, in the same order.
    """
    status: Any = None
    try:
        yield
    except SystemExit as error:
        status = error.code
        if not isinstance(status, (int, type(None))):
            raise
    shutdown: Any = threading
    shutdown._shutdown()  # waits for threads
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        sys.exit(status)  # Python complains of it.
    os._exit((status or 0) & 0xFF)


def main() -> None:
    """Serve; in a fork, run the program as Python would."""
    _, number, *imports = sys.argv
    imported = workload_forks.ImportedTorch(*imports) if imports else None
    if imported:
        workload_forks.import_report()
    _import_commands()
    request = serve(socket.socket(fileno=int(number)))
    if imported and request["shows torch"]:
        first = sys.path[0]
        imported.restore(_OURS)
        sys.path[0] = first
    else:
        child = workload_forks.prepare() if imported else None
        if imported and child:
            workload_forks.become_child(child, imported, _OURS)
            return
    with _ending_early():
        _run(*request["command"])


def _run(how: str, *rest: str) -> None:
    """Run what stands behind Python on a command line."""
    if how == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.modules["__main__"] = program = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(program))
    else:
        sys.argv = [how, *rest]
        sys.path[0] = os.path.dirname(os.path.abspath(how))
        workload_forks.run_script(how)


if __name__ == "__main__":
    main()
