"""The child process, started as ``python -m flake8_torchperf.runtime.confirm.child``.

Imports torch once, then forks for each job that arrives on a private pipe: a snippet that crashes
takes only its own fork with it. Answers leave on another private pipe. Neither this process nor
the pipes of other jobs are open to the code that a job runs: the fork makes namespaces, its own
fork is the first process in them and waits, and a third, without any privilege, does the work.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import select
import sys
import tempfile
import time
import traceback
from typing import Any

from flake8_torchperf.runtime.confirm.child import isolation, namespaces
from flake8_torchperf.runtime.confirm.child_report import TRACER, TRACES, failed

# The most bytes that one job may report; more from a snippet are cut off.
MOST_BYTES = 16 * 2**20
RESULT_FD = 200


def main() -> int:
    """Serve jobs until the pipe that carries them is closed.

    The fourth argument names the module whose ``execute`` does a job.
    """
    requests, answers, device, work = int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:5]
    sys.path[:] = [entry for entry in sys.path if entry and entry != os.getcwd()]
    isolation.die_with_parent()
    isolation.adopt_orphans()
    with os.fdopen(requests, "r") as incoming, os.fdopen(answers, "w") as outgoing:
        try:
            import torch

            # Everything a job needs, imported once and inherited by every fork.
            module = importlib.import_module(work)
        except Exception as error:
            _send(outgoing, {"fatal": f"{type(error).__name__}: {error}"})
            return 1
        torch.set_num_threads(1)  # a fork may not inherit a pool of threads
        namespaces.keep_out(True)  # a job must not reach the pipes through /proc
        _send(outgoing, {"ready": torch.__version__, "isolation": _try_isolation(device)})
        for line in incoming:
            _send(outgoing, _serve(json.loads(line), outgoing, module))
    return 0


def _send(outgoing: Any, message: dict[str, Any]) -> None:
    outgoing.write(json.dumps(message) + "\n")
    outgoing.flush()


def _try_isolation(device: str) -> dict[str, str]:
    """Return the isolation that is possible here, found by trying it in a separate fork."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with tempfile.TemporaryDirectory() as folder:
            namespaces.keep_out(False)
            os.write(write, json.dumps(namespaces.leave(folder, (), device)).encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    return dict(json.loads(told))


def _serve(job: dict[str, Any], outgoing: Any, module: Any) -> dict[str, Any]:
    """Fork for one job, wait for it, and hand on its answer and how it ended."""
    if job["explain"] or job[TRACES]:
        # Imported once for all forks that trace: the import takes longer than most of their work.
        importlib.import_module("torch._dynamo.backends.debugging")
    secret = secrets.token_hex(16)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # Nothing may unwind into the loop above: this process ends here in any case.
        try:
            _work(job, write, secret, module)
        finally:
            os._exit(1)
    os.close(write)
    _send(outgoing, {"started": child})
    told, status = _listen(read, child)
    os.close(read)
    isolation.end_orphans()
    ended = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    marker = secret.encode()
    # Said once, by the code that knows the secret; anything else on the pipe is not a result.
    genuine = told.startswith(marker) and told.endswith(b"\n") and told.count(marker) == 1
    return {
        "ended": ended,
        "said": told[len(marker) :].decode("utf-8", "replace") if genuine else "",
        "junk": bool(told) and not genuine,
    }


def _listen(read: int, child: int) -> tuple[bytes, int]:
    """Read until the child ends; a process left behind by it may hold the pipe open for ever."""
    told = bytearray()
    ended, status, is_open = 0, 0, True
    while not ended:
        if not is_open or len(told) >= MOST_BYTES:
            time.sleep(0.005)  # closed, or flooded: only wait
        elif _ready(read, 0.02):
            is_open = _take(read, told)
        ended, status = os.waitpid(child, os.WNOHANG)
    while len(told) < MOST_BYTES and _ready(read, 0) and _take(read, told):
        pass
    return bytes(told), status


def _ready(read: int, seconds: float) -> bool:
    return bool(select.select([read], [], [], seconds)[0])


def _take(read: int, told: bytearray) -> bool:
    chunk = os.read(read, 65536)
    told += chunk
    return bool(chunk)


def _work(job: dict[str, Any], write: int, secret: str, module: Any) -> None:
    """In the fork: drop rights that are not needed, then run the job in a process with fewer."""
    os.setsid()
    os.dup2(write, RESULT_FD, inheritable=False)
    isolation.close_all_but(RESULT_FD)
    namespaces.keep_out(False)  # entering a user namespace writes to files of its own in /proc
    folder = job["folder"]
    os.chdir(folder)
    isolation.limit(int(job["memory"]), int(job["timeout"]) + 2, job["device"])
    needed = [job["path"], job["root"], job["harness"], sys.prefix, sys.base_prefix, *sys.path]
    achieved = namespaces.leave(folder, [one for one in needed if one], job["device"])
    os.chdir(folder)  # again: the folder has been remounted, and is writable only there
    isolation.die_with_parent()  # last: entering a user namespace resets it
    if achieved["processes"] == "apart":
        _as_first(job, secret, module)
    _report(job, secret, module)


def _as_first(job: dict[str, Any], secret: str, module: Any) -> None:
    """Run the job in new processes, and end with the same exit status or signal as its process.

    The first process of a namespace ignores most signals, so it only waits; when it ends, the
    kernel ends all processes that the job has started.
    """
    read, write = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(read)
        isolation.die_with_parent()
        namespaces.own_proc()
        worker = os.fork()
        if worker == 0:
            os.close(write)
            os.setsid()
            _report(job, secret, module)
        os.close(RESULT_FD)
        namespaces.keep_out(True)
        ended = 0
        while ended != worker:
            ended, status = os.wait()
        os.write(write, json.dumps(status).encode())
        os._exit(0)
    os.close(write)
    os.close(RESULT_FD)
    namespaces.keep_out(True)
    os.waitpid(first, 0)
    isolation.end_like(int(os.read(read, 64) or b"9"))


def _report(job: dict[str, Any], secret: str, module: Any) -> None:
    """Run the job and report once. Does not return."""
    folder = job["folder"]
    namespaces.drop_privileges()
    os.environ.update({"HOME": folder, "TMPDIR": folder})
    tempfile.tempdir = folder
    try:
        result = module.execute(job)
    except MemoryError:
        result = failed("memory", "out of memory")
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno}"
        result = failed("confirm", f"{type(error).__name__}: {error} ({where})")
    result = {**result, TRACES: TRACER in sys.modules}
    message = secret.encode() + json.dumps(result).encode() + b"\n"
    while message:
        message = message[os.write(RESULT_FD, message) :]
    os._exit(0)


if __name__ == "__main__":
    raise SystemExit(main())
