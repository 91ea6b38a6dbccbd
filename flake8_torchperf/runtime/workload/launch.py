"""The parent's side: starts the child, passes signals on, waits, and reads the child's results.

Must not import torch: the child does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flake8_torchperf
from flake8_torchperf.runtime.workload.exchange import Observed, Plan, this_interpreter
from flake8_torchperf.runtime.workload.ownership import is_installed_command
from flake8_torchperf.runtime.workload.ranks.environment import given_rank
from flake8_torchperf.runtime.workload.ranks.merge import MergedRun, bring_together
from flake8_torchperf.runtime.workload.ranks.recordings import new_plan, read_recordings
from flake8_torchperf.runtime.workload.ranks.team import Team

_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_PASSED_ON = frozenset(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
# si_code of a signal that a process sent, in contrast to the terminal (sigaction(2)).
_SENT_BY_PROCESS = (0, -1, -6)


@dataclass(frozen=True)
class RunOutcome:
    """The child's exit status (negative: its signal), and what the processes of the run observed.

    ``run`` is None if the parent of another rank, which ends later, reports for all ranks.
    """

    returncode: int
    run: MergedRun | None

    @property
    def observed(self) -> Observed | None:
        """The observations of all processes together; None if there are none."""
        return self.run.merged if self.run else None


def run_workload(
    script: str,
    arguments: Sequence[str],
    *,
    is_module: bool = False,
    owners: Sequence[str] = (),
    level: str = "full",
    profile: bool = False,
    contracts: tuple[str, ...] | None = None,
    trace: bool = False,
    inputs: str = "",
    stops: bool = False,
    step: str = "",
    warmup: int | None = None,
) -> RunOutcome:
    """Run a script or module in a child process and wait for it to end.

    The child gets the options of Python with which this interpreter was started (`-W error`).
    """
    defaults = [os.getcwd()]
    if not is_module and not is_installed_command(script):
        defaults.append(os.path.dirname(os.path.realpath(script)))
    plan = Plan(
        script=script,
        arguments=tuple(arguments),
        is_module=is_module,
        owners=tuple(os.path.abspath(one) if Path(one).exists() else one for one in owners),
        defaults=tuple(defaults),
        level=level,
        results="",
        profile=profile,
        contracts=contracts,
        rank=given_rank(),
        interpreter=this_interpreter(),
        trace=trace,
        inputs=inputs,
        stops=stops,
        step=_whole(step),
        warmup=warmup,
    )
    team = Team.of_this_process()
    if team is None:
        with tempfile.TemporaryDirectory(prefix="torchperf-") as folder:
            returncode = _wait(_command(plan, Path(folder)))
            return RunOutcome(returncode, bring_together(read_recordings(Path(folder))))
    with team:
        returncode = _wait(_command(plan, team.folder))
        if not team.is_last():
            return RunOutcome(returncode, None)
        run = bring_together(read_recordings(team.folder), team.expected)
        return RunOutcome(returncode, run)


def _whole(step: str) -> str:
    """Return the name of a function with the whole path of its file, if it has one."""
    file, separator, name = step.rpartition("::")
    return f"{os.path.abspath(file)}{separator}{name}" if separator else step


def _command(plan: Plan, folder: Path) -> list[str]:
    """Return the command that starts the child, with its plan saved in the folder."""
    home = str(Path(flake8_torchperf.__file__).parent.parent)
    own: Any = subprocess
    python = [sys.executable, *own._args_from_interpreter_flags()]
    return [*python, str(_BOOTSTRAP), str(new_plan(folder, plan)), home]


def _wait(command: Sequence[str]) -> int:
    if hasattr(signal, "sigtimedwait"):
        return _wait_for_signals(command)
    return _wait_with_handlers(command)


def _wait_for_signals(command: Sequence[str]) -> int:
    """Wait on Linux, and pass on signals; the terminal's own signals reach the child directly."""
    waited = _PASSED_ON | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        child = start_child(command, before)
        while child.poll() is None:
            # The time limit is for a child that ended before its signal could be waited for.
            info = signal.sigtimedwait(waited, 1.0)
            if info is None or info.si_signo == signal.SIGCHLD:
                continue
            if info.si_code in _SENT_BY_PROCESS:
                child.send_signal(info.si_signo)
        return child.returncode
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_child(command: Sequence[str], blocked: Iterable[int]) -> subprocess.Popen[bytes]:
    """Start the child with these signals blocked. Tests that start many replace this function."""
    return subprocess.Popen(
        command, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    )


def _wait_with_handlers(command: Sequence[str]) -> int:
    """Wait on other systems, and pass on signals, but no Ctrl-C of the terminal.

    The terminal sends that to the child too, as the console does on Windows, where no other process
    can send it.
    """
    child: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, frame: Any) -> None:
        by_terminal = os.name != "posix" or sys.stdin.isatty()
        if child and not (number == signal.SIGINT and by_terminal):
            child[0].send_signal(number)

    with _handlers(pass_on):
        child.append(subprocess.Popen(command))
        return child[0].wait()


@contextmanager
def _handlers(handler: Any) -> Iterator[None]:
    before = {one: signal.signal(one, handler) for one in _PASSED_ON}
    try:
        yield
    finally:
        for one, old in before.items():
            signal.signal(one, old)


def leave_like(returncode: int) -> int:
    """Return the exit status that passes the child's on, or die of the child's signal."""
    if returncode >= 0:
        return returncode
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        if -returncode not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -returncode)
    return 128 - returncode
