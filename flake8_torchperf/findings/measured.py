"""Applies a profile to the sites of a function: measured heat replaces inferred heat.

A profile outweighs all inference, but not what the user declares. A site is dropped if the device
showed that it does not wait.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.findings.documentation import evidence_of
from flake8_torchperf.findings.match import rule_for
from flake8_torchperf.judgement.heat import SAID, Level
from flake8_torchperf.judgement.judged_site import Judged
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.findings.catalogue import Catalogue
    from flake8_torchperf.findings.documentation import EvidenceSpec
    from flake8_torchperf.judgement.heat import Heat, Measured
    from flake8_torchperf.judgement.judged_site import JudgedSite

# Counters of evidence that always include a wait for the device. Copies to the device are not
# among them: a copy that does not wait is counted as well.
WAITING_COUNTS = frozenset(
    {"host_reads", "dynamic_shapes", "transfers", "synchronisations", "device_syncs"}
)


def as_measured(
    result: Judged, at: Callable[[int], Measured | None], catalogue: Catalogue
) -> Judged:
    """Return the result with measured heat; ``at`` returns the measurement of a line, if any."""
    sites: list[JudgedSite] = []
    for site in result.sites:
        told = at(getattr(site.node, "lineno", 0))
        if told is None or site.compiled or site.heat.cause in SAID:
            sites.append(site)  # no profile sees the lines of compiled code
            continue
        heat = _heat(site, told, catalogue)
        if heat is not None:
            sites.append(site if heat is site.heat else site.heated(heat))
    return replace(result, sites=tuple(sites))


def _heat(site: JudgedSite, told: Measured, catalogue: Catalogue) -> Heat | None:
    """Return the heat of a site in a statement that ran; None if the device did not wait for it."""
    heat = site.heat
    rule = rule_for(site.heated(heat.by(Cause.RAN_OFTEN, Level.LOOP, told)), catalogue, Level.COLD)
    spec = None if rule is None else evidence_of(rule)
    if spec is not None and spec.shows == "use":
        return heat
    if told.times <= told.runs:
        return heat.by(Cause.RAN_ONCE, Level.COLD, told)
    if _waits(spec, told):
        if not told.waits:
            return None if told.is_witnessed else heat.by(Cause.NEVER_WAITED, Level.COLD, told)
        if told.waits <= told.runs:
            return heat.by(Cause.RAN_ONCE, Level.COLD, told)
    # A run on the host shows how often such a statement runs, not that it costs anything.
    costs = not heat.costs_nothing and (spec is None or spec.needs != "cuda")
    if not costs and not told.is_witnessed:
        return heat
    return heat.by(Cause.RAN_OFTEN, Level.LOOP if site.loops else Level.STEP, told)


def _waits(spec: EvidenceSpec | None, told: Measured) -> bool:
    """True if the rule's evidence is a wait that the run could measure."""
    if spec is None or spec.counter not in WAITING_COUNTS:
        return False
    return told.is_witnessed or spec.needs != "cuda"
