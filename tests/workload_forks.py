"""Forks the children of `torchperf run` from a process that has imported torch, for `fork_server`.

To import torch takes three seconds of processor time, and most workloads of the tests a few
milliseconds. A server of its own imports what a child imports, hides it from the command that it
forks, and gives it back to the command's child:

    server: has imported torch
      command: `torchperf run`, forked; it has not, as far as it can see
        helper: forked before the command begins; once asked, it forks the child and ends
          child: so the command becomes its parent; runs the real `bootstrap.py`

The child has the modules, the search path and the state of Python that a new process has after the
imports of `bootstrap.py`. It ends as the server would, by the end of its main program.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

COMMAND = ["-m", "flake8_torchperf.cli.main", "run"]
TORCH, DYNAMO = "torch", "torch._dynamo"
# Variables that torch and the libraries it loads read when they are imported.
AT_THE_IMPORT = (
    "ATEN_", "BLIS_", "C10_", "CUBLAS", "CUDA", "DNNL_", "GOMP_", "HIP_", "HSA_", "KINETO_", "KMP_",
    "LD_", "MALLOC_", "MKL", "NCCL_", "NUMEXPR_", "NUMPY", "NPY_", "NVIDIA_", "OMP_", "ONEDNN_",
    "OPENBLAS_", "PYTORCH_", "ROCR_", "TORCHDYNAMO_", "TORCHINDUCTOR_", "TORCH_", "TRITON_", "XPU_",
)  # fmt: skip
# What imports dynamo: in a run, where lines are watched, that takes five seconds of processor time.
_DYNAMO = re.compile(r"\boptim\.[A-Z]|\b(Adam|AdamW|SGD)\(|torch\.compile\b|_dynamo\b")
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_BOOTSTRAP = "bootstrap.py"


def imports_of(folder: Path) -> str:
    """Return what the server for a workload in this folder is to have imported, as one word.

    A program that makes an optimizer may have imported dynamo itself, before; any other must show
    what a run does without.
    """
    texts = (one.read_text(encoding="utf-8", errors="replace") for one in folder.glob("*.py"))
    return DYNAMO if any(map(_DYNAMO.search, texts)) else TORCH


class ImportedTorch:
    """What a child of `torchperf run` has imported before it runs the workload."""

    def __init__(self, imports: str) -> None:
        before = set(sys.modules)
        self._path = list(sys.path)
        # As in `bootstrap.py`.
        import flake8_torchperf.runtime.workload.child_session
        import flake8_torchperf.runtime.workload.exchange  # noqa: F401

        if imports == DYNAMO:
            import torch._dynamo  # noqa: F401

        # A fork has none of the threads: OpenBLAS ends its own before each fork, torch has none yet.
        assert len(os.listdir("/proc/self/task")) <= (os.cpu_count() or 1)
        self._modules, self._thresholds = dict(sys.modules), gc.get_threshold()
        # Kept for ever: for the command, to take them down at its end takes as long as its work.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._modules))
        for name in set(self._modules) - before:
            if name.partition(".")[0] not in sys.stdlib_module_names:
                del sys.modules[name]

    def restore(self, ours: Sequence[str]) -> None:
        """Show what was imported, and nothing else; ``ours`` are modules of the tests."""
        sys.modules.clear()
        sys.modules.update(self._modules)
        for name in ours:
            sys.modules.pop(name, None)
        sys.path[:] = self._path
        # What `project/stores/collection.py` changes, for the command alone.
        gc.set_threshold(*self._thresholds)
        atexit.unregister(gc.freeze)


class ForkedChild(subprocess.Popen[bytes]):
    """A child that the helper forks on request; from then on it is this process's own."""

    def __init__(
        self,
        command: Sequence[str],
        blocked: Iterable[int],
        helper: int,
        requests: socket.socket,
    ) -> None:
        self._blocked, self._helper, self._requests = blocked, helper, requests
        super().__init__(command)

    def _execute_child(self, args: Sequence[str], *rest: object) -> None:
        request = {
            "command": [*args[1:]],
            "folder": os.getcwd(),
            "environment": {**os.environ},
            "blocked": [*map(int, self._blocked)],
        }
        adopt(True)
        self._requests.sendall(json.dumps(request).encode() + b"\n")
        self.pid = int(self._requests.makefile().readline())
        os.waitpid(self._helper, 0)
        adopt(False)
        self._child_created = True


def adopt(wanted: bool) -> None:
    """Become the parent of processes whose parents end, or no longer."""
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(wanted), 0, 0, 0) == 0


def import_report() -> None:
    """Import what the report of a command needs, once for all."""
    import flake8_torchperf.runtime.workload.matching  # noqa: F401


def prepare() -> Mapping[str, Any] | None:
    """Let the `torchperf run` of this process have a forked child. Returns twice.

    None for the process itself; in the child, what it is to run.
    """
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    helper = os.fork()
    if helper == 0:
        ours.close()
        return _help(theirs, parent)
    theirs.close()
    _replace_start(helper, ours)
    # The command's Python ends as any, but torch's C++, which it never used, is not taken down.
    libc = ctypes.CDLL(None)
    assert libc.on_exit(libc._exit, None) == 0
    return None


def _replace_start(helper: int, requests: socket.socket) -> None:
    from flake8_torchperf.runtime.workload import launch

    start = launch.start_child

    def forked(command: Sequence[str], blocked: Iterable[int]) -> subprocess.Popen[bytes]:
        own: Any = subprocess
        words = [*command[1 + len(own._args_from_interpreter_flags()) :]]
        # Further options of Python need a Python of their own.
        if Path(words[0]).name != _BOOTSTRAP:
            return start(command, blocked)
        return ForkedChild([command[0], *words], blocked, helper, requests)

    launch.start_child = forked


def _help(requests: socket.socket, parent: int) -> Mapping[str, Any]:
    """Wait for the request, fork and end; returns in the fork, as a child of the parent."""
    line = requests.makefile().readline()
    if not line:
        os._exit(0)  # The command has ended without a child.
    child = os.fork()
    if child != 0:
        requests.sendall(b"%d\n" % child)
        os._exit(0)
    requests.close()
    while os.getppid() != parent:
        time.sleep(0.001)
    request: Mapping[str, Any] = json.loads(line)
    return request


def become_child(request: Mapping[str, Any], imported: ImportedTorch, ours: Sequence[str]) -> None:
    """Take over the folder, variables, signals and arguments, and run the program as Python would."""
    signal.pthread_sigmask(signal.SIG_SETMASK, request["blocked"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    imported.restore(ours)
    sys.argv = request["command"]
    sys.orig_argv = [sys.executable, *sys.argv]
    program = sys.argv[0]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(program)
    run_script(program)


def run_script(program: str) -> None:
    """Run a file as the main module."""
    module = types.ModuleType("__main__")
    vars(module)["__file__"] = program
    sys.modules["__main__"] = module
    exec(compile(Path(program).read_bytes(), program, "exec"), vars(module))
