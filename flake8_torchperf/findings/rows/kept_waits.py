"""Waits that stand straight behind one that nobody is told to take out.

Such a wait costs a round trip of some 20 us (H200, see `judgement/worth/queue.py`): the one before
it has already waited for the device, and stays. Once that one is gone, this one is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.judgement.worth.features import (
    BEHIND_CALLER,
    ONCE_A_STEP,
    OUTRIGHT,
    features,
)
from flake8_torchperf.judgement.worth.queue import ON_SOME_PATH

if TYPE_CHECKING:
    from collections.abc import Collection

    from flake8_torchperf.findings.match import Raw


def without_idle(told: list[list[Raw]], doubted: Collection[int]) -> list[list[Raw]]:
    """Return the rows of findings without those behind a wait that none of them tells.

    ``doubted`` holds the nodes, by identity, that may not wait at all, so that nothing stands
    behind them. A row that is left out leads no other one.
    """
    known = {id(raw.site.node) for row in told for raw in row}.union(doubted)
    while True:
        kept: list[list[Raw]] = []
        for row in told:  # leaders before their followers, but for those of an earlier round
            if _is_idle(row, known):
                known.difference_update(id(raw.site.node) for raw in row)
            else:
                kept.append(row)
        if len(kept) == len(told):
            return kept
        told = kept


def _is_idle(row: list[Raw], known: Collection[int]) -> bool:
    """True if all waits of a row that follow on none of the row stand behind one that stays.

    Those in ``known``, nodes by identity, don't stay.
    """
    own = {id(raw.site.node) for raw in row}
    heads = [raw for raw in row if id(raw.site.leader) not in own]
    return bool(heads) and all(_is_behind_kept(raw, known) for raw in heads)


def _is_behind_kept(raw: Raw, known: Collection[int]) -> bool:
    """True if a wait stands behind one that stays, on whatever path.

    Not if its loop repeats its call in a step.
    """
    evidence = features(raw.site, raw.rule.code)
    repeated = bool(raw.site.loops) and ONCE_A_STEP not in evidence
    if repeated or not evidence.isdisjoint((ON_SOME_PATH, *OUTRIGHT)):
        return False
    if raw.site.leader is None:
        return BEHIND_CALLER in evidence
    return id(raw.site.leader) not in known
