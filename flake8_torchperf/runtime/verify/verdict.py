"""Turns the child's report on one fix into a verdict: verified, withdrawn or unverified.

Anything missing or malformed leaves the fix unverified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from flake8_torchperf.findings.documentation import evidence_of
from flake8_torchperf.runtime.confirm.child_report import MALFORMED, STAGES, number
from flake8_torchperf.runtime.confirm.scaling import fit
from flake8_torchperf.runtime.counting.counts import Counts, counted, in_words

if TYPE_CHECKING:
    from flake8_torchperf.findings.rule import Rule
    from flake8_torchperf.runtime.confirm.sandbox import Answer

Status = Literal["verified", "withdrawn", "unverified"]
VERIFIED: Status = "verified"
WITHDRAWN: Status = "withdrawn"
UNVERIFIED: Status = "unverified"

# Counts are extrapolated to a size this much larger than the largest that was run.
PROJECTION = 1000
# Other waits: with other inputs the same line may read where it would select, for instance.
_WAITS = ("host_reads", "dynamic_shapes", "copies_to_device", "transfers")
_COUNTED = frozenset(Counts().to_dict())
# Signals that a process brings upon itself; others come from limits and the system.
_OWN_FAULT = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")
_STAGES = {
    **STAGES,
    "inputs": "it could not be run",
    "reach": "not reached",
    "late": "timed out",
    "died": "it crashed",
    "repeat": "not repeatable",
}


@dataclass(frozen=True, slots=True)
class FixVerdict:
    """The result for one fix; ``words`` are the reason in one line."""

    status: Status
    words: str


def verdicts(rules: Sequence[Rule], answer: Answer) -> list[FixVerdict]:
    """Return the verdicts on fixes, by the rules whose findings they are for."""
    told = answer.result
    if told is None:
        return [FixVerdict(UNVERIFIED, answer.failure) for _ in rules]
    if "failed" in told:
        return [_failure(str(told["failed"]), str(told.get("reason"))) for _ in rules]
    trials = told.get("trials")
    if not isinstance(trials, list) or len(trials) != len(rules):
        return [FixVerdict(UNVERIFIED, "the child's report is malformed") for _ in rules]
    return [verdict_of_fix(rule, one) for rule, one in zip(rules, trials, strict=True)]


def verdict_of_fix(rule: Rule, told: dict[str, Any]) -> FixVerdict:
    """Return the verdict on a fix of one of the rule's findings, from the child's report."""
    try:
        return _judge(rule, told)
    except MALFORMED as error:
        return FixVerdict(UNVERIFIED, f"the child's report is malformed ({error})")


def _judge(rule: Rule, told: dict[str, Any]) -> FixVerdict:
    if "failed" in told:
        return _failure(str(told["failed"]), str(told["reason"]), str(told.get("side", "")))
    calls, raised = number(told["calls"]), number(told["raised"])
    if told["difference"]:
        return FixVerdict(WITHDRAWN, f"{told['difference']}, for {told['inputs']}")
    if calls - raised < 1:
        return FixVerdict(UNVERIFIED, "no call came to its end")
    alike = f"{_amount(calls, 'call')} alike" + (f", {raised} of them raise" if raised else "")
    if recorded := number(told.get("recorded", 0)):
        alike += f", {recorded} of them recorded"
    found = _by_evidence(rule, told, alike)
    unshown = str(told.get("unshown", ""))
    if found.status == VERIFIED and unshown:
        return FixVerdict(UNVERIFIED, f"{alike}, but {unshown}")
    return found


def _failure(stage: str, reason: str, side: str = "") -> FixVerdict:
    if side == "after" and any(reason.endswith(name) for name in _OWN_FAULT):
        return FixVerdict(WITHDRAWN, f"after the fix {reason}")
    return FixVerdict(UNVERIFIED, f"{_STAGES.get(stage, stage)}: {reason}")


def _by_evidence(rule: Rule, told: dict[str, Any], alike: str) -> FixVerdict:
    """Return the verdict on a fix whose calls gave equal results, from the counts of both."""
    spec = evidence_of(rule)
    if spec is None or spec.counter not in _COUNTED or spec.counter == "graph_breaks":
        return FixVerdict(UNVERIFIED, f"{alike}, but nothing counts what its page promises")
    if spec.needs == "cuda" and told["device"] != "cuda":
        # The page says that only CUDA can show the evidence, so only the calls can be compared.
        return FixVerdict(VERIFIED, f"{alike}; only --device cuda can show what is gained")
    both = told["counted"]
    if not both:
        return FixVerdict(UNVERIFIED, f"{alike}, but no time was left to count")
    if not any(number(new["ran"]) for _, new in both):
        return FixVerdict(UNVERIFIED, "the rewritten function did not run")
    on_host = told["device"] != "cuda"
    if told["in_loop"] and max(number(old["flagged"]) for old, _ in both) < 2:
        return FixVerdict(UNVERIFIED, f"{alike}, but no call ran the loop more than once")
    for counter in (spec.counter, *(name for name in _WAITS if name != spec.counter)):
        pairs = [
            (number(old["size"]), number(old[counter]), number(new[counter])) for old, new in both
        ]
        shrunk = _shrunk(pairs, number(told["sizes"]), counter)
        if shrunk:
            return FixVerdict(VERIFIED, f"{shrunk}; {alike}")
        grown = max(pairs, key=lambda pair: pair[2] - pair[1])
        if grown[2] > grown[1]:
            words = f"{counted(grown[1], counter)} before, {grown[2]:,} after"
            return FixVerdict(WITHDRAWN, f"{alike}, but {words}")
    if spec.counter == "copies_to_device" and on_host:
        # With only one device, copies to it are not made or not visible.
        return FixVerdict(VERIFIED, f"{alike}; only --device cuda can show what is gained")
    most = max(number(old[spec.counter]) for old, _ in both)
    if most:
        same = f"{counted(most, spec.counter)} before and after"
        return FixVerdict(WITHDRAWN, f"{alike}, but {same}")
    words = in_words(spec.counter)
    return FixVerdict(UNVERIFIED, f"{alike}, but no {words} were counted before the fix either")


def _shrunk(pairs: Sequence[tuple[int, int, int]], sizes: int, counter: str) -> str:
    """Say by how much a count shrinks: at the largest size, or in the call that counts most."""
    grown = pairs[:sizes]
    size, old, new = grown[-1]
    if new >= old:
        _, old, new = max(pairs, key=lambda pair: pair[1] - pair[2])
        return f"{counted(old, counter)} -> {new:,}" if new < old else ""
    laws = [fit([(pair[0], pair[side]) for pair in grown]) for side in (1, 2)]
    if laws[0].exact and laws[1].exact and laws[0].per_element > 0:
        size *= PROJECTION
        old, new = laws[0].at(size), laws[1].at(size)
        return f"{counted(old, counter)} -> {new:,} at {size:,} elements"
    return f"{counted(old, counter)} -> {new:,}"


def _amount(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
