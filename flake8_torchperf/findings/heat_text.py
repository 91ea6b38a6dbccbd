"""The words of a message for a heat: how often a place runs, and the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.judgement.heat import Heat, Measured
    from flake8_torchperf.judgement.site import JudgedSite


class Place(NamedTuple):
    """Words for how often a site runs, with a hole ``{name}`` for one name from the source."""

    words: str
    name: str = ""

    @property
    def text(self) -> str:
        """The words with the name in its place."""
        return self.words.replace("{name}", self.name)


# ``{name}`` is the function, the caller or the row of the table of conventions.
CAUSE_WORDS = {
    Cause.NAMED_HOT: "hot by your settings",
    Cause.NAMED_COLD: "cold by your settings",
    Cause.CONTRACT: "on the way from {name}",
    Cause.RAN_OFTEN: "ran often",
    Cause.RAN_ONCE: "profile: ran once",
    Cause.NEVER_WAITED: "profile: no waits",
    Cause.ELEMENTS: "in {name}",
    Cause.LOOP: "in a loop",
    Cause.TRAINING_STEP: "in a training step",
    Cause.COMPILED: "in a compiled function",
    Cause.OUTSIDE_STEPS: "outside the steps",
    Cause.CALLED: "called by `{name}` at line {line}",
    Cause.CALLED_IN_LOOP: "called in a loop at line {line}",
    Cause.SET_UP_CALLS: "called by set-up code",
    Cause.BEFORE_STEPS: "before the steps",
    Cause.SELDOM_CALLS: "called every few steps",
    Cause.UNUSED: "its package never names it",
    Cause.STEP_ROOT: "in {name}",
    Cause.SET_UP_ROOT: "set-up in {name}",
    Cause.TEST: "in a test",
    Cause.DATA_WORKER: "in a data loader's worker",
    Cause.CONVERSION: "asked for a host value",
    Cause.REGISTERED: "registered with a tracer",
    Cause.RESULT_KEPT: "its result is kept",
    Cause.ERROR: "on an error path",
    Cause.WARNING: "on a warning path",
    Cause.SOME_STEPS: "once in several steps",
    Cause.ONE_ROUND: "in one round of its loop",
    Cause.FIRST_CALL: "on the first call or round",
    Cause.MADE_ONCE: "made once and kept",
    Cause.TRACING: "under a compiling guard",
    Cause.NO_DEVICE: "where there is no device",
    Cause.FALLBACK: "for a lesser device",
    Cause.NOTHING_TO_DO: "with nothing to compute",
    Cause.SWITCHED_OFF: "option off by default",
    Cause.NEVER_LEFT_OUT: "without a usual argument",
    Cause.CONVENTION: "convention {name}",
    Cause.GIVEN_TENSORS: "in a helper",
    Cause.MODULE_LEVEL: "at module level",
    Cause.NOTHING: "in {name}",
    Cause.ANSWER: "in the answering method",
    Cause.AT_ONCE: "once, as views",
    Cause.BESIDE_HOST: "beside a host tensor",
    Cause.COPY_ASKED: "where a copy is asked for",
    Cause.DECLARED: "declared to return numbers",
    Cause.EITHER: "where it may be a number",
    Cause.ERROR_TEXT: "in the text of an error",
    Cause.EXCHANGED: "between processes",
    Cause.HANDED_OVER: "for a library on the host",
    Cause.HOST_NAME: "host value by name or use",
    Cause.HOST_ONLY: "where the host is required",
    Cause.LIST_MADE: "for the list made of it",
    Cause.MEASURING: "where waiting is the aim",
    Cause.NEW_DATA: "where the data is new",
    Cause.OPERATION: "in the operation itself",
    Cause.START_UP: "to start the device up",
    Cause.TEXT_MADE: "for the text made of it",
    Cause.WAITED_FOR: "after a test that waited",
}
# The characters that the path from code that must not wait may take, and how many fewer each time
# that a message has no room for it.
LONGEST_WAY = 72
LESS_WAY = 7
# The same where a message has no room for a name.
BRIEF = {
    Cause.CALLED: "called at line {line}",
    Cause.CALLED_IN_LOOP: "loop at line {line}",
}


def place(site: JudgedSite, *, brief: int = 0) -> Place:
    """Return words for the cause of a site's heat; the higher ``brief``, the fewer words."""
    heat = site.heat
    if heat.cause is Cause.CONTRACT:
        return Place(_way(heat, getattr(site.node, "lineno", 0), LONGEST_WAY - LESS_WAY * brief))
    if heat.cause is Cause.CONVENTION and heat.level is not Level.COLD:
        return Place("a step by name")
    if heat.cause is Cause.RAN_OFTEN and heat.measured is not None:
        return Place(_measured(heat.measured, brief=bool(brief)))
    loop = next((one for one in site.loops if one.node is heat.node), None)
    if heat.cause is Cause.LOOP and loop is not None:
        return Place(f"loop at line {loop.line}")
    words = BRIEF.get(heat.cause) if brief else None
    return _named(heat.cause, heat, words)


def _way(heat: Heat, line: int, room: int) -> str:
    """Return the path of calls from code that must not wait, in ``room`` characters if possible."""
    told = ""
    for root, names in _ways(heat):
        told = f"on the way from {root}: {' -> '.join([*names, f'line {line}'])}"
        if len(told) <= room:
            break
    return told


def _ways(heat: Heat) -> Iterator[tuple[str, list[str]]]:
    """Yield the path in ever fewer words: its middle calls are dropped first, then names cut."""
    names = heat.name.split(" -> ") if heat.name else []
    yield heat.caller, names
    for kept in range(len(names) - 1, 0, -1):
        yield heat.caller, [*names[: kept // 2], "...", *names[len(names) - kept + kept // 2 :]]
    for width in (24, 16, 12):
        last = [_cut(name, width) for name in names[-1:]]
        yield _cut(heat.caller, width), ["...", *last] if len(names) > 1 else last
    yield _cut(heat.caller, width), ["..."] if names else []


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 3]}..."


def _measured(told: Measured, *, brief: bool) -> str:
    """Return how often a statement ran, and how long or how often it waited."""
    ran = f"ran {told.times:,} times"
    if not told.waits or brief:
        return ran
    if told.seconds is not None:
        return f"{ran}, waited {duration(told.seconds)}"
    return ran if told.waits == told.times else f"{ran}, {told.waits:,} waits"


def duration(seconds: float) -> str:
    """Return seconds in few characters: "3.1 s", "12 ms", "40 us"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            number = seconds / size
            return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"
    return f"{seconds * 1e6:.0f} us"


def hidden_by(heat: Heat) -> str:
    """Return the reason that only scope "all" reports a cold place: "convention log-writers"."""
    if heat.hidden_by is Cause.NOTHING:
        return (
            f"nothing shows how often {heat.name} runs" if heat.name else "nothing shows how often"
        )
    return _named(heat.hidden_by, heat).text


def reason_for(heat: Heat) -> str:
    """Return the reason that a function runs as often as it does: "called by `fit` at line 9"."""
    return _named(heat.cause, heat).text


def _named(cause: Cause, heat: Heat, words: str | None = None) -> Place:
    name = heat.caller if cause is Cause.CALLED else heat.name
    return Place((words or CAUSE_WORDS[cause]).replace("{line}", str(heat.line)), name)
