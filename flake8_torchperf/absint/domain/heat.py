"""How often a place runs, and what says so: levels, causes and the heat that joins them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ast


class Level(IntEnum):
    """How often a place runs, as far as source text shows; ordered, colder first.

    HOT is what is only known to compute on the tensors it is given: such helpers are called from
    hot code, once or in each step. STEP is known to run in each step, LOOP stands in a loop.
    """

    COLD = 0
    HOT = 1
    STEP = 2
    LOOP = 3


class Cost(str, Enum):
    """How often a finding is paid for; every message says it in these words."""

    ELEMENT = "per element"
    STEP = "per step"
    CALL = "per call"


class Cause(Enum):
    """What says how often a place runs, in the order in which they are asked."""

    # What the user says.
    NAMED_HOT = auto()
    NAMED_COLD = auto()
    CONTRACT = auto()
    # What a profile measured.
    RAN_OFTEN = auto()
    RAN_ONCE = auto()
    NEVER_WAITED = auto()
    # The function's own text.
    ELEMENTS = auto()
    LOOP = auto()
    TRAINING_STEP = auto()
    COMPILED = auto()
    OUTSIDE_STEPS = auto()
    # Calls that are seen.
    CALLED = auto()
    CALLED_IN_LOOP = auto()
    SET_UP_CALLS = auto()
    BEFORE_STEPS = auto()
    SELDOM_CALLS = auto()
    UNUSED = auto()
    # Roots by protocol and owner.
    STEP_ROOT = auto()
    SET_UP_ROOT = auto()
    TEST = auto()
    DATA_WORKER = auto()
    CONVERSION = auto()
    REGISTERED = auto()
    RESULT_KEPT = auto()
    # Branches.
    ERROR = auto()
    WARNING = auto()
    SOME_STEPS = auto()
    ONE_ROUND = auto()
    FIRST_CALL = auto()
    MADE_ONCE = auto()
    TRACING = auto()
    NO_DEVICE = auto()
    FALLBACK = auto()
    NOTHING_TO_DO = auto()
    SWITCHED_OFF = auto()
    NEVER_LEFT_OUT = auto()
    # A row of the table of conventions.
    CONVENTION = auto()
    # What else the function shows.
    GIVEN_TENSORS = auto()
    MODULE_LEVEL = auto()
    NOTHING = auto()
    # The place runs as often as any; the wait there is wanted, or costs nothing.
    ANSWER = auto()
    AT_ONCE = auto()
    BESIDE_HOST = auto()
    COPY_ASKED = auto()
    DECLARED = auto()
    EITHER = auto()
    ERROR_TEXT = auto()
    EXCHANGED = auto()
    HANDED_OVER = auto()
    HOST_NAME = auto()
    HOST_ONLY = auto()
    LIST_MADE = auto()
    MEASURING = auto()
    NEW_DATA = auto()
    OPERATION = auto()
    START_UP = auto()
    TEXT_MADE = auto()
    WAITED_FOR = auto()


# What a person says, which nothing outweighs.
SAID = frozenset((Cause.NAMED_HOT, Cause.NAMED_COLD, Cause.CONTRACT))
# What says of a place that it does not wait: its value is on the host or has been waited for, the
# branch is one for machines without a device; or that it must, as it moves new data or measures. A
# run without a device can't show that wrong.
FREE = frozenset((
    Cause.NO_DEVICE, Cause.FALLBACK, Cause.AT_ONCE, Cause.BESIDE_HOST, Cause.EITHER,
    Cause.EXCHANGED, Cause.HANDED_OVER, Cause.HOST_NAME, Cause.HOST_ONLY, Cause.MEASURING,
    Cause.NEW_DATA, Cause.WAITED_FOR,
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """What a profile tells of one statement, summed over ``runs`` processes.

    It ran ``times`` times and waited ``waits`` times; ``seconds`` is how long the host waited where
    the device itself told of the waits, and None where they are inferred from the calls.
    """

    times: int
    waits: int
    runs: int = 1
    seconds: float | None = None

    @property
    def is_witnessed(self) -> bool:
        """Did the device itself tell of the waits?"""
        return self.seconds is not None

    @property
    def cost(self) -> tuple[float, int, int]:
        """What statements are compared by: the more, the dearer."""
        return (self.seconds or 0.0, self.waits, self.times)


class Call(NamedTuple):
    """A call that leads to a function: who makes it ("" at module level), its file and line."""

    caller: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Heat:
    """A level and what says so.

    ``name`` is the function's name, or the id of the row where the cause is a convention;
    ``caller`` and ``line`` tell the call that makes a function hot; ``calls`` begins with it and
    leads to the loop or the step behind it, as far as its module shows. ``node`` is the loop that
    repeats the place. ``loops`` is False for the heat of a function whose loops make nothing in it
    hotter, but for those that its own text shows to be over elements or steps. ``around`` is, in a
    loop, the level of the function that holds it; of a function, how hot what its loops stand in is
    at least. ``own_text`` says of a loop that the code itself shows what its rounds are: elements,
    steps, calls of a model. ``why`` says what leaves a place that is hot by itself to scope "all".
    ``measured`` is what a profile tells, where one does.
    """

    level: Level
    cause: Cause
    name: str = ""
    caller: str = ""
    line: int = 0
    node: ast.AST | None = None
    loops: bool = True
    around: Level = Level.COLD
    why: Cause | None = None
    cost: Cost = Cost.CALL
    own_text: bool = False
    measured: Measured | None = None
    calls: tuple[Call, ...] = ()

    def costing(self, cost: Cost) -> Heat:
        """The same heat, paid for as often as ``cost`` says."""
        return self if cost is self.cost else replace(self, cost=cost)

    def cooled(self, why: Cause) -> Heat:
        """The same, told in scope "all" alone; what repeats it stays told."""
        return replace(self, level=Level.COLD, why=why)

    def by(self, cause: Cause, level: Level, measured: Measured) -> Heat:
        """The heat that a profile tells instead; what repeats it stays told."""
        return replace(self, level=level, cause=cause, why=None, measured=measured)

    @property
    def costs_nothing(self) -> bool:
        """Is it cold since it is believed not to wait, however often it runs?"""
        return self.level is Level.COLD and self.hidden_by in FREE

    @property
    def hidden_by(self) -> Cause:
        """What leaves a cold place to scope "all"."""
        return self.cause if self.why is None else self.why
