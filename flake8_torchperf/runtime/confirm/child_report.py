"""The report of a sandboxed child on a job, as `confirm` and `verify` share it: plain data.

The child says with `failed` which stage of a job did not work. The parent trusts nothing in a
report: `number` and `MALFORMED` tell it what is missing or malformed.
"""

from __future__ import annotations

from typing import Any

# The stages that may fail, in words.
STAGES = {
    "import": "import failed",
    "inputs": "inputs could not be made",
    "memory": "it ran out of memory",
    "cuda": "CUDA did not start",
}
# True in a report on a job that has imported torch's tracer, as making an optimizer does. That
# takes longer than most jobs, so that it is imported once for all that follow.
TRACES = "traces"
TRACER = "torch._dynamo"


class MalformedReportError(Exception):
    """The report is not of the form that the child writes."""


# The errors that reading a malformed report raises.
MALFORMED = (
    MalformedReportError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError,
)  # fmt: skip


def failed(stage: str, reason: str) -> dict[str, Any]:
    """Return the report of a job that failed in a stage."""
    return {"failed": stage, "reason": reason}


def number(value: object) -> int:
    """Return a count of the report. Raises MalformedReportError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise MalformedReportError(f"{value!r} is not a count")
    return value
