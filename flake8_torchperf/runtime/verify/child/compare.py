"""In the child: does one job, and returns how the texts before and after fixes differ.

The module is loaded once. For each fix two forks, one for each text, make the same calls and write
the results to files, which are compared here. A fork that dies does not affect the others.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from flake8_torchperf.findings.rule import SAFE
from flake8_torchperf.runtime.confirm.child import isolation
from flake8_torchperf.runtime.confirm.child.absent import with_stand_ins
from flake8_torchperf.runtime.confirm.child.load import (
    ConfirmError,
    Loaded,
    LoadError,
    extract,
    import_file,
    load,
    one_line,
)
from flake8_torchperf.runtime.confirm.child.measure import (
    SEARCH_SHARE,
    AssignmentTrials,
    start_cuda,
)
from flake8_torchperf.runtime.confirm.child.search import Assignment, chosen
from flake8_torchperf.runtime.confirm.child.target import Subject
from flake8_torchperf.runtime.confirm.child.traced_call import Spots, TooLate, time_limit
from flake8_torchperf.runtime.confirm.child_report import TRACER, TRACES, failed
from flake8_torchperf.runtime.confirm.specs.input_specs import KEPT, InputSpec, describe
from flake8_torchperf.runtime.counting.fake_accelerator import standing_in
from flake8_torchperf.runtime.verify.child.callers import OTHER_CALLS, other_calls, with_choice
from flake8_torchperf.runtime.verify.child.calls import CALL_SHARE, counts_of, snapshot_of, varied
from flake8_torchperf.runtime.verify.child.differences import Rules, difference
from flake8_torchperf.runtime.verify.child.variations import (
    ALL_VARIATIONS,
    COUNTED_TOO,
    SHORT,
    Variation,
)
from flake8_torchperf.runtime.verify.child.versions import put

# Shares of a trial's time: the text before (which includes the search), then the text after. The
# rest is for a second run of the text before, where the two differ.
BEFORE, AFTER = 0.5, 0.8
# Different inputs to compare with, besides the first ones found, and attempts spent on them.
MOST_OTHERS, MOST_NEIGHBOURS = 2, 24
# The share of a version's time for recorded calls, after that for the search.
RECORDED_SHARE = 0.15


def execute(job: dict[str, Any]) -> dict[str, Any]:
    """Try the fixes of one file. "trials" holds the result for each, in their order.

    "failed" names the stage in which something went wrong, and "reason" says why.
    """
    seconds = float(job["import_seconds"])
    first = job["trials"][0]
    if job.get("alone"):
        nothing = Loaded({}, "extract")
        return {"trials": [_tried(one, nothing, i) for i, one in enumerate(job["trials"])]}
    try:
        with standing_in(), time_limit(seconds):
            place = (first["path"], first["module"], first["root"], first["function"])
            loaded = _loaded(first) or load(*place, first["before"])
    except TooLate:
        return failed("import", f"importing took more than {seconds:.3g} s")
    except (Exception, SystemExit) as error:
        loaded = Loaded({}, "extract", one_line(error))
    return {"trials": [_tried(trial, loaded, index) for index, trial in enumerate(job["trials"])]}


def _loaded(job: dict[str, Any]) -> Loaded | None:
    """Import the file with stand-ins for modules that are not installed; None if that fails."""
    path, module = job["path"], job["module"]
    sys.path.insert(0, job["root"])
    try:
        imported, problem = with_stand_ins(partial(import_file, path, module), module)
    except (Exception, SystemExit):
        sys.path.remove(job["root"])
        return None  # `load` says why, and tries less
    return Loaded(vars(imported), "module", problem)


def _tried(job: dict[str, Any], loaded: Loaded, index: int) -> dict[str, Any]:
    """Compare the two texts of one fix."""
    began, seconds = time.monotonic(), float(job["seconds"])

    def forked(name: str, share: float, work: Callable[[float], dict[str, Any]]) -> dict[str, Any]:
        return _forked(f"{index}-{name}", began + seconds * share, work)

    before = forked("before", BEFORE, lambda end: _first(job, loaded, end))
    if "failed" in before:
        return _behind_import(before, job, loaded)
    after = forked("after", AFTER, lambda end: _again(job, loaded, before, end))
    if "failed" in after:
        return {**after, "side": "after"}
    compared = _compared(job, before, after)
    if compared["difference"]:
        # A function that differs from itself shows nothing about its fix.
        twice = forked("twice", 1.0, lambda end: _same_again(job, loaded, before, end))
        if "failed" in twice:
            return twice
        if _compared({**job, "safety": SAFE}, before, twice)["difference"]:
            return failed("repeat", "two runs of the text before the fix do not give the same")
    return compared


def _behind_import(told: dict[str, Any], job: dict[str, Any], loaded: Loaded) -> dict[str, Any]:
    """Return a failure, preceded by the reason why the module could not be imported, if any."""
    reason = str(told["reason"])
    if not loaded.problem or loaded.problem in reason:
        return told
    return failed("import", f"{loaded.problem}; {job['function']} alone: {reason}")


def _forked(name: str, end: float, work: Callable[[float], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of ``work``, run in a separate process within the time."""
    path = Path(f"{name}.pt").absolute()
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            isolation.die_with_parent()
            sys.settrace(None)
            told = _within(work, end)
            torch.save({**told, TRACES: TRACER in sys.modules}, path)
            os._exit(0)
        except BaseException as error:
            with contextlib.suppress(BaseException):
                torch.save(failed("confirm", one_line(error)), path)
                os._exit(0)
        finally:
            os._exit(1)
    ended, status = 0, 0
    while not ended and time.monotonic() < end + 0.5:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.005)
    if not ended:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return failed("late", "a call did not come back in time")
    if os.WIFSIGNALED(status):
        words = signal.Signals(os.WTERMSIG(status)).name
        return failed("died", f"the process crashed with {words}")
    if os.WEXITSTATUS(status) or not path.exists():
        return failed("died", f"the process ended early with status {os.WEXITSTATUS(status)}")
    told = dict(torch.load(path, weights_only=True))
    if told.pop(TRACES, False):
        importlib.import_module(TRACER)  # once for the forks that follow
    return told


def _within(work: Callable[[float], dict[str, Any]], end: float) -> dict[str, Any]:
    with standing_in():
        try:
            return work(end)
        except TooLate:
            return failed("late", "a call did not come back in time")
        except MemoryError:
            return failed("memory", "out of memory")
        except LoadError as error:
            return failed("import", str(error))
        except ConfirmError as error:
            return failed("inputs", str(error))


def _version(job: dict[str, Any], loaded: Loaded, text: str) -> Subject:
    """Return the function as one text has it. Raises ConfirmError."""
    if job["device"] == "cuda" and (problem := start_cuda(10.0)):
        raise ConfirmError(f"CUDA did not start: {problem}")
    if loaded.mode == "module" and job["function"] != "<module>":
        put(text, job["path"], loaded)
    elif loaded.mode == "extract":
        loaded = extract(job["path"], job["module"], job["function"], loaded.problem, text)
    return Subject({**job, "text": text}, loaded)


class _Found(AssignmentTrials):
    """Remembers every assignment with which the flagged expression ran to the call's end."""

    def __init__(self, subject: Subject, job: dict[str, Any], seconds: float) -> None:
        super().__init__(subject, job, seconds)
        self.good: list[Assignment] = []

    def _note(
        self, target: str, assignment: Assignment, score: tuple[bool, bool], late: bool
    ) -> None:
        super()._note(target, assignment, score, late)
        if score[0] and not late and assignment not in self.good:
            self.good.append(assignment)

    def recorded(self, end: float) -> None:
        """Try the recorded calls that the search had no need of."""
        for assignment in self.subject.recorded:
            if assignment not in self.errors and time.monotonic() < end:
                self._evaluate(assignment)

    @property
    def told_errors(self) -> list[str]:
        """The errors of the calls that were tried, those of recorded calls first."""
        return [
            *(self.errors[one] for one in self.subject.recorded if one in self.errors),
            *self.errors.values(),
        ]

    def neighbours(self, best: Assignment, end: float) -> None:
        """Try assignments that differ from the best in one choice, until enough are good."""
        attempts = 0
        for choice in range(1, 8):
            for position, dimension in enumerate(self.subject.dimensions):
                enough = len(self.good) > MOST_OTHERS or attempts >= MOST_NEIGHBOURS
                if enough or time.monotonic() > end:
                    return
                changed = (*best[:position], choice, *best[position + 1 :])
                if choice < len(dimension.candidates) and changed not in self.errors:
                    attempts += 1
                    self._evaluate(changed)


def _first(job: dict[str, Any], loaded: Loaded, end: float) -> dict[str, Any]:
    """Handle the text before: find inputs that reach the finding, then call with them."""
    subject = _version(job, loaded, job["before"])
    began = time.monotonic()
    trials = _Found(subject, job, (end - began) * SEARCH_SHARE)
    trials.search()
    trials.recorded(began + (end - began) * (SEARCH_SHARE + RECORDED_SHARE))
    target = job["targets"][0]["id"]
    if target not in trials.reached:
        errors = [error for error in trials.told_errors if error]
        reason = f"the call raised {errors[0]}" if errors else "no call ran this line"
        return failed("reach", f"{reason}; {subject.without_init}".removesuffix("; "))
    best, problem = trials.reached[target]
    if problem:
        return failed("reach", f"every call that ran this line raised {problem}")
    trials.neighbours(best, time.monotonic() + (end - began) * 0.15)
    others = [one for one in trials.good if one != best and one not in subject.recorded]
    recorded = [one for one in subject.recorded if one in trials.good and one != best]
    picked = [best, *recorded, *others[:MOST_OTHERS]]
    specs = [dict(chosen(subject.dimensions, one)) for one in picked]
    choices = other_calls(specs[0], subject.defaults)
    left = {"specs": specs, "others": choices, "bare": subject.without_init}
    lines = (int(job["first_line"]), int(job["last_line"]))
    return {**left, **_calls(job, subject, left, end, lines, None)}


def _again(
    job: dict[str, Any], loaded: Loaded, before: dict[str, Any], end: float
) -> dict[str, Any]:
    """Handle the text after: make the calls that were made with the text before."""
    subject = _version(job, loaded, job["after"])
    return _repeated(job, subject, before, end, (int(job["after_first"]), int(job["after_last"])))


def _same_again(
    job: dict[str, Any], loaded: Loaded, before: dict[str, Any], end: float
) -> dict[str, Any]:
    subject = _version(job, loaded, job["before"])
    return _repeated(job, subject, before, end, (int(job["first_line"]), int(job["last_line"])))


def _repeated(
    job: dict[str, Any],
    subject: Subject,
    before: dict[str, Any],
    end: float,
    lines: tuple[int, int],
) -> dict[str, Any]:
    if subject.without_init != before["bare"]:
        raise ConfirmError("the object could be made for only one of the two texts")
    return _calls(job, subject, before, end, lines, len(before["runs"]))


def _calls(
    job: dict[str, Any],
    subject: Subject,
    found: dict[str, Any],
    end: float,
    lines: tuple[int, int],
    wanted: int | None,
) -> dict[str, Any]:
    """Count first, then take one snapshot after the other, for as many calls as the time allows."""
    calls = _order(found)
    began = time.monotonic()
    counted: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []
    share = (end - began) * CALL_SHARE
    for how in [*(Variation(n=int(n)) for n in job["sizes"]), *COUNTED_TOO]:
        left = (end - began) / 2 - (time.monotonic() - began)
        if left <= 0:
            break
        with contextlib.suppress(TooLate):
            counted.append(counts_of(subject, found["specs"][0], how, left, lines))
    spots = Spots(job["definitions"]) if wanted is None else None
    for specs, how in calls:
        left = end - time.monotonic()
        if wanted is None and left < share and runs:
            break
        if len(runs) == wanted:
            break
        builder = varied(subject, specs, how)
        runs.append(snapshot_of(subject, specs, builder, max(min(share, left), 0.01), spots))
    return {"counted": counted, "runs": runs, "unset": _unset(job, spots)}


def _unset(job: dict[str, Any], spots: Spots | None) -> str:
    """Say which place that sets a value for the changed statements no call reached, if any."""
    executed = {} if spots is None else spots.executions(spots.lines)
    for one in job["definitions"]:
        if not executed.get(one["id"], 1):
            return f"no call reached line {one['first']}, which sets `{one['name']}` too"
    return ""


def _order(found: dict[str, Any]) -> list[tuple[dict[str, InputSpec], Variation]]:
    """Return the inputs and variations of the calls, the same for both texts."""
    specs: list[dict[str, InputSpec]] = found["specs"]
    recorded = [(one, Variation()) for one in specs if is_recorded(one)]
    made = [one for one in specs if not is_recorded(one)]
    calls = [(one, how) for one in made[:1] for how in ALL_VARIATIONS]
    calls += [(with_choice(specs[0], one), OTHER_CALLS[one[2]]) for one in found["others"]]
    return [*recorded, *calls, *((one, how) for one in made[1:] for how in SHORT)]


def is_recorded(specs: dict[str, InputSpec]) -> bool:
    """True for the arguments of a recorded call, which no variation changes."""
    return any(one["kind"] == KEPT for one in specs.values())


def _shows_error(before: Sequence[str], after: Sequence[str], text: str) -> bool:
    """True if a call raises an error of the changed code, not one that both texts run into."""
    return bool(before and after) and (list(before) != list(after) or after[1] in text)


def _compared(job: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Compare call by call: return how many gave the same, and the first that did not."""
    made = raised = recorded = failed = 0
    found = shown = ""
    pairs = list(zip(before["runs"], after["runs"], _order(before), strict=False))
    for one, other, (specs, how) in pairs:
        if "unmade" in one or "unmade" in other:
            continue
        made += 1
        recorded += is_recorded(specs)
        raised += bool(one["error"] or other["error"])
        failed += _shows_error(one["error"], other["error"], job["after"])
        allows = frozenset(job["allows"])
        double = how.dtype is torch.float64
        rules = Rules(job["safety"], allows, how.half, how.finite, double, how.lenient)
        found = difference(one, other, rules)
        if found:
            shown = _inputs(specs, how)
            break
    return {
        "calls": made,
        "device": job["device"],
        "raised": raised,
        "recorded": recorded,
        "difference": found,
        "inputs": shown,
        "in_loop": job["in_loop"],
        "unshown": job["unshown"] or before.get("unset", "") or ("" if failed else job["unraised"]),
        "counted": [
            list(pair)
            for pair in zip(before["counted"], after["counted"], strict=False)
            if len(pair[0]) > 1 and len(pair[1]) > 1
        ],
        "sizes": len(job["sizes"]),
    }


def _inputs(specs: dict[str, InputSpec], how: Variation) -> str:
    """Describe the inputs of a call in words."""
    named = [f"{name}={describe(spec)}" for name, spec in specs.items() if _tells(name, spec)]
    size = [] if is_recorded(specs) else [f"n = {how.n}"]
    return ", ".join([*named, *size, *([how.words] if how.words else [])])


def _tells(name: str, spec: InputSpec) -> bool:
    return spec["kind"] != "default" and not name.startswith("(")
