"""In the child: does one job, from the loaded file to counts at every size.

Job and result are plain data. It finds inputs with which the flagged lines run, then calls at each
size once under the counter and once with lines traced.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.child.from_errors import suggested
from flake8_torchperf.runtime.confirm.child.load import load, one_line
from flake8_torchperf.runtime.confirm.child.search import (
    MAX_ATTEMPTS,
    Assignment,
    AssignmentSearch,
    Dimension,
    Score,
    chosen,
)
from flake8_torchperf.runtime.confirm.child.target import Subject, SubjectError
from flake8_torchperf.runtime.confirm.child.traced_call import (
    CallOutcome,
    TooLate,
    time_limit,
    watch,
)
from flake8_torchperf.runtime.confirm.child_report import failed
from flake8_torchperf.runtime.confirm.specs.input_specs import describe
from flake8_torchperf.runtime.counting.counter import DispatchCounter
from flake8_torchperf.runtime.counting.counts import Observation, total
from flake8_torchperf.runtime.counting.fake_accelerator import standing_in
from flake8_torchperf.runtime.counting.graph_breaks import explain, uncompiled

# The share of a snippet's time for the search for inputs; the rest is for the probes.
SEARCH_SHARE = 0.45
# One call in the search may take this share of it: a hang must not use up all of it.
CALL_SHARE = 0.2
FIRST_SHARE = 0.5
# Calls that did not come back before the search gives up.
MOST_LATE = 3
# A tenth of a second at 2 GHz: a copy to the host that is queued behind it arrives late.
BUSY_CYCLES = 200_000_000
# Attempts spent on better inputs once all flagged lines have run.
MOST_POLISHING = 60
# Attempts of all rounds of the search; each round follows what the last error says.
MOST_ATTEMPTS = 1200
# Attempts of each round as long as errors name sizes that were not tried.
FIRST_ATTEMPTS = 24
# The share of the search's time for each: making the object of a large class takes long.
ROUND_SHARE = 0.15
# Errors of one round that are followed.
MOST_ERRORS = 6


def execute(job: dict[str, Any]) -> dict[str, Any]:
    """Load, find inputs, probe. The result's "failed" says which stage did not work, and why."""
    began = time.monotonic()
    if job["device"] == "cuda" and (problem := start_cuda(float(job["seconds"]) * 0.8)):
        return failed("cuda", problem)
    with standing_in(), uncompiled() if job["explain"] else contextlib.nullcontext():
        return _execute(job, began)


def _execute(job: dict[str, Any], began: float) -> dict[str, Any]:
    seconds = float(job["seconds"])
    try:
        with time_limit(seconds * 0.8):
            loaded = load(job["path"], job["module"], job["root"], job["function"])
    except TooLate:
        return failed("import", f"importing took more than {seconds * 0.8:.3g} s")
    except (Exception, SystemExit) as error:
        return failed("import", one_line(error))
    try:
        subject = Subject(job, loaded)
    except SubjectError as error:
        return failed("inputs", str(error))
    left = seconds - (time.monotonic() - began)
    return {"mode": loaded.mode, "problem": loaded.problem, **_judge(subject, job, left)}


def start_cuda(seconds: float) -> str:
    """Create the CUDA context before any call is timed; return why that failed, or ""."""
    try:
        with time_limit(seconds):
            torch.zeros(1, device="cuda")
    except TooLate:
        return f"it took more than {seconds:.3g} s"
    except (RuntimeError, AssertionError) as error:  # the latter: torch was built without CUDA
        return one_line(error)
    return ""


def _judge(subject: Subject, job: dict[str, Any], seconds: float) -> dict[str, Any]:
    trials = AssignmentTrials(subject, job, seconds * SEARCH_SHARE)
    best = trials.search()
    end = time.monotonic() + seconds * (1 - SEARCH_SHARE) * 0.9
    probed: dict[Assignment, list[dict[str, Any]]] = {}
    targets: dict[str, Any] = {}
    for target in job["targets"]:
        assignment = trials.reached.get(target["id"], (best, ""))[0]
        reached = target["id"] in trials.reached
        entry: dict[str, Any] = {
            "reached": reached,
            "error": trials.errors.get(assignment, ""),
            "inputs": trials.describe(assignment),
        }
        if reached:
            if assignment not in probed:
                probed[assignment] = probe_all(job, trials.call(assignment), end)
            entry["probes"] = probed[assignment]
        targets[target["id"]] = entry
    return {
        "targets": targets,
        "attempts": len(trials.errors),
        "late": trials.late,
        "guessed": list(subject.guessed),
        "bare": subject.without_init,
        "object": subject.guessed_object,
    }


class AssignmentTrials:
    """Tries assignments at the smallest size and remembers which flagged lines each one reached."""

    def __init__(self, subject: Subject, job: dict[str, Any], seconds: float) -> None:
        self.subject, self.job, self.seconds = subject, job, seconds
        self.errors: dict[Assignment, str] = {}
        self.reached: dict[str, tuple[Assignment, str]] = {}
        self.late = 0
        self._polishing = 0
        self._scores: dict[str, tuple[bool, bool]] = {}

    def search(self) -> Assignment:
        """Search until every flagged line has run in a call that came to its end."""
        wanted = len(self.job["targets"])
        end = time.monotonic() + self.seconds
        seen: dict[Assignment, Score] = {}
        starts = self.subject.starts
        # Short rounds first: an error that names a size leads there sooner than many guesses.
        attempts, share = FIRST_ATTEMPTS, self.seconds * ROUND_SHARE
        while True:
            search = AssignmentSearch(
                self.subject.dimensions,
                self._evaluate,
                lambda score: self._enough(score, wanted),
                min(share, end - time.monotonic()),
                len(seen) + attempts,
                seen,
                starts,
            )
            best = search.run()
            late = self.late >= MOST_LATE or time.monotonic() > end
            if late or self._enough(seen[best], wanted) or len(seen) > MOST_ATTEMPTS:
                return best
            starts = self._suggested(best, seen)
            if attempts == MAX_ATTEMPTS and not starts:
                return best
            if not starts or time.monotonic() > end - self.seconds / 2:
                attempts, share = MAX_ATTEMPTS, self.seconds

    def _suggested(self, best: Assignment, seen: dict[Assignment, Score]) -> list[Assignment]:
        """Append candidates for what errors name; return the assignments that have one of them.

        Assignments that came as far as the best may have failed for another reason.
        """
        by_error = {self.errors[one]: one for one, score in seen.items() if score == seen[best]}
        by_error.pop("", None)
        starts: list[Assignment] = []
        for error, one in list(by_error.items())[:MOST_ERRORS]:
            before = self.subject.dimensions
            self.subject.dimensions = suggested(before, one, error)
            starts += _with_new(before, self.subject.dimensions, one)
        return starts

    def _share(self) -> float:
        """Return the seconds for one call; the first gets more, as it may import modules."""
        return self.seconds * (CALL_SHARE if self.errors else FIRST_SHARE)

    def _enough(self, score: Score, wanted: int) -> bool:
        if self.late >= MOST_LATE:
            return True
        if score[0] < wanted or not score[1]:
            return False
        # Loops should run more than once to show that counts grow, if that is cheap.
        self._polishing += 1
        return score[2] == wanted or self._polishing > MOST_POLISHING

    def call(self, assignment: Assignment) -> Callable[[int], Callable[[], None]]:
        """Return a function that makes an assignment's inputs at a size and returns the call."""
        specs = dict(chosen(self.subject.dimensions, assignment))
        return lambda n: self.subject.prepare(specs, n)

    def describe(self, assignment: Assignment) -> dict[str, str]:
        """Describe the inputs in words, without those left at their defaults."""
        specs = chosen(self.subject.dimensions, assignment)
        return {k: describe(r) for k, r in specs.items() if r["kind"] != "default"}

    def _evaluate(self, assignment: Assignment) -> Score:
        specs = dict(chosen(self.subject.dimensions, assignment))
        n = int(self.job["sizes"][0])
        try:
            with time_limit(self._share()):
                call = self.subject.prepare(specs, n)
        except TooLate:
            self.errors[assignment] = f"inputs: making them takes more than {self._share():.3g} s"
            return (0, False, 0, -1)
        except (Exception, SystemExit) as error:
            self.errors[assignment] = f"inputs: {one_line(error)}"
            return (0, False, 0, -1)
        targets = self.job["targets"]
        outcome = watch(call, self.job["path"], self._share(), targets)
        self.late += outcome.late or outcome.error.startswith("MemoryError")
        self.errors[assignment] = outcome.error
        count = often = 0
        for target in targets:
            rounds = outcome.executions[target["id"]]
            if rounds:
                count += 1
                often += rounds >= target["rounds"]
                score = (not outcome.error, rounds >= target["rounds"])
                self._note(target["id"], assignment, score, outcome.late)
        # A call that returned before any flagged line got no further than one that raised.
        return (count, count > 0 and not outcome.error, often, len(outcome.lines))

    def _note(
        self, target: str, assignment: Assignment, score: tuple[bool, bool], late: bool
    ) -> None:
        """Record a trial, unless it was too late to be probed.

        The first call that came to its end and looped is preferred.
        """
        if late:
            return
        if target not in self._scores or score > self._scores[target]:
            self._scores[target] = score
            self.reached[target] = (assignment, self.errors[assignment])


def _with_new(
    before: Sequence[Dimension], after: Sequence[Dimension], best: Assignment
) -> list[Assignment]:
    """Return the assignments that differ from the best one in one new candidate."""
    found: list[Assignment] = []
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        for choice in range(len(old.candidates), len(new.candidates)):
            found.append((*best[:place], choice, *best[place + 1 :]))
    return found


def probe_all(
    job: dict[str, Any],
    calls: Callable[[int], Callable[[], None]],
    end: float,
) -> list[dict[str, Any]]:
    """Probe at every size; sizes for which no time is left are not in the result."""
    probes: list[dict[str, Any]] = []
    broken = _broken(job, calls, end) if job["explain"] else {}
    for n in job["sizes"]:
        left = end - time.monotonic()
        if left <= 0:
            break
        made = _probe(job, calls, int(n), left)
        if made is not None:
            for target, kinds in broken.items():
                if made["counted"]:
                    made["regions"][target]["graph_breaks"] = len(kinds)
            probes.append(made)
    return probes


def _broken(
    job: dict[str, Any], calls: Callable[[int], Callable[[], None]], end: float
) -> dict[str, list[str]]:
    """Return the graph breaks of one call whose user stack names a target's lines, traced once.

    They are the same at every size: the tracer makes symbols of shapes that change.
    """
    try:
        with time_limit(max(end - time.monotonic(), 0.01)):
            found = explain(calls(int(job["sizes"][0])), (), {})
    except (Exception, SystemExit, TooLate):
        # The probes report what the call itself raises.
        return {}
    return {
        target["id"]: sorted(
            {
                one.kind
                for first, last in target["regions"]
                for one in found.at(job["path"], first, last)
            }
        )
        for target in job["targets"]
    }


def _probe(
    job: dict[str, Any],
    calls: Callable[[int], Callable[[], None]],
    n: int,
    seconds: float,
) -> dict[str, Any] | None:
    """Probe one size: counted, then traced with new inputs. None where it takes too long."""
    cuda = job["device"] == "cuda"
    device: Any = torch.cuda
    counter = DispatchCounter("full", owner=[job["path"]], host_as_device=not cuda)
    error = ""
    try:
        with time_limit(seconds):
            call = calls(n)
            try:
                if cuda and job["busy"]:
                    device._sleep(BUSY_CYCLES)
                with counter:
                    call()
                    if cuda:
                        torch.cuda.synchronize()  # noqa: TPF106 - the counts must be complete
            except (Exception, SystemExit) as raised:
                error = one_line(raised)
            outcome = watch(calls(n), job["path"], seconds, job["targets"])
    except TooLate:
        return None
    except (Exception, SystemExit) as raised:
        return {"size": n, "error": f"inputs: {one_line(raised)}", "counted": False}
    if outcome.late:
        return None
    return {"counted": True, **_counts(counter.evidence, job, n, error, outcome)}


def _counts(
    evidence: Observation, job: dict[str, Any], n: int, error: str, outcome: CallOutcome
) -> dict[str, Any]:
    path = job["path"]
    regions: dict[str, dict[str, Any]] = {}
    for target in job["targets"]:
        spans = [evidence.between(path, first, last) for first, last in target["regions"]]
        regions[target["id"]] = total(spans).to_dict()
    inside = range(job["first_line"], job["last_line"] + 1)
    lines = {
        str(one.line): {
            "dispatches": one.counts.dispatches,
            "host_reads": one.counts.host_reads,
            "transfers": one.counts.transfers,
            "dynamic_shapes": one.counts.dynamic_shapes,
            "executions": outcome.lines[one.line],
        }
        for one in evidence.lines
        if one.line in inside and one.path != "<elsewhere>"
    }
    return {
        "size": n,
        "seconds": evidence.seconds,
        "error": error,
        "totals": evidence.totals.to_dict(),
        "regions": regions,
        "executions": dict(outcome.executions),
        "lines": lines,
    }
