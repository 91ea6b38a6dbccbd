"""The frequency of a place: levels, the causes behind them, and the heat that joins both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.judgement.row import FREE
from flake8_torchperf.judgement.rows import ROWS
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    import ast


class Level(IntEnum):
    """The frequency of a place as far as the source text shows it, in ascending order.

    A HOT place is only known to compute on tensors that its function is given; hot code may call
    the function once or in each step. A STEP place is known to run in each step. A LOOP place
    stands in a loop.
    """

    COLD = 0
    HOT = 1
    STEP = 2
    LOOP = 3


class Cost(str, Enum):
    """The unit in which the cost of a finding is counted, in the words of the messages."""

    ELEMENT = "per element"
    STEP = "per step"
    REQUEST = "per request"
    EPOCH = "per epoch"
    CALL = "per call"


# Causes that the user states; nothing outweighs them.
SAID = frozenset((Cause.NAMED_HOT, Cause.NAMED_COLD, Cause.CONTRACT))
# Causes that say that a place does not wait, or that it has to wait.
FREE_CAUSES = frozenset(row.cause for row in ROWS if row.effect == FREE)


@dataclass(frozen=True, slots=True)
class Measured:
    """A profile's measurements of one statement, summed over ``runs`` processes.

    The statement ran ``times`` times and waited ``waits`` times. ``seconds`` is how long the host
    waited if the device itself reported the waits; None if they are inferred from the calls.
    """

    times: int
    waits: int
    runs: int = 1
    seconds: float | None = None

    @property
    def is_witnessed(self) -> bool:
        """True if the device itself reported the waits."""
        return self.seconds is not None

    @property
    def cost(self) -> tuple[float, int, int]:
        """The key by which statements are compared; a greater key costs more."""
        return (self.seconds or 0.0, self.waits, self.times)


class Call(NamedTuple):
    """A call that leads to a function: the caller ("" at module level), its file and line."""

    caller: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Heat:
    """A level and the evidence for it.

    ``name`` is the function's name, or the id of the row if the cause is a convention. ``calls``
    begins with the call that makes a function hot and leads to the loop or the step behind it, as
    far as its module shows; or it is the call for which a site waits, if other calls of the
    function pass host values. For a contract, ``name`` is the
    path from the code that must not wait. ``node`` is the loop that repeats
    the place. ``loops`` is False for a function whose loops make nothing in it hotter, except loops
    that its own text shows to run over elements or steps. ``around`` is the level of the function
    around a loop; for a function, it is the least level of the code around its loops. ``own_text``
    is True if the code itself shows what a loop's rounds are: elements, steps or calls of a model,
    and ``once_a_step`` if the innermost loop's are one of the last two.
    ``why`` is the cause for which an otherwise hot place is reported only in scope "all".
    ``runs`` is how often the place runs if ``cause`` only says that its wait does not matter.
    ``rate`` says how often the place runs in words of its own, "" if those of ``cost`` do.
    ``beside`` is the call that makes a function run at that rate, beside the steps.
    ``measured`` holds a profile's measurements, if there are any.
    """

    level: Level
    cause: Cause
    name: str = ""
    node: ast.AST | None = None
    loops: bool = True
    around: Level = Level.COLD
    why: Cause | None = None
    runs: Heat | None = None
    cost: Cost = Cost.CALL
    rate: str = ""
    beside: Call | None = None
    own_text: bool = False
    once_a_step: bool = False
    measured: Measured | None = None
    calls: tuple[Call, ...] = ()

    def costing(self, cost: Cost, rate: str = "") -> Heat:
        """Return this heat with another cost, and with words for it."""
        same = cost is self.cost and rate == self.rate
        return self if same else replace(self, cost=cost, rate=rate)

    @property
    def often(self) -> str:
        """The rate at which the place runs: "per step", "per scene", "at the end"."""
        return self.rate or self.cost.value

    def cooled(self, why: Cause) -> Heat:
        """Return this heat made cold, for scope "all" only; the loop that it names stays."""
        return replace(self, level=Level.COLD, why=why)

    def by(self, cause: Cause, level: Level, measured: Measured) -> Heat:
        """Return this heat with the level that a profile measured; the loop that it names stays."""
        return replace(self, level=level, cause=cause, why=None, runs=None, measured=measured)

    @property
    def told_cost(self) -> Cost:
        """The cost as reports tell it, which a rate in words of its own may show better."""
        if self.rate == Cost.REQUEST.value:
            return Cost.REQUEST
        in_rounds = self.beside is not None and self.rate.startswith("per ")
        return Cost.EPOCH if in_rounds else self.cost

    @property
    def named(self) -> tuple[Call, ...]:
        """The calls that a message about the place may name."""
        return self.calls if self.beside is None else (*self.calls, self.beside)

    @property
    def caller(self) -> str:
        """The name of the function that makes the call; "" at module level or without a call."""
        return self.calls[0].caller.rpartition(".")[2] if self.calls else ""

    @property
    def line(self) -> int:
        """The line of the call that makes a function hot; 0 without one."""
        return self.calls[0].line if self.calls else 0

    @property
    def frequency(self) -> Heat:
        """The heat that tells how often the place runs, whether its wait matters or not."""
        return self if self.runs is None else self.runs

    @property
    def costs_nothing(self) -> bool:
        """True if the place is cold because it does not wait or has to wait, at any frequency."""
        return self.level is Level.COLD and self.hidden_by in FREE_CAUSES

    @property
    def hidden_by(self) -> Cause:
        """The cause for which a cold place is reported only in scope "all"."""
        return self.cause if self.why is None else self.why
