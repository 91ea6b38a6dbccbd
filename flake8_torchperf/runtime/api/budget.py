"""dispatch_budget: a test's limit on the dispatches, reads and copies of a block or function.

Exceeding a budget raises an AssertionError that names the lines that spent most.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import torch

from flake8_torchperf.runtime.api.free_lines import allowed_lines
from flake8_torchperf.runtime.counting.counter import DispatchCounter, Level
from flake8_torchperf.runtime.counting.counts import (
    INFERRED_WAITS,
    REPORTED_WAITS,
    LineEvidence,
    Observation,
    counted,
)
from flake8_torchperf.runtime.counting.user_frames import Owner

P = ParamSpec("P")
R = TypeVar("R")

_SHOWN = 20


@dataclass(frozen=True)
class Overspent:
    """One limit that was exceeded: the limit, what was spent, and the lines that spent it.

    ``counter`` is a field of `Counts` or "waits"; ``op`` is the one operation that is limited, ""
    for all.
    """

    counter: str
    op: str
    limit: int
    spent: int
    lines: tuple[tuple[LineEvidence, int], ...]

    @property
    def headline(self) -> str:
        """The amount spent and the amount allowed: "2 host reads, 1 allowed"."""
        of = f" of {self.op}" if self.op else ""
        return f"{counted(self.spent, self.counter)}{of}, {self.limit:,} allowed"

    def __str__(self) -> str:
        shown = [f"{self.headline}:"]
        for line, times in self.lines[:_SHOWN]:
            place = f"{line.path}:{line.line}" if line.line else line.path
            shown.append(f"  {place}: {times} in {line.function or 'no function of yours'}")
        if len(self.lines) > _SHOWN:
            more = len(self.lines) - _SHOWN
            shown.append(f"  and {more} more line{'s' * (more > 1)}")
        return "\n".join(shown)


class BudgetExceeded(AssertionError):
    """A block spent more than its budget; `overspent` holds the limits, `evidence` all counts."""

    def __init__(self, overspent: tuple[Overspent, ...], evidence: Observation) -> None:
        super().__init__("\n".join(str(one) for one in overspent))
        self.overspent = overspent
        self.evidence = evidence

    @property
    def headline(self) -> str:
        """The headlines of all limits in one line."""
        return "; ".join(one.headline for one in self.overspent)


# The name that users import, in front of every message.
BudgetExceeded.__module__ = "flake8_torchperf.runtime"


class dispatch_budget:
    """Limit the dispatches, host reads and transfers of a block, or of each call of a function.

        with dispatch_budget(max_waits=0, ops={"aten::isinf": 4}):
            scaler.step(optimizer)

        @dispatch_budget(max_dispatches=100)
        def test_step(): ...

    Limits are numbers of events in the whole block; None means no limit. Waits are what CUDA
    reports, or else what is inferred from the calls: host reads, explicit synchronisations, and
    sizes that depend on data. ops maps operation names
    (`aten::isinf`, or `isinf` for short) to the dispatches allowed. owner and host_as_device are
    those of `DispatchCounter`: by default all files count except torch's and the standard
    library's, and on a machine without an accelerator the host stands in for one.

    Lines with `# noqa` or `# noqa: TPF...` have no limit, nor have regions of `allow_sync`; the
    evidence lists what these allowed. An exception that the block raises is
    passed on unchanged, even if a limit was exceeded.

    After the block `evidence` holds the counts. Raises BudgetExceeded (an AssertionError) at the
    end of the block, ValueError for a negative limit or an operation that torch does not have.
    """

    def __init__(
        self,
        max_dispatches: int | None = None,
        max_host_reads: int | None = None,
        max_transfers: int | None = None,
        ops: Mapping[str, int] | None = None,
        *,
        max_waits: int | None = None,
        max_graph_breaks: int | None = None,
        owner: Owner = None,
        host_as_device: bool | None = None,
    ) -> None:
        __tracebackhide__ = True
        limits = {
            "dispatches": max_dispatches,
            "host_reads": max_host_reads,
            "transfers": max_transfers,
            "waits": max_waits,
            "graph_breaks": max_graph_breaks,
        }
        self.limits = {name: limit for name, limit in limits.items() if limit is not None}
        self.ops = {_known(_full_name(name)): limit for name, limit in (ops or {}).items()}
        for name, limit in {**self.limits, **self.ops}.items():
            if limit < 0:
                raise ValueError(f"the budget for {name} is {limit}: it cannot be negative")
        # Sizes that depend on data are counted only at the level that counts dispatches.
        shapes = max_waits is not None and not torch.cuda.is_available()
        level: Level = "full" if self.ops or max_dispatches is not None or shapes else "reads"
        self._new_counter = functools.partial(
            DispatchCounter, level, owner=owner, host_as_device=host_as_device
        )
        self._counters: list[DispatchCounter] = []
        self.evidence: Observation | None = None

    def counting(self) -> DispatchCounter:
        """Return a new counter of the level that these limits need, to be checked with `check`."""
        return self._new_counter()

    def __enter__(self) -> DispatchCounter:
        counter = self.counting()
        counter.__enter__()
        self._counters.append(counter)
        return counter

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        __tracebackhide__ = True
        counter = self._counters.pop()
        counter.__exit__(kind, error, traceback)
        self.evidence = counter.evidence
        if error is None:
            self.check(self.evidence)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call has the whole budget."""

        @functools.wraps(function)
        def limited(*args: P.args, **kwargs: P.kwargs) -> R:
            __tracebackhide__ = True
            with self:
                return function(*args, **kwargs)

        return limited

    def check(self, evidence: Observation) -> None:
        """Raise BudgetExceeded if this evidence is over a limit."""
        __tracebackhide__ = True  # pytest shows the test, not us
        spenders = [one for one in evidence.lines if one.line not in allowed_lines(one.path)]
        found = [
            _overspent(name, "", limit, spenders, functools.partial(_counter, name))
            for name, limit in self.limits.items()
        ] + [
            _overspent("dispatches", name, limit, spenders, functools.partial(_op, name))
            for name, limit in self.ops.items()
        ]
        breaks, limit = evidence.totals.graph_breaks, self.limits.get("graph_breaks")
        if limit is not None and breaks > limit:  # torch counts them for the process, by no line
            found.append(Overspent("graph_breaks", "", limit, breaks, ()))
        overspent = tuple(one for one in found if one is not None)
        if overspent:
            raise BudgetExceeded(overspent, evidence)


def _full_name(op: str) -> str:
    return op if "::" in op else f"aten::{op}"


def _known(op: str) -> str:
    """Return the name of an operation. Raises ValueError where torch's own has no such one.

    Other libraries may still register theirs.
    """
    if not op.startswith("aten::") or op in (names := _aten()):
        return op
    near = difflib.get_close_matches(op, names, 1)
    raise ValueError(f"there is no operation {op}" + (f": did you mean {near[0]}?" if near else ""))


@functools.lru_cache(maxsize=1)
def _aten() -> frozenset[str]:
    names: Any = torch._C._dispatch_get_all_op_names()
    return frozenset(one.partition(".")[0] for one in names if one.startswith("aten::"))


def _counter(name: str, line: LineEvidence) -> int:
    if name == "waits":
        names = REPORTED_WAITS if torch.cuda.is_available() else INFERRED_WAITS
        return sum(_counter(one, line) for one in names)
    return int(getattr(line.counts, name))


def _op(name: str, line: LineEvidence) -> int:
    return line.ops.get(name, 0)


def _overspent(
    counter: str,
    op: str,
    limit: int,
    lines: list[LineEvidence],
    spent_by: Callable[[LineEvidence], Any],
) -> Overspent | None:
    spending = [(line, spent_by(line)) for line in lines if spent_by(line)]
    spent = sum(times for _, times in spending)
    if spent <= limit:
        return None
    spending.sort(key=lambda pair: -pair[1])
    return Overspent(counter, op, limit, spent, tuple(spending))
