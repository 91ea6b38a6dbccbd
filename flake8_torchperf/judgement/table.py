"""The rows that are tested on each site, in order; the first that applies decides.

`rows.py` says what each row means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.judgement import explicit_waits, fate, residence
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flake8_torchperf.judgement.evidence import Evidence


Test: TypeAlias = "tuple[Cause, Callable[[Evidence], bool]]"

# Causes of sites that run once, or whose value is for a person or another library.
PURPOSES = (
    (Cause.START_UP, fate.starts_up),
    (Cause.ERROR_TEXT, fate.is_error_text),
    (Cause.HANDED_OVER, fate.is_handed_over),
    (Cause.OUTSIDE_STEPS, fate.is_outside_steps),
    (Cause.TEXT_MADE, fate.makes_text),
    (Cause.FALLBACK, fate.is_fallback),
)
# Causes of waits that are wanted, or whose value lies on the host.
WANTED = (
    (Cause.OPERATION, fate.is_the_operation),
    (Cause.BESIDE_HOST, residence.is_beside_host),
    (Cause.LIST_MADE, fate.is_made_a_list),
    (Cause.HOST_NAME, residence.lies_on_host),
    (Cause.EXCHANGED, fate.is_exchanged),
    (Cause.EITHER, fate.may_be_a_number),
    (Cause.ANSWER, fate.answers),
    (Cause.HOST_ONLY, residence.takes_host_tensors),
    (Cause.DRIVER, residence.in_driver),
    (Cause.HOST_PROGRAM, residence.in_host_program),
    (Cause.MEASURING, explicit_waits.is_the_aim),
)


def all_that_apply(tests: Sequence[Test], evidence: Evidence) -> list[Cause]:
    """Return the causes of the rows that apply to a site; the first one decides."""
    ignored = evidence.place.analysis.ignored
    return [one for one, applies in tests if one not in ignored and applies(evidence)]
