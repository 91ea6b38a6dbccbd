"""From source text to findings: index, suspects, interpretation, sites, judgement, findings.

The interpreter, the torch table and the rule pages are imported only where a file has suspects.
"""

from __future__ import annotations

import ast
import io
import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.allowed_regions import allowed_regions
from flake8_torchperf.prefilter import concerns
from flake8_torchperf.project.answers import noting, record
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.files import as_counted
from flake8_torchperf.project.module_index import imports_torch, read_module
from flake8_torchperf.project.stores.collection import collection_paused
from flake8_torchperf.suspects.nominate import nominate, with_compiled
from flake8_torchperf.syntax.compile_guards import speaks_of_compiling
from flake8_torchperf.syntax.contract_comments import promises

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flake8_torchperf.findings.catalogue import Catalogue
    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.history.profile import Profiled
    from flake8_torchperf.interpreter.driver.watched_values import Watched
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.frequency.own_heat import NameEvidence
    from flake8_torchperf.judgement.judged_site import Judged, JudgedSite
    from flake8_torchperf.judgement.review.caller_review import CallerReview
    from flake8_torchperf.judgement.worth.queue import Before
    from flake8_torchperf.options import Options
    from flake8_torchperf.program.running import Program
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.suspects.nominate import Suspects
    from flake8_torchperf.torch_compile.compiled_code import CompiledCode
    from flake8_torchperf.values.values import Value


# The safety of fixes that are planned by default: messages mark findings that have such a fix.
MARKED = frozenset(("safe",))


def lint(
    source: str, filename: str, options: Options, safeties: frozenset[str] = MARKED
) -> list[Finding]:
    """Return the findings in a module's source text. Raises SyntaxError if it does not parse."""
    lines = tuple(io.StringIO(source, newline="").readlines())
    tree = ast.parse(source)
    if not concerns(lines, filename):
        return []
    return lint_tree(tree, lines, filename, options, safeties=safeties)


def lint_tree(
    tree: ast.Module,
    lines: Sequence[str],
    filename: str,
    options: Options,
    reads: dict[str, str] | None = None,
    safeties: frozenset[str] = MARKED,
) -> list[Finding]:
    """Return the findings in a module whose ast is already built, in the order of the file.

    The caller has already checked with `prefilter.concerns` that the module concerns torch.
    ``reads`` receives the path of every other module that was looked for and of every package that
    was searched, each with the digest of its content. ``safeties`` are those of the fixes to plan.
    """
    if options.chosen.leaves_out(filename):
        return []
    with opened(tree, lines, filename, reads) as module:
        compiled = compiled_in(module, options, reads)
        suspects = with_compiled(nominate(module, _called(options)), module, compiled)
        # A user who asks for reasons also learns what a contract could not see.
        if not suspects and not options.explain:
            return []
        found = _findings(module, suspects, compiled, options, reads)
        told = [one for one in found if options.chosen.tells(one.code, filename)]
        return _with_edits(told, module, safeties, reads)


@contextmanager
def opened(
    tree: ast.Module, lines: Sequence[str], filename: str, reads: dict[str, str] | None
) -> Iterator[ModuleMap]:
    """Map a module, record in ``reads`` what is asked of others, and drop the map afterwards."""
    path = Path(filename)
    with collection_paused(), noting(reads):
        module = read_module(tree, as_counted(lines), path if os.path.isfile(path) else None)
        record(module.checked)
        try:
            yield module
        finally:
            module.forget()


@dataclass(frozen=True, slots=True)
class LineValues:
    """The facts about one line: the function around it, and the values in it.

    ``place`` is a site that waits for nothing, judged where the line stands; None if the analysis
    evaluates nothing in the line. ``placed_at`` has the file and the line that put a tensor on a
    device, by the identity of its expression, where another function does. ``called`` are the
    functions of the project that the line calls. ``is_spent`` is True if the analysis of the code
    around the line ended at the limit of its steps. ``analysis`` and ``program`` answer further
    questions.
    """

    module: ModuleMap
    info: FunctionInfo | None
    place: JudgedSite | None
    values: list[tuple[ast.expr, Value]]
    placed_at: dict[int, tuple[str, int]]
    called: list[FunctionInfo]
    is_spent: bool
    analysis: Analysis
    program: Program


def values_in(source: str, filename: str, line: int, options: Options) -> LineValues:
    """Interpret the code around a line, even if it has no suspects. Raises SyntaxError."""
    from flake8_torchperf.interpreter.driver.watched_values import values_in_line
    from flake8_torchperf.judgement.review.caller_review import CallerReview
    from flake8_torchperf.project.files import split_lines

    tree = ast.parse(source)
    path = Path(filename)
    module = read_module(tree, split_lines(source), path if os.path.isfile(path) else None)
    _, analysis, _, heats = prepared(module, compiled_in(module, options, None), options, None)
    around = function_at(module, line)
    review = CallerReview(analysis, heats)
    if around is not None:  # as a run does for suspects
        review.package.warm(around)
        review.arguments.tell([around])
    info, watched = values_in_line(module, line, analysis)
    values = watched.values()
    sites = _judged_there(watched, module, info, heats, review)
    judged = (one for node, _ in values for one in sites if one.node is node)
    return LineValues(
        module,
        info,
        next(judged, None),
        [(node, _reviewed_value(node, value, sites)) for node, value in values],
        {id(one.node): one.placed_at for one in sites if one.placed_at is not None},
        watched.called(analysis),
        watched.is_spent,
        analysis,
        heats.program,
    )


def _judged_there(
    watched: Watched,
    module: ModuleMap,
    info: FunctionInfo | None,
    heats: FunctionHeats,
    review: CallerReview,
) -> list[JudgedSite]:
    """Return the sites of the expressions in a line, judged as the sites of findings are."""
    from flake8_torchperf.findings.locate import locate
    from flake8_torchperf.judgement.judge import judge

    with watched.recorded():
        result = judge(watched.met, heats)
        if info is None:
            result = review.inner.warmed(result, module, None)
        else:
            result = review.rewarmed(result, watched.met, info)
            result = review.rates.rated(result.updated(review.reviewed(result, info)), info)
    return [locate(one, result.snippet) for one in result.sites]


def _reviewed_value(node: ast.expr, value: Value, sites: Sequence[JudgedSite]) -> Value:
    """Return a value; a tensor as the callers show it, who may show where it lies."""
    read = (one.operand for one in sites if one.node is node)
    tensor = next(filter(None, read), value)
    return tensor if type(tensor) is type(value) else value


def _with_edits(
    found: list[Finding],
    module: ModuleMap,
    safeties: frozenset[str],
    reads: dict[str, str] | None,
) -> list[Finding]:
    """Return the findings with the edits of their fixes; most files have no fixable finding."""
    if not any(finding.rule.fixes for finding in found):
        return found
    from flake8_torchperf.fixes.engine.planning import with_edits

    return with_edits(found, module, safeties, reads)


def compiled_in(
    module: ModuleMap, options: Options, reads: dict[str, str] | None
) -> CompiledCode | None:
    """Return what the module compiles, or others of it; None for most modules."""
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.project.texts.asked_texts import COMPILING

    project, assume = Project(module, reads), options.assume_compiled
    if assume or speaks_of_compiling(module.lines) or project.all_modules_that_say(COMPILING):
        from flake8_torchperf.torch_compile.regions import find_compiled

        return find_compiled(module, assume=assume, project=project)
    return None


def _called(options: Options) -> frozenset[str]:
    """Return the functions that the user's own pages name; our pages name none."""
    if not options.rules:
        return frozenset()
    from flake8_torchperf.findings.catalogue import load_catalogue

    return load_catalogue(options.rules).called_functions


def _profiled(module: ModuleMap, options: Options) -> Profiled | None:
    """Return what a profile says of the module's statements; None if it says nothing."""
    if options.profile is None or module.path is None:
        return None
    from flake8_torchperf.history.profile import Profiled, read
    from flake8_torchperf.syntax.statement_lines import Statements

    entries = read(options.profile).entries_of(str(module.path))
    return Profiled(entries, Statements(module.tree)) if entries else None


def _as_measured(result: Judged, profiled: Profiled | None, catalogue: Catalogue) -> Judged:
    """Return the sites of a result with the frequencies of a profile, if there is one."""
    if profiled is None:
        return result
    from flake8_torchperf.findings.measured import as_measured

    return as_measured(result, profiled.at, catalogue)


def prepared(
    module: ModuleMap,
    compiled: CompiledCode | None,
    options: Options,
    reads: dict[str, str] | None,
) -> tuple[Catalogue, Analysis, NameEvidence, FunctionHeats]:
    """Return the inputs of an interpretation; ``reads`` receives the files that it opens."""
    from flake8_torchperf.findings.catalogue import told_rules
    from flake8_torchperf.interpreter.driver.function_analysis import module_constant
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.frequency.own_heat import NameEvidence
    from flake8_torchperf.knowledge.conventions import load_conventions
    from flake8_torchperf.knowledge.table import load
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.values.cause import Cause

    catalogue = told_rules(options.rules, preview=options.preview)
    ignored = frozenset(cause for cause in Cause if cause.name in options.without)
    conventions = load_conventions(options.rules)
    if options.without:
        every = [row.id for row in conventions.rows] if Cause.CONVENTION in ignored else ()
        conventions = conventions.without((*options.without, *every))
    analysis = Analysis(
        load(),
        Project(module, reads),
        module_constant,
        catalogue.called_functions,
        compiled,
        conventions=conventions,
        ignored=ignored,
    )
    names = NameEvidence(
        analysis.conventions,
        options.hot + catalogue.hot,
        options.cold,
        ignored,
        lambda: analysis.project.trains,
    )
    return catalogue, analysis, names, FunctionHeats(analysis, names)


def _with_contracts(
    findings: list[Finding], suspects: Suspects, judging: _Judging
) -> list[Finding]:
    """Return the findings, with those of functions that must not wait; most packages have none."""
    analysis, options = judging.analysis, judging.options
    promised = options.sync_free or analysis.project.modules_that_promise()
    if not promised and not promises("".join(analysis.project.linted.lines).encode()):
        return findings
    from flake8_torchperf.contracts.findings import with_contracts
    from flake8_torchperf.judgement.heat import Level

    keys = frozenset(info.key for info in suspects.functions)
    whole = replace(options, scope=Level.COLD)
    return with_contracts(findings, keys, analysis, judging.names, judging.catalogue, whole)


def _reviewed(result: Judged, info: FunctionInfo, review: CallerReview, options: Options) -> Judged:
    """Return the sites with the heat that the function's callers give them.

    ``options.review`` keeps the sites that the callers show to be none.
    """
    from flake8_torchperf.judgement.heat import Level

    if options.review or options.scope is not Level.COLD:
        found = review.reviewed(result, info)
        result = result.updated(found) if options.review else found
    return review.rates.rated(result, info)


@dataclass(frozen=True, slots=True)
class _Judging:
    """Judges the code of a module: the parts of the linter that it takes."""

    analysis: Analysis
    heats: FunctionHeats
    review: CallerReview
    catalogue: Catalogue
    profiled: Profiled | None
    options: Options
    names: NameEvidence

    @property
    def follows(self) -> bool:
        """True if calls in other functions count."""
        from flake8_torchperf.judgement.heat import Level

        return self.options.scope is not Level.COLD or self.options.review

    def _callers_first(self, chosen: list[FunctionInfo]) -> list[FunctionInfo]:
        return self.heats.calls(self.analysis.project.linted).callers_first(chosen)

    def meets_site(self, chosen: list[FunctionInfo], module: ModuleMap | None) -> bool:
        """True if the functions, or the statements outside functions, have a site of any kind.

        Without a module, the functions alone.
        """
        from flake8_torchperf.interpreter.driver.function_analysis import (
            interpret_function,
            interpret_module,
        )

        for info in self._callers_first(chosen):
            if interpret_function(info, self.analysis).sites:
                return True
        return module is not None and bool(interpret_module(module, self.analysis).sites)

    def judged(self, chosen: list[FunctionInfo], module: ModuleMap | None) -> list[Judged]:
        """Return the sites of the functions to which a rule objects, and those outside functions.

        Without a module, those of the functions alone.
        """
        from flake8_torchperf.findings.report import is_objected_to
        from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
        from flake8_torchperf.judgement.heat import SAID
        from flake8_torchperf.judgement.judge import judge
        from flake8_torchperf.judgement.review.heads import Heads
        from flake8_torchperf.judgement.worth.tails import Tails

        tails = Tails(self.analysis, self.heats)
        heads = Heads(self.review.callers, tails)
        objected: list[Judged] = []
        before: list[Before] = []
        for info in self._callers_first(chosen):
            met = interpret_function(info, self.analysis)
            result = judge(met, self.heats)
            if self.follows:
                result = self.review.rewarmed(result, met, info)
            said = self.profiled is not None and self.heats.own(info).cause in SAID
            profiled = None if said else self.profiled
            measured = _as_measured(result, profiled, self.catalogue)
            if is_objected_to(measured, self.catalogue, self.options):
                result = _reviewed(result, info, self.review, self.options)
                objected.append(_as_measured(result, profiled, self.catalogue))
                before.append(partial(heads.before, info) if self.follows else _unknown)
            tails.note(info, result)
        if module is not None:
            objected.append(self._module_level(module))
            before.append(_unknown)
        return list(map(tails.queued, objected, before))

    def _module_level(self, module: ModuleMap) -> Judged:
        """Return the sites of the statements outside functions."""
        from flake8_torchperf.interpreter.driver.function_analysis import interpret_module
        from flake8_torchperf.judgement.judge import judge

        result = judge(interpret_module(module, self.analysis), self.heats)
        if self.follows:
            result = self.review.inner.warmed(result, module, None)
        return _as_measured(result, self.profiled, self.catalogue)


def _unknown(_function: str) -> None:
    return None


@contextmanager
def _judging(
    module: ModuleMap,
    compiled: CompiledCode | None,
    options: Options,
    reads: dict[str, str] | None,
) -> Iterator[_Judging]:
    """Yield what judges a module's code, and drop what it has learnt afterwards."""
    from flake8_torchperf.interpreter.engine.followed import record_followed
    from flake8_torchperf.judgement.review.caller_review import CallerReview

    catalogue, analysis, names, heats = prepared(module, compiled, options, reads)
    review = CallerReview(analysis, heats)
    profiled = _profiled(module, options)
    try:
        yield _Judging(analysis, heats, review, catalogue, profiled, options, names)
        record_followed(analysis)
    finally:
        review.package.forget()
        analysis.forget()
        heats.forget()


def _findings(
    module: ModuleMap,
    suspects: Suspects,
    compiled: CompiledCode | None,
    options: Options,
    reads: dict[str, str] | None,
) -> list[Finding]:
    """Return the findings of a module, in the order of the file."""
    found = None
    if not imports_torch(module):
        with _judging(module, compiled, options, reads) as judging:
            found = _of_quiet(module, suspects, judging)
    if found is None:
        with _judging(module, compiled, options, reads) as judging:
            found = _judged(module, suspects, judging)
    found.sort(key=lambda f: (f.line, f.column, f.code))
    regions = allowed_regions(module, options.allow_comments) if found else []
    return [one for one in found if not any(region.holds(one.line) for region in regions)]


def _of_quiet(module: ModuleMap, suspects: Suspects, judging: _Judging) -> list[Finding] | None:
    """Return the findings of a module without sites, which only contracts give; None of others.

    Few modules that import no torch have a site. Interpreting all their suspects costs a fraction
    of following the calls of the whole project to learn how often each of them runs. What is
    interpreted does not depend on that.
    """
    from flake8_torchperf.judgement.heat import Level
    from flake8_torchperf.judgement.review.selection import Selection

    if not judging.follows:
        return None
    judging.review.arguments.tell(suspects.functions)
    kinds = judging.catalogue.kinds_when_cold()
    selection = Selection(module, judging.analysis, judging.heats, kinds)
    every = selection.chosen(suspects.functions, Level.COLD)
    if judging.meets_site(every, module if suspects.module_level else None):
        return None
    return _with_contracts([], suspects, judging)


def _judged(module: ModuleMap, suspects: Suspects, judging: _Judging) -> list[Finding]:
    """Return the findings of the suspects that may have some at the scope of the settings."""
    from flake8_torchperf.findings.report import report
    from flake8_torchperf.judgement.heat import Level
    from flake8_torchperf.judgement.review.selection import Selection

    catalogue, options, review = judging.catalogue, judging.options, judging.review
    # With a profile, a place that looks cold may have run often.
    looked_at = min(options.scope, Level.HOT) if judging.profiled is None else Level.COLD
    kinds = catalogue.kinds_when_cold()
    selection = Selection(module, judging.analysis, judging.heats, kinds)
    if judging.follows:
        for info in selection.unheard(suspects.functions):
            review.package.warm(info)
    review.arguments.tell(suspects.functions)
    chosen = selection.chosen(suspects.functions, looked_at)
    whole = suspects.module_level and selection.module_level(looked_at)
    found = [
        one
        for result in judging.judged(chosen, module if whole else None)
        for one in report(result, catalogue, options, module.qualify)
    ]
    _note_lines(found, judging.analysis.project)
    return _with_contracts(found, suspects, judging)


def _note_lines(found: Sequence[Finding], project: Project) -> None:
    """Record that findings name the lines of calls in other modules."""
    heats = (heat for one in found for heat in (one.site.heat, one.site.heat.frequency))
    for call in dict.fromkeys(call for heat in heats for call in heat.named):
        if call.path and call.path != str(project.linted.path):
            project.note_lines(call.path, call.caller)
