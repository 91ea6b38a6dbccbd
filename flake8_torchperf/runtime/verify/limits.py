"""The choices on the command line of ``fix --verify``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """The user's choices: seconds and MiB for each fix, the tensors' device, and which to write.

    ``required`` leaves unverified fixes unwritten. ``folder`` is where the children work. ``given``
    are parameters by hand, as pairs of name and source, ``harness`` a file that defines
    ``inputs(n)``, ``kept`` the folder of the calls that a run has kept.
    """

    timeout: float
    memory: int
    device: str
    required: bool
    folder: str
    given: tuple[tuple[str, str], ...] = ()
    harness: Path | None = None
    kept: Path | None = None
