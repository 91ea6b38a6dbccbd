"""The child process, started as ``python -m flake8_torchperf.runtime.confirm.child``.

Imports torch once, then forks for each job that arrives on a private pipe: a snippet that crashes
takes only its own fork with it. Answers leave on another private pipe. Neither this process nor
the pipes of other jobs are open to the code that a job runs.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import sys
import tempfile
import traceback
from typing import Any

from flake8_torchperf.runtime.confirm import isolation

# What one job may report; a snippet that floods its pipe is cut here.
MOST_BYTES = 16 * 2**20
RESULT_FD = 200


def main() -> int:
    """Serve jobs until the pipe they come on is closed."""
    requests, answers = int(sys.argv[1]), int(sys.argv[2])
    sys.path[:] = [entry for entry in sys.path if entry and entry != os.getcwd()]
    isolation.die_with_parent()
    isolation.adopt_orphans()
    with os.fdopen(requests, "r") as incoming, os.fdopen(answers, "w") as outgoing:
        try:
            import torch

            # Everything a job needs, imported once and inherited by every fork.
            from flake8_torchperf.runtime.confirm import measure
        except Exception as error:
            _send(outgoing, {"fatal": f"{type(error).__name__}: {error}"})
            return 1
        torch.set_num_threads(1)  # a fork may not inherit a pool of threads
        _send(outgoing, {"ready": torch.__version__, "isolation": _try_isolation()})
        for line in incoming:
            _send(outgoing, _serve(json.loads(line), outgoing, measure))
    return 0


def _send(outgoing: Any, message: dict[str, Any]) -> None:
    outgoing.write(json.dumps(message) + "\n")
    outgoing.flush()


def _try_isolation() -> dict[str, str]:
    """What isolation will achieve here, found out in a fork that does nothing else."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with tempfile.TemporaryDirectory() as folder:
            os.write(write, json.dumps(isolation.isolate(folder)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        told = file.read()
    os.waitpid(child, 0)
    return dict(json.loads(told))


def _serve(job: dict[str, Any], outgoing: Any, measure: Any) -> dict[str, Any]:
    """Fork for one job, wait for it, and hand on what it said and how it ended."""
    secret = secrets.token_hex(16)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # Nothing may unwind into the loop above: this process ends here, whatever happens.
        try:
            _work(job, write, secret, measure)
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
    """Read until the child ends; a process it left behind may hold the pipe open for ever."""
    told = bytearray()
    os.set_blocking(read, False)
    while True:
        ready, _, _ = select.select([read], [], [], 0.02)
        if ready and len(told) < MOST_BYTES:
            told += os.read(read, 65536)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
    while len(told) < MOST_BYTES and select.select([read], [], [], 0)[0]:
        chunk = os.read(read, 65536)
        if not chunk:
            break
        told += chunk
    return bytes(told), status


def _work(job: dict[str, Any], write: int, secret: str, measure: Any) -> None:
    """In the fork: give up what is not needed, run the job, report once."""
    os.setsid()
    os.dup2(write, RESULT_FD, inheritable=False)
    isolation.close_all_but(RESULT_FD)
    folder = job["folder"]
    os.chdir(folder)
    isolation.limit(int(job["memory"]), int(job["timeout"]) + 2, job["device"])
    isolation.isolate(folder)
    os.chdir(folder)  # again: the folder is mounted anew, and writable only there
    isolation.die_with_parent()  # last: entering a user namespace forgets it
    os.environ.update({"HOME": folder, "TMPDIR": folder})
    tempfile.tempdir = folder
    try:
        result = measure.execute(job)
    except MemoryError:
        result = {"failed": "memory", "reason": "out of memory"}
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(last.filename)}:{last.lineno}"
        result = {"failed": "confirm", "reason": f"{type(error).__name__}: {error} ({where})"}
    message = secret.encode() + json.dumps(result).encode() + b"\n"
    while message:
        message = message[os.write(RESULT_FD, message) :]
    os._exit(0)


if __name__ == "__main__":
    raise SystemExit(main())
