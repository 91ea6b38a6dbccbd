"""Plans the edits of findings, on the ast alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.findings.message import FIXABLE
from flake8_torchperf.findings.rule import SAFE
from flake8_torchperf.fixes.engine.registry import load
from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings
from flake8_torchperf.fixes.engine.twins import together
from flake8_torchperf.interpreter.events.waiting_wrappers import OF_HELPERS
from flake8_torchperf.project.resolver import Project
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Strength, Tensor, tensor_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.findings.finding import Edit, Finding
    from flake8_torchperf.project.module_index import ModuleMap


def with_edits(
    found: list[Finding],
    module: ModuleMap,
    safeties: frozenset[str],
    reads: dict[str, str] | None = None,
) -> list[Finding]:
    """Return the findings with the edits of the chosen safeties; messages mention the safe ones.

    ``reads`` receives what is asked of other modules.
    """
    around = Surroundings(module, [one.site for one in found], Project(module, reads))
    planned = [tuple(_safest(_edits(finding, around, safeties))) for finding in found]
    return [
        finding.offering(edits, FIXABLE if any(one.safety == SAFE for one in edits) else "")
        for finding, edits in zip(found, together(found, planned, around), strict=True)
    ]


def _edits(finding: Finding, around: Surroundings, safeties: frozenset[str]) -> Iterator[Edit]:
    chosen = [(safety, name) for safety, name in finding.rule.fixes if safety in safeties]
    # The code of a helper cannot be rewritten at its call.
    in_helper = not OF_HELPERS.isdisjoint(finding.site.traits)
    if not chosen or not around.holds(finding.site.node) or in_helper:
        return
    for safety, name in chosen:
        edit = _planned(finding, around, safety, name)
        if edit is not None:
            yield edit


def _safest(edits: Iterable[Edit]) -> Iterator[Edit]:
    """Yield the edits, safest first, of which no two rewrite the same code."""
    rewritten: set[tuple[int, ...]] = set()
    for edit in edits:
        code = tuple(map(id, edit.nodes))
        if code not in rewritten:
            rewritten.add(code)
            yield edit


def _planned(finding: Finding, around: Surroundings, safety: str, name: str) -> Edit | None:
    """Return the edit of one fix.

    None where the operand is no tensor on some path, and for a safe fix where it is only assumed to
    be one.
    """
    operand = finding.site.operand
    tensor = None if operand is None else tensor_of(operand)
    if tensor is not None and not _is_known(tensor, finding.site.kind, safety):
        return None
    if safety != SAFE and _is_scripted(finding.site.node, around):
        return None
    try:
        edit = load(safety, name).plan(FixPlace(finding, around))
    except RecursionError:
        return None  # expressions nested too deep for Python's stack are not rewritten
    return None if edit is None else edit.of(safety, name)


def _is_scripted(node: ast.AST, around: Surroundings) -> bool:
    """True in a function that TorchScript compiles, which refuses much of Python."""
    function = around.function(node)
    marks = () if function is None else function.decorator_list
    return any(around.qualified(one).startswith("torch.jit.script") for one in marks)


def _is_known(tensor: Tensor, kind: SiteKind, safety: str) -> bool:
    """True if enough is known of an operand to rewrite it as a tensor."""
    # A loop over parameters is rewritten together with the total that it starts from, and what
    # grows is given to `torch.cat` as before.
    if tensor.partly and kind not in (SiteKind.PARAMETER_LOOP, SiteKind.GROWTH):
        return False
    return safety != SAFE or tensor.reason.strength >= Strength.INFERRED
