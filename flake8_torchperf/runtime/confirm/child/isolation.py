"""In the child: limits, descriptors and descendants of a process that runs untrusted code.

The process cannot exceed its limits, and the processes that it leaves behind are ended. Network,
files and other processes are the business of `namespaces`.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from typing import NoReturn

from flake8_torchperf.runtime.confirm.child.namespaces import check, libc

# linux/prctl.h
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

# Besides this user's running threads: torch's threads and a data loader's workers.
MORE_PROCESSES = 64
LARGEST_FILE = 64 * 2**20
# Address space that threads and the allocator set aside without using it.
RESERVED_BYTES = 256 * 2**20


def die_with_parent() -> None:
    """Let Linux kill this process when its parent dies; elsewhere the parent cleans up."""
    if sys.platform == "linux":
        check(libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Become the parent of processes that descendants leave, so they can be ended (Linux)."""
    if sys.platform == "linux":
        check(libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def limit(memory_mb: int, cpu_seconds: int, device: str) -> None:
    """Bound memory, CPU time, file size and processes. Called before the namespaces change.

    Importing torch maps gigabytes that are never used, so memory is bounded by what is mapped now
    and some more: RLIMIT_DATA for private writable memory (mmap included since Linux 4.7),
    RLIMIT_AS, more loosely, for all of it, except with CUDA, whose context maps large ranges.
    """
    allowed = memory_mb * 2**20
    _lower(resource.RLIMIT_DATA, _mapped_bytes("VmData:") + allowed)
    mapped = _mapped_bytes("VmSize:")
    if mapped and device != "cuda":
        _lower(resource.RLIMIT_AS, mapped + allowed + RESERVED_BYTES)
    _lower(resource.RLIMIT_CPU, cpu_seconds)
    _lower(resource.RLIMIT_FSIZE, LARGEST_FILE)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NPROC, _processes_of_user() + MORE_PROCESSES)


def _lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bound, bound))


def _mapped_bytes(field: str) -> int:
    """Return the bytes that the process has mapped, by a field of /proc/self/status."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    except OSError:
        return 0  # no /proc: the limit then counts from nothing, which is stricter
    return 0


def _processes_of_user() -> int:
    """Return the number of this user's threads; RLIMIT_NPROC counts them all."""
    count = 0
    me = os.getuid()
    if not os.path.isdir("/proc"):
        return MORE_PROCESSES * 16
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            # A process may end while it is looked at.
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{entry}").st_uid == me:
                    count += len(os.listdir(f"/proc/{entry}/task"))
    return count


def close_all_but(keep: int) -> None:
    """Close every descriptor but ``keep``; standard input is empty and output is discarded."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    highest = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 65536)
    os.closerange(3, keep)
    os.closerange(keep + 1, highest)


def end_like(status: int) -> NoReturn:
    """End as another process did: with its exit status, or by the signal that ended it."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def end_orphans() -> None:
    """Kill all children of this process, and their orphans, until none is left."""
    for _ in range(50):
        children = _children()
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)


def _children() -> list[int]:
    found: list[int] = []
    me = os.getpid()
    if not os.path.isdir("/proc"):
        return found
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as file:
                # The name in parentheses may hold spaces; the parent's id is the second after it.
                if int(file.read().rpartition(")")[2].split()[1]) == me:
                    found.append(int(entry))
    return found
