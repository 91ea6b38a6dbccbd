"""Judgement of sites: each gets a heat, or is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events.recording import names_rows, waits
from flake8_torchperf.interpreter.events.waiting_wrappers import IN_HELPER
from flake8_torchperf.judgement.copied_data import is_compiled_in, varies
from flake8_torchperf.judgement.evidence import Evidence
from flake8_torchperf.judgement.explicit_copies import AS_ARRAY, becomes_array, is_asked_for
from flake8_torchperf.judgement.fate import COMPILER_ONLY, FROM_DEVICE
from flake8_torchperf.judgement.frequency.frames import FrameHeats
from flake8_torchperf.judgement.frequency.place_heat import heat
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.judged_site import Judged, JudgedSite, Loop
from flake8_torchperf.judgement.row import row_id
from flake8_torchperf.judgement.selections import needs_size
from flake8_torchperf.judgement.table import WANTED, all_that_apply
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import SIZED_KINDS, SiteKind

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Interpreted, Site
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.heat import Heat


def judge(result: Interpreted, heats: FunctionHeats, base: Heat | None = None) -> Judged:
    """Return the judged sites of a result; ``base`` is the heat of its function.

    If ``base`` is None and there are sites, the calls that lead to the function give its heat.
    """
    frames = FrameHeats(heats, base)
    try:
        judged = [_judged(site, frames) for site in result.sites]
    except RecursionError:
        judged = []  # expressions nested too deep for Python's stack are not judged
    kept = tuple(one for one in judged if one is not None)
    return Judged(result.snippet, kept, result.queued)


def _judged(site: Site, frames: FrameHeats) -> JudgedSite | None:
    """Return the site with its heat; None for a helper's wait at a call that no step repeats."""
    place = site.place
    base = frames.of(place.frame)
    traits = site.traits
    if becomes_array(site):
        traits |= {AS_ARRAY}
    if "to-device" in traits and varies(site):
        traits |= {"varying"}
    if "vmap" in traits and not names_rows(site.operand_node or site.node, place):
        traits -= {"vmap"}
    steps = frames.step_loops(place.frame)
    evidence = Evidence(site, base, steps, traits, frames.evaluates(place.frame, base))
    ignored = place.analysis.ignored
    met = place.demoted
    if met is None and is_compiled_in(site) and Cause.COMPILED not in ignored:
        met = Cause.COMPILED
    if IN_HELPER in traits and heat(evidence, met).level < Level.STEP:
        return None
    causes = all_that_apply(WANTED, evidence)
    why = next(iter(causes), None)
    reads = site.kind in FROM_DEVICE and "to-device" not in traits
    if place.compiled and reads and (why is not None or not waits(site.operand)):
        traits, why = traits | {COMPILER_ONLY}, None
    found = heat(evidence, why if met is None else met)
    if site.at_once and Cause.AT_ONCE not in ignored:
        found = found.cooled(Cause.AT_ONCE)
    if _selects(site) and place.node is not None and needs_size(site.node, place.node):
        traits |= {"sized"}
    judged = JudgedSite(
        site.kind,
        site.operation,
        site.node,
        site.operand,
        found,
        tuple(Loop(0, one.kind, "", one.node) for one in place.loops),
        place.function,
        traits,
        site.covers,
        site.operand_node,
        _compiled(site, traits),
    )
    if is_asked_for(judged) and Cause.COPY_ASKED not in ignored:
        judged = judged.cooled(Cause.COPY_ASKED)
        causes.append(Cause.COPY_ASKED)
    others = (one for one in (met, base.cause) if one is not None)
    shown = {*causes, *others} - ignored
    return judged.showing(f"row:{row_id(one)}" for one in shown)


def _selects(site: Site) -> bool:
    """True if a mask selects elements at a site, which are read there."""
    return site.operation in ("read", "masked_select") and site.kind in SIZED_KINDS


def _compiled(site: Site, traits: frozenset[str]) -> str:
    """Return the words for the compiled or transformed code that the site stands in."""
    if site.operation == "over-compiled":
        return "transforms a compiled function"
    if site.operation == "compiled-inside":
        return "calls a compiled function in a transform"
    if site.operation == "row-by-row":
        return "runs row by row under vmap"
    if "vmap" in traits and site.kind not in (SiteKind.GRAPH_BREAK, SiteKind.RECOMPILE):
        return "cannot run under vmap"
    if "fullgraph" in traits and site.kind is not SiteKind.RECOMPILE:
        return f"{site.place.compiled}, an error under fullgraph"
    return site.place.compiled
