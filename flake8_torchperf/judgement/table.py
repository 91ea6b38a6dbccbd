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

# Causes of sites that run once, and of waits that are wanted or whose value lies on the host.
WANTED = (
    (Cause.OUTSIDE_STEPS, fate.is_outside_steps),
    (Cause.BESIDE_HOST, residence.is_beside_host),
    (Cause.HOST_NAME, residence.lies_on_host),
    (Cause.HOST_ONLY, residence.takes_host_tensors),
    (Cause.MEASURING, explicit_waits.is_the_aim),
)


def all_that_apply(tests: Sequence[Test], evidence: Evidence) -> list[Cause]:
    """Return the causes of the rows that apply to a site; the first one decides."""
    ignored = evidence.place.analysis.ignored
    return [one for one, applies in tests if one not in ignored and applies(evidence)]
