"""The parent's side of the child process: starts it, feeds it, times it and ends all of it.

A job is plain data. An `Answer` holds the child's result, or how the child ended instead. Must not
import torch and never runs the code that it judges.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from flake8_torchperf.findings.message import printable
from flake8_torchperf.runtime.confirm.child_report import TRACES

# Importing torch from a cold disk; not part of a snippet's own time.
START_SECONDS = 120.0
# Variables for the child: those needed to find libraries and devices, and none that may be secret.
ENVIRONMENT = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV",
    "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "SYSTEMROOT",
)  # fmt: skip


class SandboxError(Exception):
    """The child cannot be started; ``str`` says why in one line."""


@dataclass(frozen=True)
class Answer:
    """``result`` is the job's report; if it is None, ``failure`` says what happened."""

    result: dict[str, Any] | None
    failure: str
    seconds: float


@dataclass
class Sandbox:
    """Runs jobs one after the other, each in a fork of a process that has imported torch.

    ``timeout`` bounds one job in seconds of wall clock, ``memory`` its own data in MiB. ``device``
    is the device of the jobs, which decides how far `isolation` goes. ``work`` is the module whose
    ``execute`` does a job; ``inside`` is where the folder is made that jobs run in.
    """

    timeout: float
    memory: int
    device: str = "cpu"
    work: str = "flake8_torchperf.runtime.confirm.child.measure"
    inside: str | None = None
    torch: str = ""
    isolation: dict[str, str] = field(default_factory=dict)
    _traces: bool = False
    _process: subprocess.Popen[bytes] | None = None
    _send: int = -1
    _receive: int = -1
    _buffer: bytes = b""
    _folder: str = ""

    def __enter__(self) -> Sandbox:
        self._folder = tempfile.mkdtemp(prefix="torchperf-", dir=self.inside)
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def run(self, job: dict[str, Any], timeout: float = 0.0) -> Answer:
        """Run one job to its end or its limit. Raises SandboxError where no child can be started.

        ``timeout`` is for a job that bounds its own parts, of which there may be many.
        """
        timeout = timeout or self.timeout
        if self._process is None or self._process.poll() is not None:
            self._end_process()
            self._start()
        folder = tempfile.mkdtemp(dir=self._folder)
        margin = min(0.5, timeout / 10)
        full = {
            **job,
            TRACES: self._traces,
            "folder": folder,
            "memory": self.memory,
            "timeout": timeout,
            "seconds": timeout - margin,
        }
        began = time.monotonic()
        try:
            return self._converse(full, began, timeout)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _converse(self, job: dict[str, Any], began: float, timeout: float) -> Answer:
        try:
            line = (json.dumps(job) + "\n").encode()
            while line:
                line = line[os.write(self._send, line) :]
        except BrokenPipeError:
            return Answer(None, "crashed: the child was gone before it began", 0.0)
        started = self._read(began + START_SECONDS)
        pid = started.get("started") if started else None
        if not isinstance(pid, int):
            return self._lost(began)
        message = self._read(began + timeout)
        seconds = time.monotonic() - began
        # Before the limit, no message means that the pipe was closed: the child is gone.
        if message is None and seconds >= timeout:
            self._kill_group(pid)
            # The fork is dead; the process that waits for it reports so at once.
            if self._read(time.monotonic() + 5.0) is None:
                self._end_process()
            return Answer(None, f"timed out after {timeout:g} s", seconds)
        if message is None:
            return self._lost(began)
        return self._judge(message, seconds, timeout)

    def _lost(self, began: float) -> Answer:
        self._end_process()
        reason = "crashed: it ended the process that started it"
        return Answer(None, reason, time.monotonic() - began)

    def _judge(self, message: dict[str, Any], seconds: float, timeout: float) -> Answer:
        said, ended = message.get("said"), message.get("ended")
        if isinstance(said, str) and said:
            try:
                result = _printable(json.loads(said))
            except (ValueError, RecursionError):
                return Answer(None, "its report could not be read", seconds)
            if isinstance(result, dict):
                self._traces |= result.pop(TRACES, False) is True
                return Answer(result, "", seconds)
        if isinstance(ended, int) and ended < 0:
            return Answer(None, _signal_words(-ended, timeout, self.memory), seconds)
        if message.get("junk"):
            return Answer(None, "what it wrote to its result pipe is not a report", seconds)
        return Answer(None, f"crashed: the process ended early with exit status {ended}", seconds)

    def _start(self) -> None:
        send_read, self._send = os.pipe()
        self._receive, receive_write = os.pipe()
        self._buffer = b""
        command = [sys.executable, "-m", "flake8_torchperf.runtime.confirm.child"]
        try:
            self._process = subprocess.Popen(
                [*command, str(send_read), str(receive_write), self.device, self.work],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._folder,
                env=_environment(self._folder, self.device),
                pass_fds=(send_read, receive_write),
                start_new_session=True,
            )
        finally:
            os.close(send_read)
            os.close(receive_write)
        hello = self._read(time.monotonic() + START_SECONDS)
        if hello is None or "ready" not in hello:
            why = hello.get("fatal") if hello else "it did not answer"
            raise SandboxError(f"the child process could not be started: {why}")
        self.torch = str(hello["ready"])
        self.isolation = dict(hello["isolation"])

    def _read(self, deadline: float) -> dict[str, Any] | None:
        """Return the next message, or None at the deadline or where the child is gone."""
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._receive], [], [], left)[0]:
                return None
            chunk = os.read(self._receive, 1 << 16)
            if not chunk:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            message = json.loads(line)
        except ValueError:
            return None
        return message if isinstance(message, dict) else None

    @staticmethod
    def _kill_group(pid: int) -> None:
        """Kill the fork with all of its session and process group."""
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)

    def _end_process(self) -> None:
        if self._process is not None:
            self._kill_group(self._process.pid)
            self._process.wait()
            self._process = None
        for descriptor in (self._send, self._receive):
            if descriptor >= 0:
                os.close(descriptor)
        self._send = self._receive = -1

    def _stop(self) -> None:
        self._end_process()
        shutil.rmtree(self._folder, ignore_errors=True)


def _printable(value: Any) -> Any:
    """Return the same data without control characters, since texts hold the snippet's own words."""
    match value:
        case str():
            return printable(value)
        case list():
            return [_printable(one) for one in value]
        case dict():
            return {_printable(key): _printable(one) for key, one in value.items()}
    return value


def _signal_words(number: int, timeout: float, memory: int) -> str:
    """Describe how a signal ended a process."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number == signal.SIGXCPU:
        return f"crashed with {name}: it used more than its {timeout:g} s of processor time"
    if number == signal.SIGKILL:
        return f"crashed with {name}: killed by the system, most likely for memory ({memory} MB)"
    return f"crashed with {name}"


def _environment(folder: str, device: str) -> dict[str, str]:
    """Return the child's environment, with the parent's search path, so that both import one torch.

    CUDA is hidden if the host stands in for a device: it would not start, see `namespaces`.
    """
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    if device != "cuda":
        kept["CUDA_VISIBLE_DEVICES"] = ""
    package = str(Path(__file__).resolve().parents[3])
    paths = [package, *(entry for entry in sys.path if entry and os.path.isabs(entry))]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "HOME": folder,
        "TMPDIR": folder,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        # Functions under @torch.jit.script stay Python, so that their lines can be watched.
        "PYTORCH_JIT": "0",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
