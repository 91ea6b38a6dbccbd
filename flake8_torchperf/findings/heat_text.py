"""The words of a message for a heat: how often a place runs, and the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.judgement.frequency.propagation import BY_CALLS
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.row import LOOP_AT, row_id
from flake8_torchperf.judgement.rows import BY_CAUSE
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.judgement.heat import Call, Heat, Measured
    from flake8_torchperf.judgement.judged_site import JudgedSite


class FrequencyWords(NamedTuple):
    """Words for how often a site runs, with a hole ``{name}`` for one name from the source."""

    words: str
    name: str = ""

    @property
    def text(self) -> str:
        """The words with the name in its place."""
        return self.words.replace("{name}", self.name)


# The most characters for the path of calls from code that must not wait, and by how many they are
# reduced each time that the message is too long.
LONGEST_WAY = 72
LESS_WAY = 7
# Shorter words, for a message that has no room for a name.
BRIEF = {
    Cause.CALLED: "called at line {line}",
    Cause.CALLED_IN_LOOP: LOOP_AT,
}


def place(site: JudgedSite, *, brief: int = 0) -> FrequencyWords:
    """Return words for the cause of a site's heat; a higher ``brief`` gives fewer words."""
    heat = site.heat
    if heat.cause is Cause.CONTRACT:
        return FrequencyWords(
            _way(heat, getattr(site.node, "lineno", 0), LONGEST_WAY - LESS_WAY * brief)
        )
    if heat.cause is Cause.CONVENTION and heat.level is not Level.COLD:
        return FrequencyWords("a step by name")
    if heat.cause is Cause.RAN_OFTEN and heat.measured is not None:
        return FrequencyWords(_measured(heat.measured, brief=bool(brief)))
    if heat.beside is not None and heat.cause in BY_CALLS:
        return _called_beside(heat.beside, brief=bool(brief))
    loop = next((one for one in site.loops if one.node is heat.node), None)
    if heat.cause is Cause.LOOP and loop is not None:
        found = FrequencyWords(LOOP_AT.format(line=loop.line))
    else:
        found = _named(heat.cause, heat, BRIEF.get(heat.cause) if brief else None)
    if brief or not heat.caller or "{name}" in found.words or heat.cause is Cause.UNREACHED:
        return found
    return FrequencyWords(f"{found.words}, for `{{name}}` at line {heat.line}", heat.caller)


def _called_beside(call: Call, *, brief: bool) -> FrequencyWords:
    """Return words for a call beside the steps, which says how often a function runs."""
    caller = call.caller.rpartition(".")[2]
    words = BRIEF[Cause.CALLED] if brief or not caller else BY_CAUSE[Cause.CALLED].words
    return FrequencyWords(words.replace("{line}", str(call.line)), caller)


def _way(heat: Heat, line: int, room: int) -> str:
    """Return the path of calls from code that must not wait, in ``room`` characters if possible."""
    told = ""
    for root, names in _ways(heat):
        told = f"on the way from {root}: {' -> '.join([*names, f'line {line}'])}"
        if len(told) <= room:
            break
    return told


def _ways(heat: Heat) -> Iterator[tuple[str, list[str]]]:
    """Yield ever shorter forms of the path: middle calls are dropped first, then names are cut."""
    root, *names = heat.name.split(" -> ")
    yield root, names
    for kept in range(len(names) - 1, 0, -1):
        yield root, [*names[: kept // 2], "...", *names[len(names) - kept + kept // 2 :]]
    for width in (24, 16, 12):
        last = [_cut(name, width) for name in names[-1:]]
        yield _cut(root, width), ["...", *last] if len(names) > 1 else last
    yield _cut(root, width), ["..."] if names else []


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


def frequency(site: JudgedSite) -> str:
    """Return how often a place runs and why, whether its wait matters or not."""
    heat = site.heat.frequency
    if heat.cause is Cause.NOTHING and heat.beside is None and heat.level is Level.COLD:
        return f"{heat.often}, and {_unknown(heat)}"
    return f"{heat.often}, {place(site.heated(heat)).text}"


def row_of(heat: Heat) -> str:
    """Return the id of the row that decides how a place of this heat is reported."""
    return row_id(heat.hidden_by)


def hidden_by(heat: Heat) -> str:
    """Return why only scope "all" reports a cold place: "convention log-writers"."""
    if heat.hidden_by is Cause.NOTHING:
        return _unknown(heat)
    return _named(heat.hidden_by, heat).text


def _unknown(heat: Heat) -> str:
    return f"nothing shows how often {heat.name} runs" if heat.name else "nothing shows how often"


def _named(cause: Cause, heat: Heat, words: str | None = None) -> FrequencyWords:
    name = heat.caller if cause is Cause.CALLED else heat.name
    return FrequencyWords((words or BY_CAUSE[cause].words).replace("{line}", str(heat.line)), name)
