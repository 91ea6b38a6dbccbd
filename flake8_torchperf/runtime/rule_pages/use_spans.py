"""Finds where a value made in a reported line is used: a loop over a loader, an optimizer's step.

For rules whose page says that their evidence shows there (`shows = "use"`). Knows nothing of torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.syntax.traversal import FUNCTIONS

if TYPE_CHECKING:
    from flake8_torchperf.findings.finding import Finding

Span: TypeAlias = "tuple[int, int]"
# The methods of an optimizer whose cost depends on its options.
STEPS = frozenset({"step", "zero_grad"})


def use_spans(finding: Finding, tree: ast.Module) -> tuple[Span, ...]:
    """Return the lines that use the value by its name; empty if the function or class has none.

    The span of a loop is its head alone, since its body may do other work.
    """
    around = [node for node in ast.walk(tree) if _holds(node, finding)]
    for node in around:
        if isinstance(node, (ast.For, ast.AsyncFor)) and _holds(node.iter, finding):
            return (_head(node),)
        if isinstance(node, ast.Call) and _is_step(node) and _starts_at(node, finding):
            return (_span(node),)
    name = next(filter(None, map(_bound, around)), "")
    if not name:
        return ()
    scope: ast.AST = tree
    wanted = ast.ClassDef if name.startswith("self.") else FUNCTIONS
    for node in around:  # outermost first, so the last one is the innermost
        scope = node if isinstance(node, wanted) else scope
    return tuple(dict.fromkeys(_uses(scope, name)))


def _uses(scope: ast.AST, name: str) -> Iterator[Span]:
    for node in ast.walk(scope):
        match node:
            case ast.For() | ast.AsyncFor() if _names(node.iter, name):
                steps = list(_steps(node, ast.unparse(node.target)))
                yield from steps or [_head(node)]
    yield from _steps(scope, name)


def _steps(scope: ast.AST, name: str) -> Iterator[Span]:
    for node in ast.walk(scope):
        match node:
            case ast.Call(func=ast.Attribute(value=owner)) if (
                _is_step(node) and ast.unparse(owner) == name
            ):
                yield _span(node)


def _is_step(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in STEPS


def _bound(node: ast.AST) -> str:
    """Return the name or attribute that a statement assigns to; "" for other statements."""
    match node:
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
            return ast.unparse(target)
        case ast.AnnAssign(target=(ast.Name() | ast.Attribute()) as target):
            return ast.unparse(target)
    return ""


def _names(expression: ast.expr, name: str) -> bool:
    return any(
        isinstance(one, (ast.Name, ast.Attribute)) and ast.unparse(one) == name
        for one in ast.walk(expression)
    )


def _holds(node: ast.AST, finding: Finding) -> bool:
    """True if a node encloses a finding's place.

    Columns of the ast count bytes; they decide only where statements share a line.
    """
    if not isinstance(node, (ast.stmt, ast.expr)):
        return False
    here = (finding.line, finding.column)
    start = (node.lineno, node.col_offset)
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return start <= here < end


def _starts_at(node: ast.expr, finding: Finding) -> bool:
    return (node.lineno, node.col_offset) == (finding.line, finding.column)


def _span(node: ast.expr) -> Span:
    return node.lineno, node.end_lineno or node.lineno


def _head(node: ast.For | ast.AsyncFor) -> Span:
    return node.lineno, node.iter.end_lineno or node.lineno
