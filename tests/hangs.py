"""Limits for programs that tests start: they end a hang, and never a slow machine."""

from __future__ import annotations

import resource

# Seconds by the clock. A machine with two cores and a load of fifteen gives a program a seventh of
# a core; what takes longest, a run that imports torch and compiles, needs a minute of a core.
HANG = 900.0
# Seconds of the processor, for what starts no process that others wait for.
MOST_PROCESSOR = 300


def limited_by_processor_time() -> None:
    """End a new process once it has used too much processor time; for ``preexec_fn``."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_PROCESSOR, MOST_PROCESSOR))
