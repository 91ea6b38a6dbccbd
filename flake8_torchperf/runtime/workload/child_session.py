"""The child's side: runs the script or module as Python would, watches it, writes the results.

Results go to the plan's file; stdin, stdout, stderr and the exit status belong to the workload.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import importlib.util
import multiprocessing.util
import os
import signal
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

from torch.overrides import handle_torch_function

from flake8_torchperf.runtime.workload.exchange import KILLED, Observed, Plan
from flake8_torchperf.runtime.workload.gate.stop import DeviceWait
from flake8_torchperf.runtime.workload.ranks.environment import (
    NO_RANK,
    invite,
    rank_word,
)
from flake8_torchperf.runtime.workload.ranks.merge import NOT_STARTED
from flake8_torchperf.runtime.workload.ranks.recordings import results_beside
from flake8_torchperf.runtime.workload.ranks.takeover import is_users_own
from flake8_torchperf.runtime.workload.watching.watch import Watch

Program = Callable[[], None]
_threads: Any = threading
FIRST_SAVED, MOST_SECONDS = 1.0, 60.0
"""When results are first saved for a process that may be killed, and how seldom at last."""

# Where multiprocessing forks, and where a forked process becomes another program.
_FORKS_RECORDED = ("multiprocessing.popen_fork", "multiprocessing.forkserver", "subprocess")
_OURS = str(Path(__file__).parents[1]) + os.sep


class Session(Watch):
    """One watched process; `finish` may be called from a signal's handler as well."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, self._save_sometimes)
        self._plan = plan
        self._due = monotonic() + FIRST_SAVED
        self._began = monotonic()
        self._process = os.getpid()
        self._results = Path(plan.results)
        self._written = plan.is_fork_server  # Not part of the workload, but its forks are.
        self._forks = self._programs = 0
        sys.addaudithook(self._audit)
        multiprocessing.util.register_after_fork(self, Session._go_on_in_fork)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_parent=self._forked)

    def run(self, load: Callable[[], Program]) -> None:
        """Load a program and run it, then write the results; its exceptions are passed on."""
        ended = NOT_STARTED
        try:
            with self.watching():
                try:
                    program = load()
                    ended = "returned"
                    program()
                except BaseException as error:
                    _show_as_python_would(error, self._owns)
                    raise
                finally:
                    # Python waits for these threads when it exits, which is too late to count them.
                    _threads._shutdown()
        except BaseException as error:
            if ended == "returned" and not self._is_end_of_code(error):
                ended = type(error).__name__
            raise
        finally:
            self.finish(ended)

    def _is_end_of_code(self, error: BaseException) -> bool:
        """True if the error is how multiprocessing ends a process that it started."""
        return self._plan.is_code and isinstance(error, SystemExit) and not error.code

    def finish(self, ended: str) -> None:
        """Write the results, once, and not in a process that `os.fork` made."""
        if self._written or os.getpid() != self._process:
            return
        self._written = True
        with _uninterrupted():
            self.observed(ended).save(self._results)

    def _save_sometimes(self) -> None:
        """Save the results so far in case the process is killed, less often the longer it runs."""
        if monotonic() < self._due or self._written or not self._plan.results:
            return
        main = threading.get_ident() == threading.main_thread().ident
        if main and os.getpid() == self._process:
            self.observed(KILLED).save(self._results)
            self._due = monotonic() + min(MOST_SECONDS, monotonic() - self._began)

    def _go_on_in_fork(self) -> None:
        """Restart the counts in a process that multiprocessing forked, for a separate recording.

        Lines that ran before remain noted, because `sys.monitoring` does not report them again.
        """
        self._process = os.getpid()
        self._written = False
        self._results = results_beside(self._results)
        self.forget()
        multiprocessing.util.Finalize(None, self.finish, args=("returned",), exitpriority=0)

    def observed(self, ended: str) -> Observed:
        """Return the observations so far, with notes on the processes that are not counted."""
        notes = []
        if self._forks:
            notes.append(f"os.fork was called {self._forks}x: the forked processes are not counted")
        if self._programs:
            notes.append(
                f"{self._programs} other Python programs were started: they are not counted"
            )
        observed = super().observed(ended)
        return replace(observed, notes=(*notes, *observed.notes))

    def _forked(self) -> None:
        """Count the forks of the program itself; those of multiprocessing are recorded."""
        if sys._getframe(1).f_globals.get("__name__", "") not in _FORKS_RECORDED:
            self._forks += 1

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count the Python programs that this one starts as no ranks of the run."""
        if event != "subprocess.Popen" or self._written or os.getpid() != self._process:
            return
        executable, _, _, environment = arguments
        is_python = Path(os.fsdecode(executable)).name.startswith("python")
        if is_python and (environment or os.environ).get("RANK", NO_RANK) == rank_word():
            self._programs += 1


@contextlib.contextmanager
def _uninterrupted() -> Any:
    """Ignore Ctrl-C while a report is written. Only the main thread may set signal handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def main(plan: Plan, path: Path) -> None:
    """Run the plan's workload in this process, and end the way the workload ends."""
    _hide_from_pytest()
    session = Session(plan)
    _report_on_termination(session)
    _report_on_exit(session)
    if not plan.is_code:  # A process of multiprocessing is the same as its parent.
        invite(path, is_users_own(plan))
    prepare = _module if plan.is_module else _code if plan.is_code else _script
    session.run(prepare(plan))


def _hide_from_pytest() -> None:
    """Avoid pytest's warning that the package of our pytest plugin is imported already.

    pytest rewrites the asserts of its plugins' packages and warns where it comes too late, unless
    the package's docstring holds this word (_pytest/assertion/rewrite.py); with `-W error` the
    warning would end the run.
    """
    package = sys.modules["flake8_torchperf"]
    package.__doc__ = f"{package.__doc__ or ''} PYTEST_DONT_REWRITE"


def _report_on_termination(session: Session) -> None:
    """Write the report at SIGTERM, before it ends the process; keeps a workload's own handler."""

    def terminated(number: int, frame: Any) -> None:
        session.finish("SIGTERM")
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminated)


def _report_on_exit(session: Session) -> None:
    """Write the report before `os._exit`, which runs nothing else."""
    leave = os._exit

    def _exit(status: int) -> NoReturn:
        session.finish("os._exit")
        leave(status)

    vars(os)["_exit"] = _exit


def _search_first(folder: str) -> None:
    """Let imports search this folder first, as Python does except under PYTHONSAFEPATH."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)


def _code(plan: Plan) -> Callable[[], Program]:
    """Prepare code as multiprocessing passes it to `python -c`."""
    sys.argv = ["-c", *plan.arguments]
    _search_first("")
    module = types.ModuleType("__main__")
    vars(module).update(__builtins__=builtins, __spec__=None, __loader__=None)
    sys.modules["__main__"] = module

    def load() -> Program:
        code = compile(plan.script, "<string>", "exec")
        return lambda: exec(code, vars(module))

    return load


def _script(plan: Plan) -> Callable[[], Program]:
    sys.argv = [plan.script, *plan.arguments]
    _search_first(os.path.dirname(os.path.realpath(plan.script)))
    module = types.ModuleType("__main__")
    vars(module).update(__file__=plan.script, __builtins__=builtins, __spec__=None)
    sys.modules["__main__"] = module

    def load() -> Program:
        path = os.path.abspath(plan.script)
        # Not the loader's own method, whose frames would be in a SyntaxError's traceback.
        code = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        vars(module)["__loader__"] = importlib.machinery.SourceFileLoader("__main__", path)
        return lambda: exec(code, vars(module))

    return load


def _module(plan: Plan) -> Callable[[], Program]:
    sys.argv = [plan.script, *plan.arguments]
    _search_first(os.getcwd())

    def load() -> Program:
        name = plan.script
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = importlib.util.find_spec(name)
        if spec is None or not hasattr(spec.loader, "get_code"):
            raise SystemExit(f"torchperf: no module named {name}")
        loader: Any = spec.loader
        code = loader.get_code(name)
        module = types.ModuleType("__main__")
        vars(module).update(
            __file__=spec.origin,
            __builtins__=builtins,
            __spec__=spec,
            __package__=spec.parent,
            __loader__=loader,
        )
        sys.argv[0] = str(spec.origin)
        sys.modules["__main__"] = module
        return lambda: exec(code, vars(module))

    return load


def _show_as_python_would(error: BaseException, owns: Callable[[str], bool]) -> None:
    """Show the traceback of an uncaught exception, without frames of this package.

    Of a wait that ended the program, only frames of the user's are shown.
    """
    if isinstance(error, SystemExit):
        return
    for one in _with_causes(error):
        only = owns if isinstance(one, DeviceWait) else None
        one.__traceback__ = _users(one.__traceback__, only)
    # The hook prints the exception's own traceback and ignores its third argument.
    sys.excepthook(type(error), error, error.__traceback__)
    sys.excepthook = lambda *_: None  # Already shown; only the exit status is left.


def _with_causes(error: BaseException) -> list[BaseException]:
    """Return an exception, those that it was raised from or during, and those of a group."""
    found: list[BaseException] = []
    waiting: list[Any] = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseException) and not any(one is seen for seen in found):
            found.append(one)
            waiting += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found


def _users(
    trace: types.TracebackType | None, owns: Callable[[str], bool] | None = None
) -> types.TracebackType | None:
    """Return a traceback without the frames that count, first or in between.

    With ``owns``, only the frames of files of which it is true are kept.
    """
    kept: list[types.TracebackType] = []
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_OURS) and (owns is None or owns(name)):
            kept.append(trace)
        elif kept and kept[-1].tb_frame.f_code is handle_torch_function.__code__:
            kept.pop()  # torch calls this package's mode there.
        trace = trace.tb_next
    below: types.TracebackType | None = None
    for one in reversed(kept):
        below = types.TracebackType(below, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return below
