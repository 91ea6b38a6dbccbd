"""The waits of a function of torch itself: the linter's findings in it, in scope "all"."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from call_waits.sources import Callee
from flake8_torchperf.findings.catalogue import Catalogue, load_catalogue
from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.findings.report import report
from flake8_torchperf.interpreter.driver.function_analysis import interpret_function
from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
from flake8_torchperf.judgement.frequency.own_heat import NameEvidence
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.judge import judge
from flake8_torchperf.options import Options
from flake8_torchperf.syntax.names import called_name
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Reason, Tensor

# The families of rules whose findings wait; of the second, one that reads in a loop.
_WAITING = ("TPF10", "TPF203", "TPF206", "TPF30", "TPF401", "TPF402", "TPF403", "TPF404", "TPF405")
# Why a place is not reached in a plain call, or has nothing to wait for.
_SELDOM = frozenset((
    Cause.ERROR, Cause.TRACING, Cause.NO_DEVICE, Cause.BESIDE_HOST, Cause.HOST_NAME,
    Cause.HOST_ONLY, Cause.FIRST_CALL, Cause.MADE_ONCE, Cause.SOME_STEPS, Cause.NOTHING_TO_DO,
    Cause.CONVERSION, Cause.COPY_ASKED,
))  # fmt: skip
_ALL = Options(scope=Level.COLD)


@dataclass(frozen=True)
class Wait:
    """A place in a function that waits: its node, its line, and the kind of wait."""

    node: ast.AST
    line: int
    operation: str

    @property
    def read(self) -> frozenset[str]:
        """The expressions in it, any of which may be the value that is read."""
        return frozenset(ast.unparse(n) for n in ast.walk(self.node) if isinstance(n, ast.expr))


class Sites:
    """Interprets functions of torch, as they are declared or with one parameter a tensor."""

    def __init__(self) -> None:
        self._catalogue: Catalogue = load_catalogue(())
        self._found: dict[tuple[str, str], list[Wait]] = {}

    def of(self, callee: Callee, tensor: str = "") -> list[Wait]:
        """Return the places at which a function waits by itself."""
        if tensor and not _converts(callee, tensor):
            return []
        key = (callee.info.key, tensor)
        if key not in self._found:
            self._found[key] = self._waits(callee, tensor)
        return self._found[key]

    def _waits(self, callee: Callee, tensor: str) -> list[Wait]:
        module, info = callee.module, callee.info
        analysis, heats = module.analysis, module.heats
        if tensor:
            analysis = replace(analysis, caches={}, observed={}, agreed={})
            parameters = declared_parameters(info, analysis)  # kept by the analysis
            parameters[tensor] = Tensor(Reason(f"`{tensor}` is given a tensor"))
            heats = FunctionHeats(analysis, NameEvidence(analysis.conventions, (), ()))
        result = judge(interpret_function(info, analysis), heats)
        own = heats.own(info).cause
        told = report(result, self._catalogue, _ALL, info.module.qualify)
        found = [f for f in told if _counts(f, own)]
        if tensor:  # code that converts its argument to a number takes tensors; other code may not
            found = [f for f in found if f.site.kind is SiteKind.HOST_READ]
        return [Wait(f.site.node, f.line, f.site.operation) for f in found]


def _converts(callee: Callee, parameter: str) -> bool:
    """True if a function may make a number of a parameter by a call.

    Otherwise it need not be interpreted once more.
    """
    return any(
        isinstance(n, ast.Name) and n.id == parameter
        for call in callee.info.nodes.of(ast.Call)
        if ast.unparse(call.func).startswith(_CONVERSIONS) or called_name(call.func) in _READS
        for n in ast.walk(call)
    )


_CONVERSIONS = ("float", "int", "bool", "complex", "round", "math.", "operator.")
_READS = ("item", "tolist")


def _counts(finding: Finding, own: Cause) -> bool:
    """True if the finding is a wait of a plain call, however seldom the function is called."""
    heat = finding.site.heat
    if (heat.cause in _SELDOM and heat.cause is not own) or heat.why in _SELDOM:
        return False
    return finding.code.startswith(_WAITING)
