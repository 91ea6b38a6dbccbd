"""In the child: what a process gives up before it runs code it does not trust.

Limits, a working directory and a result pipe go in; a process that can neither outgrow them, reach
the network nor write outside its directory leaves, as far as the platform lets it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

# linux/sched.h, linux/mount.h and linux/prctl.h.
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

# Beyond what runs already for this user: torch's threads and a data loader's workers.
MORE_PROCESSES = 64
LARGEST_FILE = 64 * 2**20
# Address space that threads and the allocator set aside without using it.
RESERVED = 256 * 2**20


class _MountAttributes(ctypes.Structure):
    """``struct mount_attr``."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def die_with_parent() -> None:
    """Be killed when the parent process dies (Linux; elsewhere the parent's own cleanup serves)."""
    if sys.platform == "linux":
        _check(_libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Become the parent of what descendants leave behind, so that it can be ended (Linux)."""
    if sys.platform == "linux":
        _check(_libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def isolate(folder: str) -> dict[str, str]:
    """Drop the network and make all files but those under ``folder`` read-only.

    Returns what was achieved: "dropped" and "read-only", or "kept: why" and "writable: why".
    """
    if sys.platform != "linux":
        why = f"{sys.platform} lets no unprivileged process do so"
        return {"network": f"kept: {why}", "files": f"writable: {why}"}
    try:
        _unshare(CLONE_NEWNET | CLONE_NEWNS)
    except OSError as error:
        reason = str(error.strerror)
        return {"network": f"kept: {reason}", "files": f"writable: {reason}"}
    try:
        _read_only_but(folder)
    except OSError as error:
        return {"network": "dropped", "files": f"writable: {error.strerror}"}
    return {"network": "dropped", "files": "read-only"}


def _unshare(flags: int) -> None:
    """New namespaces, within a user namespace where that is needed to be allowed."""
    libc = _libc()
    if libc.unshare(flags) == 0:
        return
    user, group = os.getuid(), os.getgid()
    _check(libc.unshare(flags | CLONE_NEWUSER), "unshare")
    # Without a map the process would run as nobody and getpass.getuser() would fail.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _read_only_but(folder: str) -> None:
    """Needs a mount namespace of its own; ``mount_setattr`` exists since Linux 5.12."""
    libc = _libc()
    here = os.fsencode(folder)
    _check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount")
    _check(libc.mount(here, here, None, MS_BIND, None), "mount")
    _set_attributes(libc, b"/", AT_RECURSIVE, _MountAttributes(attr_set=MOUNT_ATTR_RDONLY))
    _set_attributes(libc, here, 0, _MountAttributes(attr_clr=MOUNT_ATTR_RDONLY))
    if os.path.isdir("/dev/shm"):
        # Shared memory is how data loader workers hand over tensors; this one is empty and small.
        _check(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=64m"), "mount")


def _set_attributes(
    libc: ctypes.CDLL, path: bytes, flags: int, attributes: _MountAttributes
) -> None:
    size = ctypes.sizeof(attributes)
    code = libc.syscall(
        SYS_MOUNT_SETATTR, AT_FDCWD, path, flags, ctypes.byref(attributes), ctypes.c_size_t(size)
    )
    _check(code, "mount_setattr")


def limit(memory_mb: int, cpu_seconds: int, device: str) -> None:
    """Bound memory, CPU time, file size and processes. Called before the namespaces change.

    Importing torch maps gigabytes that are never used, so memory is bounded by what is mapped now
    and some more: RLIMIT_DATA for what is private and writable (mmap included since Linux 4.7),
    RLIMIT_AS, more loosely, for all of it, except with CUDA, whose context maps what it likes.
    """
    allowed = memory_mb * 2**20
    _lower(resource.RLIMIT_DATA, _mapped_bytes("VmData:") + allowed)
    mapped = _mapped_bytes("VmSize:")
    if mapped and device != "cuda":
        _lower(resource.RLIMIT_AS, mapped + allowed + RESERVED)
    _lower(resource.RLIMIT_CPU, cpu_seconds)
    _lower(resource.RLIMIT_FSIZE, LARGEST_FILE)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_NPROC, _processes_of_user() + MORE_PROCESSES)


def _lower(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bound, bound))


def _mapped_bytes(field: str) -> int:
    """What the process has mapped so far, by a field of /proc/self/status."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith(field):
                    return int(line.split()[1]) * 1024
    except OSError:
        return 0  # no /proc: the limit then counts from nothing, which is stricter
    return 0


def _processes_of_user() -> int:
    """Threads of this user now; RLIMIT_NPROC counts them all."""
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
    """Close every descriptor but ``keep``; standard input is empty and output goes nowhere."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    highest = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 65536)
    os.closerange(3, keep)
    os.closerange(keep + 1, highest)


def end_orphans() -> None:
    """Kill every child of this process, and the children they leave, until there is none."""
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
