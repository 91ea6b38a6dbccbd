"""In the child: isolates the process in a network, file system and process space (Linux).

As far as the kernel allows, the process then reaches no network, writes to one folder only, sees no
processes but its own, and has no privilege to undo this.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

# linux/sched.h, linux/mount.h, linux/prctl.h and linux/capability.h.
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 4, 24, 38
LINUX_CAPABILITY_VERSION_3, LAST_CAPABILITY = 0x20080522, 63

# The most that a snippet may write; it is held in memory and ends with the process.
LARGEST_FOLDER = b"size=256m,nr_inodes=20000,mode=700"
# Shared memory is how data loader workers hand over tensors; this one is empty and small.
SHARED_MEMORY = b"size=64m"
# The devices that programs need; a terminal's and a disk's could be written to past all mounts.
DEVICE_FILES = ("null", "zero", "full", "random", "urandom", "dri", "kfd", "dxg")
ACCELERATOR_FILES = ("nvidia", "nvhost", "nvmap")
# Sockets in these folders lead to services that act for every client: a desktop's, Docker's.
SERVICES = ("/run", "/var/run", "/tmp/.X11-unix", "/tmp/.ICE-unix")
# Files in /proc that change the whole machine. They obey any process with root's user id, with or
# without a capability, so they stay read-only where the rest of /proc cannot.
KERNEL_SETTINGS = (
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi",
    "/proc/scsi", "/proc/mtrr",
)  # fmt: skip


@dataclass(frozen=True)
class Separation:
    """The namespaces that a process enters, as flags, and whether /proc becomes read-only.

    ``shared`` says why it still sees its parent's processes; empty if it does not.
    """

    flags: int
    shared: str = ""
    read_only_proc: bool = True


APART = Separation(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC)
# Tried one by one on an H100 (driver 580, CUDA 13.0): in a process namespace of its own, and with
# a read-only /proc, cudaGetDeviceCount fails with error 304. Everything else leaves CUDA working.
WITH_CUDA = Separation(
    CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC,
    shared="CUDA does not start in a process namespace of its own",
    read_only_proc=False,
)


def separation(device: str) -> Separation:
    """Return the isolation for a process that computes on ``device`` ("cpu" or "cuda")."""
    return WITH_CUDA if device == "cuda" else APART


class _MountAttributes(ctypes.Structure):
    """``struct mount_attr``."""

    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


class _CapabilityHeader(ctypes.Structure):
    """``struct __user_cap_header_struct``."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def libc() -> ctypes.CDLL:
    """Return the C library of this process."""
    return ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise OSError if a call of the C library failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def leave(folder: str, needed: Iterable[str] = (), device: str = "cpu") -> dict[str, str]:
    """Drop the network and make all files but those under ``folder`` read-only.

    ``needed`` are paths that must remain readable. Returns the result for each: "dropped",
    "read-only" and "apart", or "kept: why", "writable: why" and "shared: why". If processes are
    apart, the next fork becomes the first of them. With CUDA they are not, see `separation`.
    """
    if sys.platform != "linux":
        return _nothing(f"{sys.platform} lets no unprivileged process do so")
    plan = separation(device)
    try:
        _unshare(plan.flags)
    except OSError as error:
        return _nothing(str(error.strerror))
    processes = f"shared: {plan.shared}" if plan.shared else "apart"
    achieved = {"network": "dropped", "files": "read-only", "processes": processes}
    try:
        _read_only_but(folder, [os.path.realpath(path) for path in needed], plan.read_only_proc)
    except OSError as error:
        achieved["files"] = f"writable: {error.strerror}"
    return achieved


def _nothing(why: str) -> dict[str, str]:
    """Return the result of `leave` where the kernel grants no namespace."""
    return {"network": f"kept: {why}", "files": f"writable: {why}", "processes": f"shared: {why}"}


def _unshare(flags: int) -> None:
    """Enter new namespaces, within a user namespace where that is needed for permission."""
    if libc().unshare(flags) == 0:
        return
    user, group = os.getuid(), os.getgid()
    check(libc().unshare(flags | CLONE_NEWUSER), "unshare")
    # Without a map the process would run as nobody and getpass.getuser() would fail.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _read_only_but(folder: str, needed: list[str], read_only_proc: bool) -> None:
    """Make files read-only in this mount namespace; needs ``mount_setattr`` (Linux 5.12)."""
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    keeps_proc = not read_only_proc and not os.statvfs("/proc").f_flag & os.ST_RDONLY
    if keeps_proc:
        for place in filter(os.path.exists, KERNEL_SETTINGS):
            _mount(place, place, None, MS_BIND | MS_REC)  # a mount of its own, so it can differ
    _set_attributes("/", AT_RECURSIVE, _MountAttributes(attr_set=MOUNT_ATTR_RDONLY))
    if keeps_proc:
        _set_attributes("/proc", 0, _MountAttributes(attr_clr=MOUNT_ATTR_RDONLY))
    for place in SERVICES:
        inside = any(path == place or path.startswith(f"{place}/") for path in needed)
        if os.path.isdir(place) and not os.path.islink(place) and not inside:
            _mount("tmpfs", place, "tmpfs", MS_RDONLY, b"size=4k")
    _few_devices()
    _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, LARGEST_FOLDER)


def _set_attributes(place: str, flags: int, attributes: _MountAttributes) -> None:
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    pointer = ctypes.byref(attributes)
    code = libc().syscall(SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(place), flags, pointer, size)
    check(code, f"mount_setattr {place}")


def _few_devices() -> None:
    """Mount a /dev without disks, terminals or access to another process's memory."""
    names = [n for n in os.listdir("/dev") if n in DEVICE_FILES or n.startswith(ACCELERATOR_FILES)]
    kept = {name: os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC) for name in names}
    _mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, b"size=64k,mode=755")
    for name, descriptor in kept.items():
        source, target = f"/proc/self/fd/{descriptor}", f"/dev/{name}"
        if os.path.isdir(source):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
        _mount(source, target, None, MS_BIND | MS_REC)
        os.close(descriptor)
    os.mkdir("/dev/shm")
    _mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, SHARED_MEMORY)
    os.symlink("/proc/self/fd", "/dev/fd")


def own_proc() -> None:
    """Let /proc show only the processes of this namespace, where the container allows it.

    Called by the first process of its namespace.
    """
    with contextlib.suppress(OSError):
        _mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, options: bytes | None = None
) -> None:
    def text(one: str | None) -> bytes | None:
        return None if one is None else os.fsencode(one)

    at, flag = os.fsencode(target), ctypes.c_ulong(flags)
    check(libc().mount(text(source), at, text(kind), flag, options), f"mount {target}")


def drop_privileges() -> None:
    """Give up every capability for good; with them, mounts could be made writable again."""
    if sys.platform != "linux":
        return
    check(libc().prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    for capability in range(LAST_CAPABILITY + 1):
        # Fails for numbers that this kernel does not know, and where there is nothing to give up.
        libc().prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = _CapabilityHeader(LINUX_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    check(libc().capset(ctypes.byref(header), ctypes.byref(nothing)), "capset")


def keep_out(closed: bool) -> None:
    """Forbid or allow the user's other processes to read this one's memory and descriptors."""
    if sys.platform == "linux":
        check(libc().prctl(PR_SET_DUMPABLE, 0 if closed else 1, 0, 0, 0), "prctl")
