"""Joins parents that a launcher started side by side (`torchrun --no-python torchperf run`).

torch's launcher describes each of them in its environment. They share a folder for recordings, and
the last to end reports for all on its machine. None of them waits for the others, because they
might be waiting for a rank that has failed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows: there every rank reports for itself.
    _lock: Any = None
else:
    _lock = fcntl

_SAME_FOR_ALL = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT")
_OWN = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
# A launcher starts its processes at once: a process that is missing after this time will not come.
_LATE_SECONDS = 5.0


class TeamError(Exception):
    """The ranks cannot use their shared folder. The text is one line."""


class Team:
    """The parents of one machine's ranks. Open it before the workload starts.

    Raises TeamError where the folder cannot be used.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        rank, local_rank, size = (int(environment[name]) for name in _OWN)
        first = rank - local_rank
        self.expected = range(first, first + size)
        """The ranks that this machine was to start."""
        self._name = f"{rank}.alive"
        # All ranks have one parent, the launcher, and no other run has the same one meanwhile.
        words = [str(os.getppid()), *(environment.get(name, "") for name in _SAME_FOR_ALL)]
        key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]
        self.folder = Path(tempfile.gettempdir(), f"torchperf-{os.getuid()}-{key}")
        self._alive: IO[bytes] | None = None
        self._reports = False

    @classmethod
    def of_this_process(cls) -> Team | None:
        """Return the team that the environment describes; None where this process runs alone."""
        values = [os.environ.get(name, "") for name in _OWN]
        if _lock is None or not all(one.isdecimal() for one in values) or int(values[-1]) < 2:
            return None
        return cls(os.environ)

    def __enter__(self) -> Team:
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            if self.folder.is_symlink() or self.folder.stat().st_uid != os.getuid():
                raise TeamError(f"{self.folder} belongs to somebody else")
            # The lock lasts as long as this process, however that ends.
            self._alive = (self.folder / self._name).open("wb")
            _lock.flock(self._alive, _lock.LOCK_EX)
        except OSError as error:
            raise TeamError(f"{self.folder} cannot be used: {error.strerror}") from error
        return self

    def __exit__(self, *error: Any) -> None:
        if self._alive is not None:
            self._alive.close()
        if self._reports:
            shutil.rmtree(self.folder, ignore_errors=True)

    def is_last(self) -> bool:
        """True if no other rank's parent is still at work; called once, when the work is done."""
        until = time.monotonic() + _LATE_SECONDS
        while len(self._started()) < len(self.expected) and time.monotonic() < until:
            time.sleep(0.05)
        with (self.folder / "leaving").open("wb") as turn:
            _lock.flock(turn, _lock.LOCK_EX)  # One leaves after the other, so one is the last.
            self._reports = not any(
                _is_locked(one) for one in self._started() if one.name != self._name
            )
            if self._alive is not None and not self._reports:
                self._alive.close()
        return self._reports

    def _started(self) -> list[Path]:
        return list(self.folder.glob("*.alive"))


def _is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            _lock.flock(file, _lock.LOCK_EX | _lock.LOCK_NB)
        except BlockingIOError:
            return True
    return False
