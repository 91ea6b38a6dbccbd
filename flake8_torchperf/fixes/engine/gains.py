"""Selects the edits that leave less to report, by comparing the findings before and after."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.heat import Cost

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flake8_torchperf.findings.model import Edit, Finding

# A finding per element is worse than one per step, which is worse than one per call.
_WEIGHTS = {Cost.ELEMENT: 100, Cost.STEP: 10, Cost.CALL: 1}


def gaining(
    text: str,
    offered: Sequence[tuple[Finding, Edit]],
    find: Callable[[str], Sequence[Finding]],
    apply: Callable[[Sequence[Edit]], str],
) -> Sequence[tuple[Finding, Edit]]:
    """Return the edits of a text that reduce the findings in the function of their own finding.

    No function may have more findings than before. All edits are tried together first; if that is
    not a gain, each is tried alone.
    """
    before = _burden(find(text))

    def gains(some: Sequence[tuple[Finding, Edit]]) -> bool:
        after = _burden(find(apply([edit for _, edit in some])))
        functions = {finding.site.function for finding, _ in some}
        return after <= before and all(after[name] < before[name] for name in functions)

    if gains(offered):
        return offered
    return [] if len(offered) == 1 else [one for one in offered if gains([one])]


def _burden(found: Sequence[Finding]) -> Counter[str]:
    """Return the weighted number of findings in each function; one in a loop weighs more."""
    burden: Counter[str] = Counter()
    for one in found:
        burden[one.site.function] += _WEIGHTS[one.site.heat.cost] + len(one.site.loops)
    return burden
