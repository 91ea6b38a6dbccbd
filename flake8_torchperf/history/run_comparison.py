"""Compares what statements cost in two sets of recorded runs.

Statements are matched by function and text, as those of profiles are, so moved and reformatted ones
stay the same; one whose text was edited is gone, and another is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from flake8_torchperf.history.run_record import (
    COSTS,
    RunRecord,
    RunRecordError,
    StatementCost,
    StatementKey,
)

NO_COSTS: Mapping[str, float] = dict.fromkeys(COSTS, 0)
COPIES = ("waiting_transfers", "non_blocking_transfers", "seeming_transfers")
GONE, NEW, FEWER, MORE = "gone", "new", "fewer", "more"

Costs: TypeAlias = "Mapping[str, float]"


@dataclass(frozen=True)
class CostChange:
    """The costs of a statement before and after, by the names in `COSTS`, per ``Comparison.unit``.

    The line and the text are those after, if the statement cost anything then.
    """

    path: str
    function: str
    line: int
    text: str
    before: Costs
    after: Costs

    def of(self, cost: str) -> str:
        """Return how a cost changed: "gone", "new", "fewer" or "more"; "" if it did not."""
        before, after = self.before[cost], self.after[cost]
        if before == after:
            return ""
        if not after:
            return GONE
        if not before:
            return NEW
        return FEWER if after < before else MORE

    @property
    def copies(self) -> bool:
        """True if copies changed between those that wait, those that do not, and none."""
        return any(self.of(one) for one in COPIES)


@dataclass(frozen=True)
class Comparison:
    """Two sets of runs. ``unit`` is what numbers are for: "step", "run" or, for one run each, "".

    ``before`` and ``after`` are the sums over all statements, and ``is_whole`` is True if no run
    was cut short.
    """

    unit: str
    notes: tuple[str, ...]
    changes: tuple[CostChange, ...]
    before: Costs
    after: Costs
    is_whole: bool = True

    def by(self, cost: str) -> Mapping[str, tuple[CostChange, ...]]:
        """Return the statements of which a cost changed, by how, the greatest change first."""
        found: dict[str, list[CostChange]] = {}
        for one in self.changes:
            if how := one.of(cost):
                found.setdefault(how, []).append(one)
        return {
            how: tuple(sorted(found[how], key=lambda one: -abs(one.after[cost] - one.before[cost])))
            for how in (GONE, FEWER, NEW, MORE)
            if how in found
        }


def compared(before: Sequence[RunRecord], after: Sequence[RunRecord]) -> Comparison:
    """Return the comparison of some runs with others.

    Raises `RunRecordError` where their numbers do not mean the same.
    """
    _refuse(before, after)
    runs = (*before, *after)
    unit = "run" if len(runs) > 2 else ""
    if all(one.has_steps for one in runs):
        unit = "step"
    old, new = _summed(before, unit), _summed(after, unit)
    changes = tuple(
        CostChange(key[0], key[1], shown.line, shown.text, costs_before, costs_after)
        for key in sorted(old.keys() | new.keys())
        for shown, costs_before, costs_after in [_pair(old.get(key), new.get(key))]
    )
    spent, spent_after = (
        {cost: sum(one[cost] for one in side) for cost in COSTS}
        for side in ([one.before for one in changes], [one.after for one in changes])
    )
    ordered = tuple(sorted(changes, key=lambda one: (one.path, one.line)))
    whole = not any(one.is_cut_short for one in runs)
    notes = tuple(_notes(before, after, unit))
    return Comparison(unit, notes, ordered, spent, spent_after, is_whole=whole)


_Side: TypeAlias = "dict[StatementKey, tuple[StatementCost, Costs]]"


def _pair(
    old: tuple[StatementCost, Costs] | None, new: tuple[StatementCost, Costs] | None
) -> tuple[StatementCost, Costs, Costs]:
    shown = new or old
    assert shown is not None
    return shown[0], old[1] if old else NO_COSTS, new[1] if new else NO_COSTS


def _summed(runs: Sequence[RunRecord], unit: str) -> _Side:
    """Return the costs of each statement in the mean run, or per step after the warm-up."""
    sums: dict[StatementKey, tuple[StatementCost, dict[str, float]]] = {}
    steps = sum(run.steps or 0 for run in runs)
    parts = steps if unit == "step" else len(runs)
    for run in runs:
        for cost in run.costs:
            _, costs = sums.setdefault(cost.key, (cost, dict(NO_COSTS)))
            told = cost.counted if unit == "step" else cost.whole
            for name, times in (told or {}).items():
                costs[name] += times
    return {
        key: (cost, {name: times / parts for name, times in costs.items()})
        for key, (cost, costs) in sums.items()
    }


def _refuse(before: Sequence[RunRecord], after: Sequence[RunRecord]) -> None:
    """Raise where a comparison would mean nothing."""
    for name, why in (
        ("device", "waits that a device reports are others than those inferred from calls"),
        ("level", "the level reads counts less"),
    ):
        first, *others = (*before, *after)
        for other in others:
            if (one := getattr(first, name)) != (two := getattr(other, name)):
                raise RunRecordError(
                    f"{first.path} has the {name} {one}, {other.path} the {name} {two}: {why}; "
                    "run both alike"
                )
    files = [frozenset[str]().union(*(one.files for one in side)) for side in (before, after)]
    if all(files) and files[0].isdisjoint(files[1]):
        raise RunRecordError(
            f"no file of {before[0].path} is in {after[0].path}: run both from the same folder"
        )


def _notes(before: Sequence[RunRecord], after: Sequence[RunRecord], unit: str) -> Iterator[str]:
    runs = (*before, *after)
    yield from _differ("torch", before, after, lambda one: one.torch)
    yield from _differ("the command", before, after, lambda one: " ".join(one.command))
    yield from _differ("the number of ranks", before, after, lambda one: str(one.processes))
    if unit == "step":
        yield from _differ("the warm-up", before, after, lambda one: f"{one.warmup} steps")
    elif any(one.has_steps for one in runs):
        without = ", ".join(str(one.path) for one in runs if not one.has_steps)
        yield f"{without}: no steps were counted, so the numbers are for whole runs"
    for one in runs:
        if one.is_cut_short:
            yield f"{one.path}: the program was cut short ({one.ended})"


def _differ(
    what: str,
    before: Iterable[RunRecord],
    after: Iterable[RunRecord],
    tell: Callable[[RunRecord], str],
) -> Iterator[str]:
    old, new = (", ".join(dict.fromkeys(tell(one) for one in side)) for side in (before, after))
    if old != new:
        yield f"{what} differs: {old} before, {new} after"
