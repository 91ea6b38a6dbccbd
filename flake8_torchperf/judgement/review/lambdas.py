"""Sites in the bodies of lambdas, which run where the lambda is called, not where it is made."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.frequency.propagation import CALLS, called_from
from flake8_torchperf.judgement.heat import Cost, Heat, Level
from flake8_torchperf.suspects.nominate import module_level
from flake8_torchperf.suspects.words import WAITING_CALLS
from flake8_torchperf.syntax.names import called_name
from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.heat import Call
    from flake8_torchperf.judgement.judged_site import Judged, JudgedSite
    from flake8_torchperf.judgement.review.package_callers import PackageCallers
    from flake8_torchperf.judgement.review.package_heats import PackageHeats
    from flake8_torchperf.program.linking import Unit
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.syntax.traversal import Nodes

# Causes of code that runs once, which say nothing of a lambda that is made there.
MADE_ONCE = frozenset((
    Cause.MODULE_LEVEL, Cause.OUTSIDE_STEPS, Cause.BEFORE_STEPS, Cause.SET_UP_ROOT, Cause.NOTHING,
))  # fmt: skip


class Lambdas:
    """Decides how often the lambdas of the linted module run."""

    def __init__(
        self, heats: FunctionHeats, callers: PackageCallers, package: PackageHeats
    ) -> None:
        self._heats = heats
        self._callers = callers
        self._package = package

    def warmed(self, result: Judged, module: ModuleMap, info: FunctionInfo | None) -> Judged:
        """Return the sites of a function or of the module level, with the heat of lambdas.

        What waits in a lambda with a name is told where that is called.
        """
        nodes = module_level(module) if info is None else info.nodes
        named = {id(one.value) for one in nodes.of(ast.Assign)}
        lambdas = [one for one in nodes.of(ast.Lambda) if id(one) not in named]
        if not lambdas:
            return result
        return result.having(self._warmed(one, module, lambdas) for one in result.sites)

    def unit(self, node: ast.AST, module: ModuleMap, info: FunctionInfo) -> Unit | None:
        """Return the lambda of a function around a node as a body; None if there is none."""
        around = _around(node, info.nodes.of(ast.Lambda))
        return None if around is None else self._unit(around, module)

    def _unit(self, one: ast.Lambda, module: ModuleMap) -> Unit | None:
        path = self._callers.program.path_of_module(module)
        return self._callers.program.lambda_at(path, one.lineno, one.col_offset)

    def _warmed(
        self, site: JudgedSite, module: ModuleMap, lambdas: Iterable[ast.Lambda]
    ) -> JudgedSite:
        """Return a site, hot if it is in a lambda that a step runs."""
        if site.heat.cause not in MADE_ONCE or site.heat.why is not None:
            return site
        around = _around(site.node, lambdas)
        unit = None if around is None else self._unit(around, module)
        path = () if unit is None else self.calls_in_steps(unit)
        if not path:
            return site
        cause = Cause.CALLED if path[0].caller else Cause.CALLED_IN_LOOP
        heat = Heat(Level.STEP, cause, "the lambda", around=Level.STEP, calls=path)
        return site.heated(heat.costing(Cost.STEP))

    def calls_in_steps(self, unit: Unit) -> tuple[Call, ...]:
        """Return the calls from a lambda to a step that runs it for certain; none without one."""
        program = self._callers.program
        for run in program.runs(unit).outside_tests:
            site = self._callers.site_at(run)
            if run.is_sure and (site.steps or program.nested_in(run) is None):
                path = self._in_step(site)
                if path:
                    return path
        return ()

    def _in_step(self, site: CallSite) -> tuple[Call, ...]:
        """Return the calls from a place to a step around it; none if there is none."""
        caller, answer = site.caller, self._heats.in_steps(site)
        if answer is not None or caller is None:
            return (called_from(site),) if answer else ()
        self._package.warm(caller)
        heat = self._heats.called(caller)
        if heat.cause in CALLS and heat.around is Level.STEP:
            return (called_from(site), *heat.calls)
        return ()


def waits_in_lambda(nodes: Nodes) -> bool:
    """True if a lambda among some nodes calls what reads or waits by its name."""
    return any(
        isinstance(node, ast.Call) and called_name(node.func) in WAITING_CALLS
        for one in nodes.of(ast.Lambda)
        for node in walk([one.body])
    )


def _around(node: ast.AST, lambdas: Iterable[ast.Lambda]) -> ast.Lambda | None:
    """Return the innermost of some lambdas around a node."""
    around = [one for one in lambdas if any(inner is node for inner in walk([one.body]))]
    return max(around, key=lambda one: (one.lineno, one.col_offset), default=None)
