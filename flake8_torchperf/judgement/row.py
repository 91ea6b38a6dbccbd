"""A row of the table of causes: what it answers, what it does, and the words for it."""

from __future__ import annotations

from typing import NamedTuple

from flake8_torchperf.values.cause import Cause

# The questions that rows answer: where the tensor lies, how often the place runs, and if the wait
# is wanted.
RESIDENCE, FREQUENCY, FATE = "residence", "frequency", "fate"
# The effects of rows. A `COLD` or `FREE` row makes a site reported only in scope "all". `FREE` also
# says that the place does not wait, or that it has to; a run without a device can't disprove that.
HOT, COLD, FREE = "hot", "cold", "free"

# The words for a loop, in messages of every kind.
LOOP_AT = "loop at line {line}"


class Row(NamedTuple):
    """One row: its cause, the question that it answers, what it does, and why.

    ``words`` stand in messages: ``{name}`` is the function, the caller or the row of the table of
    conventions. ``sentence`` is for people who ask why.
    """

    cause: Cause
    question: str
    effect: str
    words: str
    sentence: str

    @property
    def id(self) -> str:
        """The name of the row in output and documents."""
        return row_id(self.cause)


def row_id(cause: Cause) -> str:
    """Return the name of a cause's row: ``given-tensors``."""
    return cause.name.lower().replace("_", "-")
