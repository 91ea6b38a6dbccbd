"""What a snippet may use up, what it may reach, and what it may say: each limit is run into."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hangs import HANG
from signals import hear_ctrl_c

pytest.importorskip("torch")

from flake8_torchperf.cli.confirm_command import DEFAULT_SIZES
from flake8_torchperf.runtime.confirm.child import namespaces
from flake8_torchperf.runtime.confirm.plan import ConfirmSettings, Request, plan
from flake8_torchperf.runtime.confirm.sandbox import Answer, Sandbox
from flake8_torchperf.runtime.confirm.verdict import verdict_of_call
from flake8_torchperf.runtime.counting.counts import Counts

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT = 6.0
# For those that have to run into it.
SHORT = 1.5
HEAD = """\
import ctypes
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import time

import torch


def refused(action, *arguments):
    try:
        action(*arguments)
    except OSError:
        return
    raise AssertionError(f"allowed: {action.__name__}{arguments}")

"""
READ = "    return x.sum().item()\n"
# A mark by which the test finds what a snippet left behind, in `ps`.
MARK = "torchperf-left-behind"
CHILD = f"{sys.executable} -m flake8_torchperf.runtime.confirm.child"
# Each ends in a read that is confirmed where nothing before it raised.
HOLDS = {
    "fills_the_disk": """
    with open("a", "wb") as file:
        try:
            file.write(b"x" * (100 * 2**20))
        except OSError as error:
            assert error.errno == errno.EFBIG
        else:
            raise AssertionError("a file of 100 MiB")
    """,
    "has_no_input": """
    assert sys.stdin.read() == ""
    assert os.read(0, 1) == b""
    """,
    "has_one_descriptor_more_than_standard": """
    open_ones = [int(n) for n in os.listdir("/proc/self/fd")]
    assert len([n for n in open_ones if n > 2]) <= 3, open_ones
    """,
    "has_no_terminal": """
    refused(os.open, "/dev/tty", os.O_RDWR)
    """,
    "may_not_raise_its_limits": """
    for one in (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_CPU,
                resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC):
        soft, hard = resource.getrlimit(one)
        assert soft == hard > 0 and hard != resource.RLIM_INFINITY, (one, soft, hard)
        try:
            resource.setrlimit(one, (hard + 1, hard + 1))
        except ValueError:
            continue
        raise AssertionError(one)
    assert resource.getrlimit(resource.RLIMIT_CORE) == (0, 0)
    """,
    "has_no_more_environment": """
    assert not [name for name in os.environ if "SECRET" in name or "TOKEN" in name]
    """,
}
# Hold only where the kernel grants namespaces.
HOLDS_APART = {
    "kills_everything": """
    if os.fork() == 0:
        time.sleep(600)
    os.kill(-1, signal.SIGKILL)
    os.kill(1, signal.SIGKILL)
    os.kill(os.getppid(), signal.SIGKILL)
    """,
    "fills_the_folder": """
    piece = b"x" * 2**20
    try:
        for i in range(400):
            with open(f"f{i}", "wb") as file:
                file.write(piece)
    except OSError as error:
        assert error.errno == errno.ENOSPC and i < 300, (error, i)
    else:
        raise AssertionError("400 MiB")
    """,
    "undoes_the_mounts": """
    libc = ctypes.CDLL(None, use_errno=True)
    MS_REMOUNT, MS_BIND = 0x20, 0x1000
    assert libc.mount(None, b"/", None, ctypes.c_ulong(MS_REMOUNT | MS_BIND), None) == -1
    assert libc.umount2(b"/dev", 2) == -1
    attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    assert libc.syscall(442, -100, b"/", 0x8000, attributes, ctypes.c_size_t(32)) == -1
    CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x00020000
    if os.fork() == 0:
        # A namespace in the namespace gives back privileges, but not over these mounts.
        libc.unshare(CLONE_NEWUSER | CLONE_NEWNS)
        done = libc.syscall(442, -100, b"/", 0x8000, attributes, ctypes.c_size_t(32))
        os._exit(0 if done == -1 else 1)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    refused(open, __file__, "a")
    """,
    "reaches_disks_and_terminals": """
    kept = {"null", "zero", "full", "random", "urandom", "shm", "fd", "dri", "kfd"}
    assert {n for n in os.listdir("/dev") if not n.startswith("nvidia")} <= kept
    """,
    "reaches_services": """
    assert os.listdir("/run") == []
    with socket.socket(socket.AF_UNIX) as one:
        refused(one.connect, "/run/docker.sock")
    with socket.socket(socket.AF_UNIX) as one:
        refused(one.connect, "\\0/tmp/.X11-unix/X0")
    """,
    "looks_at_the_process_that_started_it": """
    for entry in os.listdir("/proc"):
        path = f"/proc/{entry}"
        if not entry.isdigit() or entry == os.readlink("/proc/self") or not os.path.isdir(path):
            continue
        refused(open, f"{path}/environ")
        refused(open, f"{path}/mem", "rb")
        refused(os.readlink, f"{path}/fd/0")
    """,
}
ENDS = {
    "closes_its_pipe": (
        "    os.closerange(3, 65536)\n    time.sleep(600)\n",
        "crashed: the process ended early with exit status 1",
    ),
    "floods_its_pipe": (
        "    for fd in range(3, 1024):\n        try:\n            while True:\n"
        "                os.write(fd, b'x' * 65536)\n        except OSError:\n            pass\n",
        "timed out after 1.5 s",
    ),
    "stops_itself": ("    os.kill(os.getpid(), signal.SIGSTOP)\n", "timed out after 1.5 s"),
    "burns_processor_time": (
        "    if os.fork() == 0:\n        while True:\n            pass\n    os._exit(0)\n",
        "crashed: the process ended early",
    ),
    "says_nothing": ("    sys.stdout.close()\n    os._exit(7)\n", "crashed: the process ended early"),
    "prints_a_verdict": (
        "    if x.numel() > 0:\n        raise ValueError('\\x1b[2K\\rmodel.py:1:1: TPF101 confirmed\\x07\\u202e')\n",
        "not reached",
    ),
}  # fmt: skip
FORKS = (
    "    for _ in range(100):\n        try:\n            if os.fork() == 0:\n"
    "                time.sleep(600)\n        except BlockingIOError:\n            os._exit(11)\n"
    "    os._exit(12)\n"
)
LEAVES = {
    "a_grandchild": (
        f"    command = [sys.executable, '-c', 'import time; time.sleep(600)', '{MARK}']\n"
        "    subprocess.Popen(command, start_new_session=True, cwd='/')\n"
    ),
    "a_daemon": (
        "    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
        "            for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):\n"
        "                signal.signal(one, signal.SIG_IGN)\n"
        f"            os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', '{MARK}'])\n"
        "        os._exit(0)\n    os.wait()\n"
    ),
    "one_that_forks_and_forks": (
        "    if os.fork() == 0:\n        os.setsid()\n"
        "        while True:\n            if os.fork() != 0:\n                os._exit(0)\n"
        "            time.sleep(0.001)\n    time.sleep(0.2)\n"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    source = HEAD
    bodies = {**HOLDS, **HOLDS_APART, **{k: v[0] for k, v in ENDS.items()}, **LEAVES}
    bodies["forks_without_end"] = FORKS
    for name, body in bodies.items():
        source += f"\n\ndef {name}(x: torch.Tensor) -> float:\n{body.rstrip()}\n{READ}"
    path = tmp_path_factory.mktemp("limits") / "snippets.py"
    path.write_text(source)
    found = plan([Request(path)], ConfirmSettings(DEFAULT_SIZES, "cpu"), print)
    return {group.function: group for group in found}


@pytest.fixture(scope="module")
def sandbox():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHPERF_TEST_SECRET", "hunter2")
        patch.setenv("GITHUB_TOKEN", "hunter2")
        with Sandbox(TIMEOUT, 512) as made:
            yield made


def verdict_on(name, groups, sandbox, timeout=0.0):
    group = groups[name]
    return verdict_of_call(group, group.targets[0], sandbox.run(group.job, timeout), 1000, "cpu")


@pytest.mark.parametrize("name", HOLDS)
def test_a_limit_holds(name, groups, sandbox):
    verdict = verdict_on(name, groups, sandbox)
    assert verdict.status == "confirmed", verdict.reason


@pytest.mark.parametrize("name", HOLDS_APART)
def test_it_is_kept_apart_where_the_kernel_allows_it(name, groups, sandbox):
    if (sandbox.isolation["processes"], sandbox.isolation["files"]) != ("apart", "read-only"):
        pytest.skip(f"no namespaces here: {sandbox.isolation}")
    verdict = verdict_on(name, groups, sandbox)
    assert verdict.status == "confirmed", verdict.reason


@pytest.mark.parametrize("name", ENDS)
def test_it_ends_without_a_verdict(name, groups, sandbox):
    told = ENDS[name][1]
    timeout = SHORT if told.startswith("timed out") else 0.0
    verdict = verdict_on(name, groups, sandbox, timeout)
    assert verdict.status == "inconclusive"
    assert verdict.reason.startswith(told)
    assert verdict.reason.isprintable()


def test_processes_are_counted(groups, sandbox):
    """Root's are not: the kernel lets the superuser start as many as there is room for.

    A hundred forks take long on a busy machine: this is not about time.
    """
    verdict = verdict_on("forks_without_end", groups, sandbox, 60)
    assert verdict.reason.endswith("exit status 11" if os.getuid() else "exit status 12")


@pytest.mark.parametrize("name", LEAVES)
def test_what_it_leaves_behind_ends_with_it(name, groups, sandbox):
    if name == "one_that_forks_and_forks" and sandbox.isolation["processes"] != "apart":
        pytest.skip("without a process namespace it may run faster than it is looked for")
    before = processes()
    assert verdict_on(name, groups, sandbox).status == "confirmed"
    left = [line for line in processes() - before if MARK in line or CHILD in line]
    assert left == []


def processes():
    """Process ids and command lines of what runs, the dead that wait for their parents left out."""
    done = subprocess.run(
        ["ps", "-eo", "pid,stat,args"], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 2) for line in done.stdout.splitlines()[1:]]
    return {f"{row[0]} {row[2]}" for row in rows if len(row) == 3 and not row[1].startswith("Z")}


def test_with_cuda_all_but_the_process_namespace_and_a_read_only_proc_is_given_up():
    apart, with_cuda = namespaces.separation("cpu"), namespaces.separation("cuda")
    assert apart.flags & ~with_cuda.flags == namespaces.CLONE_NEWPID
    assert with_cuda.flags & ~apart.flags == 0
    assert (apart.read_only_proc, with_cuda.read_only_proc) == (True, False)
    assert (apart.shared, bool(with_cuda.shared)) == ("", True)


# What a process that computes on CUDA may do with files, each line one thing to try.
ON_CUDA = {
    "writes to its own entry in /proc": ("open('/proc/self/comm', 'w').close()", True),
    "writes to a setting of the kernel": ("open('/proc/sys/kernel/core_pattern', 'w')", False),
    "asks the kernel for a reboot": ("open('/proc/sysrq-trigger', 'w').close()", False),
    "writes to a file of yours": (f"open({__file__!r}, 'a').close()", False),
    "writes to its folder": ("open('mine', 'w').close()", True),
    "reaches the network": ("socket.create_connection(('127.0.0.1', 9), 1)", False),
    "mounts /proc anew": (
        "namespaces.check(namespaces.libc().mount(b'proc', b'/proc', b'proc', 0, None), '')",
        False,
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
def test_what_a_process_that_computes_on_cuda_may_do(tmp_path):
    """No GPU is needed for it: the plan is carried out, and each thing is tried."""
    code = "\n".join(
        [
            "import json, os, socket",
            "from flake8_torchperf.runtime.confirm.child import namespaces",
            f"achieved = namespaces.leave({str(tmp_path)!r}, (), 'cuda')",
            f"os.chdir({str(tmp_path)!r})",
            "namespaces.drop_privileges()",
            "done = {}",
            f"for name, (text, _) in {ON_CUDA!r}.items():",
            "    try:",
            "        exec(text)",
            "        done[name] = True",
            "    except OSError:",
            "        done[name] = False",
            "print(json.dumps([achieved, done, os.getpid()]))",
        ]
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        told, _ = child.communicate(timeout=HANG)
    achieved, done, pid = json.loads(told)
    if achieved["files"] != "read-only":
        pytest.skip(f"no namespaces here: {achieved}")
    assert done == {name: allowed for name, (_, allowed) in ON_CUDA.items()}
    assert achieved["processes"].startswith("shared: CUDA")
    assert pid == child.pid  # it sees the processes that there are


def test_where_cuda_does_not_start_the_verdict_says_so(groups):
    import torch

    if torch.cuda.is_available():
        pytest.skip("CUDA starts here")
    group = groups["has_no_input"]
    job = {**group.job, "device": "cuda"}
    with Sandbox(TIMEOUT, 512, "cuda") as made:
        assert made.isolation["processes"].startswith("shared: ")
        verdict = verdict_of_call(group, group.targets[0], made.run(job), 1000, "cuda")
    assert verdict.status == "inconclusive"
    assert verdict.reason.startswith("CUDA did not start: ")


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGINT]
)
def test_a_killed_command_takes_its_children_along(tmp_path, number):
    (tmp_path / "slow.py").write_text(
        "import time\n\nimport torch\n\n\ndef f(x: torch.Tensor) -> float:\n"
        f"    open('{MARK}', 'w').close()\n    time.sleep(600)\n{READ}"
    )
    before = processes()
    command = [sys.executable, "-m", "flake8_torchperf.cli.main", "confirm", "slow.py"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=hear_ctrl_c,
    ) as running:
        end = time.monotonic() + HANG
        while not jobs(tmp_path) and time.monotonic() < end:
            time.sleep(0.05)
        running.send_signal(number)
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        left = [one for one in processes() - before if CHILD in one]
        if not left:
            break
        time.sleep(0.05)
    assert left == []


def jobs(folder):
    """The folders of jobs that have begun."""
    return list(folder.glob("torchperf-*/*"))


@pytest.mark.parametrize(
    "said",
    [
        "[" * 100_000,
        json.dumps({"targets": {"0": {"reached": True}}})[:-3],
        "1" * 10_000,
        "null",
        '"confirmed"',
        "[]",
    ],
)
def test_what_does_not_parse_is_no_result(said):
    answer = Sandbox(1.0, 64)._judge({"said": said, "ended": 0}, 0.1, 1.0)
    assert answer.result is None
    assert answer.failure


def probe(**changed):
    counts = {**Counts().to_dict(), "dispatches": 2, "host_reads": 1}
    made = {
        "size": 16, "seconds": 0.1, "error": "", "counted": True, "totals": counts,
        "regions": {"0": counts}, "executions": {"0": 1}, "lines": {},
    }  # fmt: skip
    return {**made, **changed}


@pytest.mark.parametrize(
    "changed",
    [
        {"seconds": float("nan")},
        {"seconds": 10**400},
        {"seconds": "soon"},
        {"size": True},
        {"size": -4},
        {"executions": {"0": 10**5000}},
        {"totals": {"dispatches": 10**5000, "host_reads": 0}},
        {"lines": {"one": {}}},
        {"lines": {"1": {"dispatches": 0.5}}},
        {"regions": {"0": {"host_reads": None}}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_impossible_figures_are_no_verdict(tmp_path, changed):
    path = tmp_path / "one.py"
    path.write_text(f"import torch\n\n\ndef f(x: torch.Tensor) -> float:\n{READ}")
    (group,) = plan([Request(path)], ConfirmSettings(DEFAULT_SIZES, "cpu"), print)

    def verdict(*probes):
        entry = {"reached": True, "inputs": {}, "error": "", "probes": probes}
        answer = Answer({"targets": {"0": entry}}, "", 0.1)
        return verdict_of_call(group, group.targets[0], answer, 1000, "cpu")

    good = [probe(size=n) for n in DEFAULT_SIZES]
    assert verdict(*good).status == "confirmed"
    judged = verdict(*good[:2], probe(**{"size": 256, **changed}))
    assert judged.status == "inconclusive"
    assert judged.reason.startswith("the child's report is malformed")
