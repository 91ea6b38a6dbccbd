"""Turns counts into a verdict: confirmed, refuted or inconclusive, with the reason in words.

Compares a finding's declared evidence with the child's report. There is no verdict without a run:
anything missing or malformed makes it inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from flake8_torchperf.findings.documentation import EvidenceSpec
from flake8_torchperf.runtime.confirm.child_report import (
    MALFORMED,
    STAGES,
    MalformedReportError,
    number,
)
from flake8_torchperf.runtime.confirm.plan import Group, Target
from flake8_torchperf.runtime.confirm.sandbox import Answer
from flake8_torchperf.runtime.confirm.scaling import Law, fit
from flake8_torchperf.runtime.confirm.specs.input_specs import HOST, PLACE
from flake8_torchperf.runtime.counting.counts import Counts, counted, in_words
from flake8_torchperf.runtime.rule_pages.unshown import unshown

# The trait of operations that wait without any dispatch or read that a CPU could show.
IN_KERNELS = "syncs"
Status = Literal["confirmed", "refuted", "inconclusive"]
COUNTED_NAMES = frozenset(Counts().to_dict())
ELSEWHERE = "its cost falls where what this line makes is used, which this function does not show"
SHOWN_COUNTS = ("dispatches", "host_reads", "dynamic_shapes", "transfers")


@dataclass(frozen=True)
class CallVerdict:
    """``laws`` are those of the whole call, by counter; empty where nothing ran."""

    status: Status
    reason: str
    probes: tuple[dict[str, Any], ...] = ()
    laws: Mapping[str, Law] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)


def verdict_of_call(
    group: Group, target: Target, answer: Answer, size: int, device: str
) -> CallVerdict:
    """Return the verdict on one finding; ``size`` is the size that its reason extrapolates to."""
    if answer.result is None:
        return CallVerdict("inconclusive", answer.failure)
    try:
        return _judge(group, target, answer.result, size, device)
    except MALFORMED as error:
        return CallVerdict("inconclusive", f"the child's report is malformed ({error})")


def _judge(
    group: Group, target: Target, result: dict[str, Any], size: int, device: str
) -> CallVerdict:
    if "failed" in result:
        stage = str(result["failed"])
        return CallVerdict("inconclusive", f"{STAGES.get(stage, stage)}: {result['reason']}")
    entry = result["targets"][target.id]
    inputs = {str(k): str(v) for k, v in entry["inputs"].items()}
    if entry["reached"] is not True:
        return CallVerdict("inconclusive", _not_reached(group, entry, result), inputs=inputs)
    probes = [one for one in entry.get("probes", ()) if one["counted"] is True]
    ran = [one for one in probes if number(one["executions"][target.id]) > 0]
    if not ran:
        return CallVerdict("inconclusive", _no_probe(entry, result), inputs=inputs)
    laws = {name: _law(ran, name) for name in SHOWN_COUNTS}
    on_host = device == "cuda" and inputs.get(PLACE) == HOST
    status, words = _decide(target, ran, device, on_host)
    reason = f"{words}; {_whole(laws, size)}" if status == "confirmed" else words
    if result.get("mode") == "extract" and status != "inconclusive":
        reason += f" (the function alone: its module does not import, {result['problem']})"
    return CallVerdict(status, reason, tuple(_plain(one) for one in ran), laws, inputs)


def _seconds(value: object) -> float:
    if not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise MalformedReportError(f"{value!r} is not a time")
    return float(value)


def _not_reached(group: Group, entry: dict[str, Any], result: dict[str, Any]) -> str:
    """Say why the line never ran, and which parameter would have to be given."""
    error = str(entry["error"])
    if error.startswith("MemoryError") or "can't allocate memory" in error:
        return f"it ran out of memory: {error}"
    if number(result["late"]) > 0:
        return f"timed out: {error or 'a call did not come back'}"
    guessed = [str(name) for name in result["guessed"]]
    if error.startswith("inputs: "):
        why = error.removeprefix("inputs: ")
        hint = "" if why.startswith("--inputs") else _object(result)
        return f"inputs could not be made: {why}{hint}"
    if guessed:
        names = ", ".join(f"`{name}`" for name in guessed)
        hint = f'--inputs "{guessed[0]}=..."'
        return (
            f"inputs could not be made: nothing tells what {names} must be"
            f"{f' ({error})' if error else ''}; say it with {hint}"
        )
    unsure = [str(name) for name in group.job["unsure"] if name not in group.job["given"]]
    if error and unsure:
        names = ", ".join(f"`{name}`" for name in unsure)
        return (
            f"inputs could not be made: {names} could only be guessed, and the call raised "
            f'{error}; say it with --inputs "{unsure[0]}=..."'
        )
    if error:
        without = f"; made without __init__ ({result['bare']})" if result["bare"] else ""
        return f"not reached: the call raised {error}{without}{_object(result)}"
    return f"not reached: the call came to its end without running this line{_object(result)}"


def _object(result: dict[str, Any]) -> str:
    """Return the advice to give the object of a method, where it was made with guesses; else ""."""
    name = str(result["object"])
    return f'; its object was guessed, give one with --inputs "self={name}(...)"' if name else ""


def _no_probe(entry: dict[str, Any], result: dict[str, Any]) -> str:
    errors = [str(one["error"]) for one in entry.get("probes", ()) if one.get("error")]
    if errors:
        return f"not reached while counting: {errors[0]}{_object(result)}"
    return "timed out: no time was left to count"


def _decide(
    target: Target, probes: Sequence[dict[str, Any]], device: str, on_host: bool
) -> tuple[Status, str]:
    spec = target.evidence
    if spec is None:
        return "inconclusive", "its page declares no evidence that a run could show"
    if spec.counter not in COUNTED_NAMES:
        return "inconclusive", f"{in_words(spec.counter)} are not counted by line"
    if spec.needs == "cuda" and device != "cuda":
        return "inconclusive", "only a CUDA device can show it: run with --device cuda"
    if not target.regions:
        return "inconclusive", ELSEWHERE
    points = [(number(p["size"]), number(p["regions"][target.id][spec.counter])) for p in probes]
    executions = [number(p["executions"][target.id]) for p in probes]
    found = _shown(spec, points, executions)
    if found:
        where = found.replace("this line", "where it is used", 1) if spec.shows == "use" else found
        return "confirmed", where
    if spec.counter == "copies_to_device" and device != "cuda" and _stayed(target, probes):
        return "inconclusive", "the code chose the host, since this machine has no accelerator"
    most = max(count for _, count in points)
    if most > 0 and spec.shows == "use":
        shown_there = counted(most, spec.counter)
        return "inconclusive", f"where its cost falls {shown_there} were counted, too few to tell"
    if most > 0:
        return "inconclusive", (
            f"this line made {counted(most, spec.counter)} in a call, too few to tell whether they "
            "grow: its loop went round once with the inputs made"
        )
    raised = [str(p["error"]) for p in probes if p["error"]]
    if len(raised) == len(probes):
        return "inconclusive", f"the line ran, but the call raised {raised[0]}"
    if spec.shows == "use":
        return "inconclusive", f"where its cost falls no {in_words(spec.counter)} were counted"
    if reason := unshown(target.finding.site.kind, spec.counter):
        return "inconclusive", reason
    if on_host:
        return "inconclusive", "the line ran with inputs on the host alone, where nothing waits"
    if device != "cuda" and spec.counter == "copies_to_device":
        # The tensor is the host's: where there is another device, the same call may copy it.
        return "inconclusive", "a CPU alone shows no copy to a device here: run with --device cuda"
    if device != "cuda" and IN_KERNELS in target.finding.site.traits:
        return "inconclusive", "it waits in a kernel of the device: run with --device cuda"
    rounds = max(executions)
    times = "once" if rounds == 1 else f"{rounds:,} times"
    return "refuted", f"the line ran {times} in a call and made no {in_words(spec.counter)}"


def _stayed(target: Target, probes: Sequence[dict[str, Any]]) -> bool:
    """True if a copy that should have gone to a device went to the host, which the code named."""
    return any(number(p["regions"][target.id]["transfers"]) for p in probes)


def _shown(spec: EvidenceSpec, points: Sequence[tuple[int, int]], executions: Sequence[int]) -> str:
    """Return the declared evidence that the line showed, in words; "" where it showed none."""
    law = fit(points)
    least = Fraction(spec.at_least)
    growth = law.per_element if not law.curvature else Fraction(points[-1][1], points[-1][0])
    if growth > 0 and growth >= least:
        return f"this line: {_rate(growth, spec.counter)} per element"
    count, rounds = points[-1][1], executions[-1]
    if spec.law == "call" and count >= least and count > 0:
        if rounds > 1 and count >= rounds:
            return f"this line: {_rate(Fraction(count, rounds), spec.counter)} per loop iteration"
        return f"this line: {counted(count, spec.counter)} per call"
    if spec.law == "element" and rounds > 1 and Fraction(count, rounds) >= least:
        return f"this line: {_rate(Fraction(count, rounds), spec.counter)} per loop iteration"
    return ""


def _law(probes: Sequence[dict[str, Any]], counter: str) -> Law:
    return fit([(number(p["size"]), number(p["totals"][counter])) for p in probes])


def _whole(laws: Mapping[str, Law], size: int) -> str:
    """Describe the whole call: "9.00 dispatches and 3.00 host reads per element; ..."."""
    dispatches, reads = laws["dispatches"], laws["host_reads"]
    if dispatches.curvature or reads.curvature:
        count = dispatches.at(size)
        return f"the call's dispatches grow with the square: {count:,} at {size:,} elements"
    if dispatches.per_element > 0:
        about = "" if dispatches.exact and reads.exact else "about "
        return (
            f"{about}{_rate(dispatches.per_element, 'dispatches')} and "
            f"{_rate(reads.per_element, 'host_reads')} per element; "
            f"{dispatches.at(size):,} dispatches at {size:,} elements"
        )
    return (
        f"{counted(dispatches.at(size), 'dispatches')} and "
        f"{counted(reads.at(size), 'host_reads')} per call"
        f"{' at any size' if dispatches.exact and reads.exact else ' at most'}"
    )


def _rate(rate: Fraction, counter: str) -> str:
    return f"{float(rate):,.2f} {in_words(counter)}"


def _plain(probe: dict[str, Any]) -> dict[str, Any]:
    """Return a probe as reports show it, with every number checked."""
    return {
        "size": number(probe["size"]),
        **{name: number(probe["totals"][name]) for name in SHOWN_COUNTS},
        "seconds": _seconds(probe["seconds"]),
        "lines": {
            str(int(line)): {str(name): number(count) for name, count in counts.items()}
            for line, counts in probe["lines"].items()
        },
    }
