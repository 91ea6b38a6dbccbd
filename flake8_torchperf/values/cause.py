"""The evidence for how often a place runs, and for whether a wait there is wanted."""

from __future__ import annotations

from enum import Enum, auto


class Cause(Enum):
    """The kinds of evidence for how often a place runs, in the order of their precedence."""

    # The user's settings and contracts.
    NAMED_HOT = auto()
    NAMED_COLD = auto()
    CONTRACT = auto()
    # Measurements of a profile.
    RAN_OFTEN = auto()
    RAN_ONCE = auto()
    NEVER_WAITED = auto()
    # The function's own text.
    ELEMENTS = auto()
    LOOP = auto()
    TRAINING_STEP = auto()
    COMPILED = auto()
    OUTSIDE_STEPS = auto()
    # Calls that lead to the function.
    CALLED = auto()
    CALLED_IN_LOOP = auto()
    FEEDS_STEPS = auto()
    SET_UP_CALLS = auto()
    BEFORE_STEPS = auto()
    SELDOM_CALLS = auto()
    EVALUATION = auto()
    UNREACHED = auto()
    NEVER_MADE = auto()
    NEVER_RUN = auto()
    # Roots by protocol and owner.
    STEP_ROOT = auto()
    SET_UP_ROOT = auto()
    TEST = auto()
    DATA_WORKER = auto()
    CONVERSION = auto()
    PICKLING = auto()
    REGISTERED = auto()
    RESULT_KEPT = auto()
    # Branches.
    ERROR = auto()
    SOME_STEPS = auto()
    FIRST_CALL = auto()
    MADE_ONCE = auto()
    TRACING = auto()
    NO_DEVICE = auto()
    NOTHING_TO_DO = auto()
    SWITCHED_OFF = auto()
    NEVER_LEFT_OUT = auto()
    # A row of the table of conventions.
    CONVENTION = auto()
    # Other evidence in the function.
    GIVEN_TENSORS = auto()
    MODULE_LEVEL = auto()
    NOTHING = auto()
    AT_ONCE = auto()
    BESIDE_HOST = auto()
    COPY_ASKED = auto()
    HOST_CALLERS = auto()
    HOST_NAME = auto()
    HOST_ONLY = auto()
    MEASURING = auto()
