"""Lets the processes that a counted one starts be counted: two variables and a search path.

Knows nothing of torch: it runs in every process that is counted, before the workload.
"""

from __future__ import annotations

import os
from pathlib import Path

PLAN = "TORCHPERF_PLAN"
"""Names the plan of the first process of the run, in whose folder the recordings are left."""
STARTER = "TORCHPERF_STARTER"
"""The rank of a counted process whose program is the user's own; a launcher leaves it out."""
SITE = Path(__file__).with_name("site")
NO_RANK = "none"


def invite(plan: Path, is_own: bool) -> None:
    """Set the environment so that the processes that this one starts are counted.

    ``plan`` is that of this process; ``is_own`` says that it runs the user's own code. A script
    that it starts is then not a worker of the run unless it gets another rank.
    """
    if PLAN not in os.environ or Path(os.environ[PLAN]).parent != plan.parent:
        # The first process of this run, which may be part of another run itself.
        os.environ[PLAN] = str(plan)
        os.environ.pop(STARTER, None)
    search = os.environ.get("PYTHONPATH", "")
    if str(SITE) not in search.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(SITE), search)))
    if is_own:
        os.environ[STARTER] = rank_word()


def rank_word() -> str:
    """Return the rank that a launcher gave this process, as text."""
    return os.environ.get("RANK", NO_RANK)


def given_rank() -> int | None:
    """Return the rank that a launcher gave this process, if one did."""
    word = rank_word()
    return int(word) if word.isdecimal() else None


def is_worker() -> bool:
    """True if the script of this process is a worker of the run, and not a worker's helper."""
    return os.environ.get(STARTER) != rank_word()
