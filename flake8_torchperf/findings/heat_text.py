"""What a heat is called in a message: how often a place runs, and what says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.heat import Cause, Level

if TYPE_CHECKING:
    from flake8_torchperf.absint.domain.heat import Heat
    from flake8_torchperf.absint.domain.site import Site

# ``{name}`` is the function, or the row of the table of conventions; ``{caller}`` who calls it.
WORDS = {
    Cause.NAMED_HOT: "in {name}, which your settings name",
    Cause.NAMED_COLD: "in {name}, which your settings name",
    Cause.ELEMENTS: "in {name}",
    Cause.LOOP: "in a loop",
    Cause.TRAINING_STEP: "in {name}, which takes a training step",
    Cause.COMPILED: "in {name}, which is compiled",
    Cause.OUTSIDE_STEPS: "in {name}, outside its loop over steps",
    Cause.CALLED: "in {name}, called from `{caller}` at line {line}",
    Cause.CALLED_IN_LOOP: "in {name}, called in a loop at line {line}",
    Cause.SET_UP_CALLS: "in {name}, which only set-up code calls",
    Cause.BEFORE_STEPS: "in {name}, which runs before the loop over steps",
    Cause.SELDOM_CALLS: "in {name}, which is called only every so many steps",
    Cause.UNUSED: "in {name}, which nothing in its package names",
    Cause.STEP_ROOT: "in {name}",
    Cause.SET_UP_ROOT: "in {name}, which sets something up",
    Cause.TEST: "in a test",
    Cause.DATA_WORKER: "in {name}, which a data loader's workers run",
    Cause.CONVERSION: "in {name}, which is asked for a value on the host",
    Cause.REGISTERED: "in {name}, which is registered with a tracer",
    Cause.RESULT_KEPT: "in {name}, of which the result is kept",
    Cause.ERROR: "on the way to an error",
    Cause.WARNING: "on the way to a warning",
    Cause.SOME_STEPS: "once in several steps",
    Cause.ONE_ROUND: "in one round of its loop",
    Cause.FIRST_CALL: "on the first call, or in the first round",
    Cause.MADE_ONCE: "once: what is made is kept",
    Cause.TRACING: "under a compiling guard",
    Cause.NO_DEVICE: "where there is no device",
    Cause.FALLBACK: "for a device that lacks something",
    Cause.NOTHING_TO_DO: "where there is nothing to compute with",
    Cause.SWITCHED_OFF: "where an option is on that is off by default",
    Cause.NEVER_LEFT_OUT: "where an argument is missing that every call here gives",
    Cause.CONVENTION: "where the convention {name} says that it is seldom",
    Cause.GIVEN_TENSORS: "in {name}, which computes on the tensors it is given",
    Cause.MODULE_LEVEL: "at module level",
    Cause.NOTHING: "in {name}",
    Cause.ANSWER: "in the function that answers it",
    Cause.AT_ONCE: "once: it waits for nothing and makes a view for each",
    Cause.BESIDE_HOST: "beside a tensor on the host",
    Cause.COPY_ASKED: "where the copy is what is asked for",
    Cause.DECLARED: "in a function that is declared to return numbers",
    Cause.EITHER: "where a tensor is taken for a number, which a caller may give",
    Cause.ERROR_TEXT: "in the text of an error",
    Cause.EXCHANGED: "where processes tell each other a number",
    Cause.HANDED_OVER: "for a library that works on the host",
    Cause.HOST_NAME: "where the host has it, by its name or by what is done with it",
    Cause.HOST_ONLY: "where only a tensor on the host is taken",
    Cause.LIST_MADE: "for the list that is made of it",
    Cause.MEASURING: "where waiting is the purpose",
    Cause.NEW_DATA: "where the data is new each time",
    Cause.OPERATION: "in the function that is called as the operation",
    Cause.START_UP: "where nothing takes what is made: it starts the device up",
    Cause.TEXT_MADE: "for the text that is made of it",
    Cause.WAITED_FOR: "after a test that has waited: a number for one of its outcomes",
}


def where(site: Site) -> str:
    """How often a site is paid for, and where: "per step in the loop at line 18 over grad"."""
    return f"{site.heat.cost.value} {place(site)}"


def place(site: Site) -> str:
    """What repeats a site, or says how seldom it runs."""
    heat = site.heat
    if heat.cause is Cause.CONVENTION and heat.level is not Level.COLD:
        return f"in {site.function.rpartition('.')[2]}, a step by its name"
    loop = next((one for one in site.loops if one.node is heat.node), None)
    if heat.cause is Cause.LOOP and loop is not None:
        over = f" over {loop.over}" if loop.over else ""
        return f"in the loop at line {loop.line}{over}"
    return _filled(heat.cause, heat)


def hidden_by(heat: Heat) -> str:
    """What leaves a cold place to scope "all": "convention log-writers"."""
    if heat.hidden_by is Cause.CONVENTION:
        return f"convention {heat.name}"
    if heat.hidden_by is Cause.NOTHING:
        return (
            f"nothing shows how often {heat.name} runs" if heat.name else "nothing shows how often"
        )
    return _filled(heat.hidden_by, heat)


def _filled(cause: Cause, heat: Heat) -> str:
    return WORDS[cause].format(name=heat.name, caller=heat.caller, line=heat.line)
