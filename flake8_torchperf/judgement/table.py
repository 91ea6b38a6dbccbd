"""The table of reasons for which a wait is worth little: rows in order, the first decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.judgement import fate
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flake8_torchperf.judgement.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Row:
    """One reason: its cause, one sentence for users, and the test of the evidence."""

    cause: Cause
    sentence: str
    applies: Callable[[Evidence], bool]


# Reasons that a site runs once, or serves another reader.
PURPOSES = (
    Row(
        Cause.START_UP,
        "A copy to the device whose result is not used starts the device up.",
        fate.starts_up,
    ),
    Row(
        Cause.ERROR_TEXT,
        "Text that is made where an error is handled is read by a person after the error.",
        fate.is_error_text,
    ),
    Row(
        Cause.HANDED_OVER,
        "A copy that is passed to another library is for code that works on the host.",
        fate.is_handed_over,
    ),
    Row(
        Cause.OUTSIDE_STEPS,
        "A copy to the host in a loop around the steps is made once per epoch.",
        fate.is_outside_steps,
    ),
    Row(
        Cause.TEXT_MADE,
        "A function that is declared to return text needs the values on the host.",
        fate.makes_text,
    ),
    Row(
        Cause.FALLBACK,
        "A copy in the branch for devices that lack an operation is the way around that.",
        fate.is_fallback,
    ),
)
# Reasons that a wait is wanted, or takes place on the host.
WANTED = (
    Row(
        Cause.OPERATION,
        "The callers of a function that is named like the operation it returns ask for it.",
        fate.is_the_operation,
    ),
    Row(
        Cause.BESIDE_HOST,
        "An operation with a tensor that is surely on the host shows that the value is there too.",
        fate.is_beside_host,
    ),
    Row(
        Cause.LIST_MADE,
        "The host has to know the length of a list that is made of the value.",
        fate.is_made_a_list,
    ),
    Row(
        Cause.HOST_NAME,
        "The value lies on the host by its name, its use by numpy, or a move to the device below.",
        fate.lies_on_host,
    ),
    Row(
        Cause.EXCHANGED,
        "The processes of a group exchange the value, so each of them has to know it.",
        fate.is_exchanged,
    ),
    Row(
        Cause.EITHER,
        "The code takes numbers as well as tensors here, by a test or by a default.",
        fate.may_be_a_number,
    ),
    Row(
        Cause.ANSWER,
        "The callers of a function that returns a comparison ask for a Python bool.",
        fate.answers,
    ),
    Row(
        Cause.HOST_ONLY,
        "The operation fails with a tensor on a device, so the tensor is on the host.",
        fate.takes_host_tensors,
    ),
    Row(
        Cause.MEASURING,
        "A function that measures time or records a graph synchronises on purpose.",
        fate.measures,
    ),
)


def first_that_applies(rows: Sequence[Row], evidence: Evidence) -> Cause | None:
    """Return the cause of the first row that applies to a site; None if none does."""
    ignored = evidence.place.analysis.ignored
    causes = (row.cause for row in rows if row.cause not in ignored and row.applies(evidence))
    return next(causes, None)
