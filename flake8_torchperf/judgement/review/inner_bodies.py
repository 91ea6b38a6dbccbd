"""Sites in the bodies of lambdas and nested functions.

These run where the function is called, not where it is made.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.judgement.frequency.call_graph import narrowed
from flake8_torchperf.judgement.frequency.propagation import CALLS, called_from
from flake8_torchperf.judgement.heat import Cost, Heat, Level
from flake8_torchperf.judgement.review.package_heats import WARMED
from flake8_torchperf.suspects.nominate import module_level
from flake8_torchperf.suspects.words import WAITING_CALLS
from flake8_torchperf.syntax.names import called_name
from flake8_torchperf.syntax.traversal import inside, once, walk
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

# Causes that say how often the code around a body runs, and nothing of the body made there.
OF_THE_MAKER = WARMED.union((
    Cause.MODULE_LEVEL, Cause.OUTSIDE_STEPS, Cause.BEFORE_STEPS, Cause.SET_UP_ROOT,
))  # fmt: skip


class InnerBodies:
    """Decides how often the lambdas and the nested functions of the linted module run."""

    def __init__(
        self, heats: FunctionHeats, callers: PackageCallers, package: PackageHeats
    ) -> None:
        self._heats = heats
        self._callers = callers
        self._package = package

    def warmed(self, result: Judged, module: ModuleMap, info: FunctionInfo | None) -> Judged:
        """Return the sites of a function or of the module level, hot if a step runs their body.

        What waits in a lambda is told where the same code calls it by a name.
        """
        nodes = module_level(module) if info is None else info.nodes
        lambdas = nodes.of(ast.Lambda)
        if lambdas:
            called = _called_in(module.tree if info is None else info.tree)
            named = {
                id(one.value)
                for one in nodes.of(ast.Assign)
                if any(isinstance(name, ast.Name) and name.id in called for name in one.targets)
            }
            lambdas = [one for one in lambdas if id(one) not in named]
        if not lambdas and not any(site.is_nested for site in result.sites):
            return result
        return result.having(self._warmed(one, module, info, lambdas) for one in result.sites)

    def path_to_step(self, site: JudgedSite, info: FunctionInfo) -> tuple[Call, ...]:
        """Return the calls from the innermost body around a site to a step; none without one."""
        around = _around(site.node, info.nodes.of(ast.Lambda))
        unit = self._unit(site, around, info.module, info)
        return () if unit is None else self._calls_in_steps(unit)

    def _unit(
        self,
        site: JudgedSite,
        around: ast.Lambda | None,
        module: ModuleMap,
        info: FunctionInfo | None,
    ) -> Unit | None:
        """Return a lambda around a site, or the nested function, as a body; None for no such."""
        program = self._callers.program
        if around is not None:
            path = program.path_of_module(module)
            return program.lambda_at(path, around.lineno, around.col_offset)
        if info is None or not site.is_nested:
            return None
        return program.inside(info, site.function)

    def _warmed(
        self,
        site: JudgedSite,
        module: ModuleMap,
        info: FunctionInfo | None,
        lambdas: Iterable[ast.Lambda],
    ) -> JudgedSite:
        """Return a site, hot if it is in a lambda or a nested function that a step runs."""
        if site.heat.cause not in OF_THE_MAKER or site.heat.why is not None:
            return site
        around = _around(site.node, lambdas)
        unit = self._unit(site, around, module, info)
        path = () if unit is None else self._calls_in_steps(unit)
        if not path:
            return site
        name = site.function.rpartition(".")[2] if around is None else "the lambda"
        cause = Cause.CALLED if path[0].caller else Cause.CALLED_IN_LOOP
        heat = Heat(Level.STEP, cause, name, around=Level.STEP, calls=path)
        return site.heated(heat.costing(Cost.STEP))

    def _calls_in_steps(self, unit: Unit) -> tuple[Call, ...]:
        """Return the calls from a body to a step that runs it for certain; none without one."""
        program = self._callers.program
        for run in program.runs(unit).outside_tests:
            site = self._callers.site_at(narrowed(run, self._callers.site_at))
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


@once
def _called_in(code: ast.AST) -> frozenset[str]:
    """Return the names that a piece of code calls."""
    calls = inside(code, ast.Call)
    return frozenset(one.func.id for one in calls if isinstance(one.func, ast.Name))


def _around(node: ast.AST, lambdas: Iterable[ast.Lambda]) -> ast.Lambda | None:
    """Return the innermost of some lambdas around a node."""
    around = [one for one in lambdas if any(inner is node for inner in walk([one.body]))]
    return max(around, key=lambda one: (one.lineno, one.col_offset), default=None)
