"""The evidence about a finding as named features, each of which applies to it or doesn't."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.judgement.heat import Cost, Level
from flake8_torchperf.judgement.row import row_id
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.devices import BESIDE_HOST
from flake8_torchperf.values.provenance import Strength
from flake8_torchperf.values.site import LAUNCHING_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from flake8_torchperf.judgement.judged_site import JudgedSite

# Evidence that the review of a function's callers adds, and that of the place in its function.
CALLERS_OPEN = "callers:open"
CALLERS_KNOWN = "callers:known"
CALLERS_ELSEWHERE = "callers:elsewhere"
NO_CALLER = "callers:none"
REACHED = "callers:reached"
CALLERS_FOUND = "callers:found"
IN_BRANCH = "place:branch"
TRAINS = "steps:train"
EVALUATES = "steps:evaluate"
SELDOM = "place:seldom"
OFF_BY_DEFAULT = "place:off-by-default"
NESTED = "place:nested-loops"
IN_NESTED_FUNCTION = "place:inner-function"

_REPEATED = frozenset(("rate:own-loop", "cost:per-element"))
_REPEATED_ON_DEVICE = frozenset(("rate:own-loop", "value:device"))
_IN_STEPS = frozenset(("rate:around-step", "rate:once-a-step", REACHED))
# A function whose calls show that it runs seldom repeats nothing often, whatever its loops.
_OF_SELDOM_CALLS = (
    Cause.BEFORE_STEPS, Cause.SET_UP_CALLS, Cause.SELDOM_CALLS, Cause.SWITCHED_OFF,
    Cause.OUTSIDE_STEPS, Cause.UNREACHED,
)  # fmt: skip
_NOT_REPEATED = frozenset((
    NO_CALLER, "value:host", *(f"row:{row_id(cause)}" for cause in _OF_SELDOM_CALLS),
))  # fmt: skip
# Loops whose rounds launch operations.
LAUNCHING = frozenset(f"kind:{kind.value}" for kind in LAUNCHING_KINDS)
# Each wait that a loop repeats costs its call each time, however empty the queue is.
BEHIND_ONCE = "queue:behind-once"
_BEHIND = frozenset(("queue:empty", "queue:little"))
# A name that tells how often a function runs doesn't tell how often it is called in a step.
_NOT_ONCE = frozenset(("queue:on-some-path", "rate:called", "runs:convention"))
ONCE_A_STEP = "rate:once-a-step"
# A wait with hardly any work since the last one of the function's callers.
BEHIND_CALLER = "leader:caller"
# Features of sites of which the user's settings, a contract or a profile decided outright.
OUTRIGHT = frozenset(("row:named-hot", "runs:named-hot", "runs:contract", "runs:ran-often"))


def is_repeated(evidence: Collection[str]) -> bool:
    """True if a function's own text repeats a cost whatever the weights say.

    It does for the elements of a tensor that is not known to lie on the host, and in each step with
    one that is shown to lie on a device; not in code to which nothing leads, or only calls that
    seldom run, or that are all known and outside the steps. A loop that only launches operations
    doesn't wait, so its weights decide.
    """
    shown = frozenset(evidence)
    if not _NOT_REPEATED.isdisjoint(shown) or not LAUNCHING.isdisjoint(shown):
        return False
    if CALLERS_FOUND in shown and _IN_STEPS.isdisjoint(shown):
        return False
    return shown >= _REPEATED or shown >= _REPEATED_ON_DEVICE


def features(site: JudgedSite, code: str) -> frozenset[str]:
    """Return the names of the features that apply to the finding of a rule at a site."""
    found = frozenset((f"rule:{code}", *_of_site(site), *site.evidence))
    return found | {BEHIND_ONCE} if is_behind_once(found) else found


def is_behind_once(evidence: Collection[str]) -> bool:
    """True if a wait follows another with hardly any work between, and only steps repeat it."""
    shown = frozenset(evidence)
    repeated = "rate:own-loop" in shown and ONCE_A_STEP not in shown
    return not repeated and not _BEHIND.isdisjoint(shown) and _NOT_ONCE.isdisjoint(shown)


def _of_site(site: JudgedSite) -> Iterator[str]:
    yield f"kind:{site.kind.value}"
    yield from (f"trait:{trait.replace(' ', '-')}" for trait in site.traits)
    yield from _of_rate(site)
    yield from _of_value(site)
    if len(site.loops) > 1:
        yield NESTED
    if site.is_nested:
        yield IN_NESTED_FUNCTION


def _of_rate(site: JudgedSite) -> Iterator[str]:
    heat, runs = site.heat, site.heat.frequency
    yield f"cost:{heat.cost.value.replace(' ', '-')}"
    yield f"runs:{row_id(runs.cause)}"
    if heat.level is Level.COLD:
        yield f"left-out:{row_id(heat.hidden_by)}"
    if runs.own_text:
        yield "rate:own-loop"
    if runs.once_a_step:
        yield ONCE_A_STEP
    if runs.around is Level.STEP:
        yield "rate:around-step"
    if runs.calls:
        yield "rate:called"
    if runs.cost is Cost.STEP and not site.loops and not runs.own_text:
        yield "rate:straight-line"


def _of_value(site: JudgedSite) -> Iterator[str]:
    tensor = site.tensor
    if tensor is None:
        yield "value:none"
        return
    place = "beside-host" if tensor.device == BESIDE_HOST else tensor.device
    yield f"value:{place}"
    yield f"sure:{Strength(tensor.reason.strength).name.lower()}"
    if tensor.device == "unknown" and tensor.reason.strength < Strength.STATED:
        yield "value:unshown"
    if tensor.scalar is True:
        yield "value:one-element"
