"""The findings of contracts in the linted file: waits in code that must not wait."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flake8_torchperf.contracts.followed_calls import (
    BASE,
    Contracts,
    PathFromRoot,
    Reached,
    interpreted,
)
from flake8_torchperf.contracts.led_to import LedTo
from flake8_torchperf.findings import report
from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
from flake8_torchperf.judgement.heat import FREE_CAUSES, Heat, Level
from flake8_torchperf.judgement.judge import judge
from flake8_torchperf.judgement.judged_site import JudgedSite
from flake8_torchperf.project.answers import PART, noting
from flake8_torchperf.project.files import NO_PYTHON, decoded, read_bytes, stamp
from flake8_torchperf.project.module_index import ModuleMap
from flake8_torchperf.project.resolver import Project
from flake8_torchperf.project.stores.kept import share
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import SiteKind

if TYPE_CHECKING:
    from flake8_torchperf.findings.catalogue import Catalogue
    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.interpreter.engine.analysis import Analysis, SeenCall
    from flake8_torchperf.judgement.frequency.own_heat import NameEvidence
    from flake8_torchperf.options import Options
    from flake8_torchperf.project.module_index import FunctionInfo

# Sites at which the host waits for the device, including copies to the device.
WAITS = frozenset((
    SiteKind.HOST_READ, SiteKind.TRANSFER, SiteKind.HOST_REDUCTION, SiteKind.FORMAT,
    SiteKind.HOST_COMPARISON, SiteKind.SYNCHRONIZE, SiteKind.NUMBER_USE,
    SiteKind.HOST_ACCUMULATION, SiteKind.BRANCH, SiteKind.DYNAMIC_SHAPE, SiteKind.MASK_INDEX,
    SiteKind.LIST_INDEX, SiteKind.NUMBER_ASSIGNED, SiteKind.TORCH_CALL,
))  # fmt: skip
# Causes of cold sites that break no contract: nothing waits there, or an error has already ended
# the code that must not wait.
EXEMPT = (FREE_CAUSES - {Cause.MEASURING}) | {Cause.ERROR}
# The step of an optimizer, which torch refuses while it records unless it was made for that.
REFUSED = "step"
# The trait of sites in code that torch records as a CUDA graph.
RECORDED = "recorded"


@dataclass(slots=True, eq=False)
class _Followed:
    """The contracts of a package: the functions that they reach, and the files that were read."""

    told: tuple[object, ...]
    reached: list[Reached]
    reads: dict[str, str]
    stamps: list[tuple[int, int]]

    def holds(self, told: tuple[object, ...]) -> bool:
        """True if the settings and all files that were read are unchanged."""
        return self.told == told and self.stamps == _stamps(self.reads)


def _stamps(reads: dict[str, str]) -> list[tuple[int, int]]:
    return [stamp(path) for path in reads if PART not in path]


# The contracts of the last package, because linting handles a package's files one after the other.
_LAST: list[_Followed] = []


def with_contracts(
    findings: list[Finding],
    suspects: frozenset[str],
    analysis: Analysis,
    names: NameEvidence,
    catalogue: Catalogue,
    options: Options,
) -> list[Finding]:
    """Return the findings of the linted file, replaced at each place that breaks a contract.

    ``suspects`` are the keys of the functions that may have findings. ``options`` request every
    scope, because a broken contract is reported in any scope.
    """
    reached = _reached(analysis, options)
    if not reached:
        return findings
    module = analysis.project.linted
    own = {info.key: info for info in module.defined}
    heats = FunctionHeats(analysis, names)
    led_to = LedTo(reached, heats.program).further(suspects)
    found: dict[tuple[int, int, str], Finding] = {}
    for one in (*reached, *led_to):
        info = own.get(one.info.key)
        if info is None or not (options.explain or info.key in suspects):
            continue
        for finding in _findings(one, info, analysis, heats, catalogue, options):
            found.setdefault((finding.line, finding.column, finding.code), finding)
    nodes = {id(finding.site.node) for finding in found.values()}
    return [one for one in findings if id(one.site.node) not in nodes] + list(found.values())


def _findings(
    reached: Reached,
    info: FunctionInfo,
    analysis: Analysis,
    heats: FunctionHeats,
    catalogue: Catalogue,
    options: Options,
) -> list[Finding]:
    here = replace(reached, info=info)
    calls, found = interpreted(here, analysis)
    result = judge(found, heats, BASE)
    sites = [told for site in result.sites for told in _broken(site, here)]
    if options.explain:
        sites += _unseen(calls, here)
    if not sites:
        return []
    result = replace(result, sites=tuple(sites))
    return report.report(result, catalogue, options, info.module.qualify)


def _broken(site: JudgedSite, reached: Reached) -> list[JudgedSite]:
    """Return the site with the path to it if it breaks a contract, else an empty list."""
    refused = site.kind is SiteKind.OPTIMIZER_OPTION and site.operation == REFUSED
    if not refused and site.kind not in WAITS:
        return []
    if site.heat.level is Level.COLD and site.heat.hidden_by in EXEMPT:
        return []
    way = reached.way_to(site.function, getattr(site.node, "lineno", 0))
    if way is None or (refused and not way.recorded):
        return []
    traits = site.traits | {RECORDED} if way.recorded else site.traits
    return [replace(site, heat=_heat(way, site.heat.level), traits=traits)]


def _unseen(calls: list[SeenCall], reached: Reached) -> list[JudgedSite]:
    """Return a site for each call whose target is unknown."""
    found: dict[int, JudgedSite] = {}
    for call in calls:
        way = reached.way_to(call.source, getattr(call.node, "lineno", 0))
        if call.target is None and way is not None:
            site = JudgedSite(
                SiteKind.UNSEEN_CALL,
                "unseen",
                call.node,
                None,
                _heat(way, Level.STEP),
                function=call.source,
            )
            found.setdefault(id(call.node), site)
    return list(found.values())


def _heat(way: PathFromRoot, level: Level) -> Heat:
    """Return the heat of a place on a path from a contract, with the path as its name."""
    path = " -> ".join((way.root, *way.calls))
    return Heat(max(level, Level.STEP), Cause.CONTRACT, path)


def _reached(analysis: Analysis, options: Options) -> list[Reached]:
    """Return the functions that the contracts of the linted module's package reach."""
    project = analysis.project
    globs = options.sync_free
    if not project.top or not _is_saved(project.linted):
        # A module outside any package, or an unsaved text in an editor.
        return Contracts(analysis).follow(globs)
    asked = (globs, options.hot, options.cold, options.rules)
    told = (project.top_folder, project.modules_that_promise(), *asked)
    last = _LAST[0] if _LAST and _LAST[0].holds(told) else None
    if last is None:
        reads: dict[str, str] = {}
        apart = _apart(analysis, reads)
        with noting(reads):
            reached = Contracts(apart).follow(globs)
        last = _Followed(told, reached, reads, _stamps(reads))
        _LAST[:] = [last]
        if last.reached:
            share()
    if project.reads is not None:
        project.reads.update(last.reads)
    return last.reached


def _apart(analysis: Analysis, reads: dict[str, str]) -> Analysis:
    """Return an analysis that reads every module from its file, the linted one included."""
    linted = analysis.project.linted
    nothing = ModuleMap(f"{linted.package}.*", linted.package, (), None, linted.path)
    return replace(
        analysis,
        project=Project(nothing, reads),
        compiled=None,
        _names={},
        _externals={},
        caches={},
        observed={},
        models_called=set(),
        enclosing=[],
    )


def _is_saved(module: ModuleMap) -> bool:
    """True if the file on disk holds the text that is linted."""
    if module.path is None:
        return False
    data = read_bytes(str(module.path))
    try:
        return isinstance(data, bytes) and decoded(data) == "".join(module.lines)
    except NO_PYTHON:
        return False
