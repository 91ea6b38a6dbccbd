"""Waits that are the aim of the code: it measures time, records a graph, or lets processes meet."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.loop_kinds import STATEMENTS, takes_step
from flake8_torchperf.judgement.frequency.propagation import CALLS
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.syntax.traversal import FUNCTIONS, children, walk
from flake8_torchperf.values.site import SiteKind

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.judgement.evidence import Evidence

# Names in functions that measure time or record a graph: `torch.cuda.Event.elapsed_time`,
# `time.perf_counter`, `torch.cuda.CUDAGraph.capture_begin`.
MEASURING = frozenset((
    "elapsed_time", "perf_counter", "perf_counter_ns", "CUDAGraph", "capture_begin",
))  # fmt: skip
# Clocks that code also reads for other reasons: beside a wait, they measure.
CLOCKS = frozenset((
    "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.process_time",
    "timeit.default_timer", "datetime.datetime.now",
))  # fmt: skip


def is_the_aim(e: Evidence) -> bool:
    """True for an explicit synchronisation that measures time, records a graph or joins processes.

    It is also taken as intended in a function that is only known to be given tensors, because no
    step is known to wait for it.
    """
    if e.kind is not SiteKind.SYNCHRONIZE:
        return False
    if e.base.level is Level.HOT or _names(e.place.node, MEASURING):
        return True
    return _joins_processes(e) or _is_beside_clock(e.node, e.place)


def _names(function: ast.AST | None, words: frozenset[str]) -> bool:
    return function is not None and any(
        (isinstance(inner, ast.Attribute) and inner.attr in words)
        or (isinstance(inner, ast.Name) and inner.id in words)
        for inner in walk([function])
    )


def _joins_processes(e: Evidence) -> bool:
    """True for a barrier that no step itself calls."""
    is_step = e.base.level is Level.STEP and e.base.cause not in CALLS
    if "barrier" not in e.operation or is_step:
        return False
    return not any(takes_step(place.node) for place in e.place.loops)


def _is_beside_clock(node: ast.AST, ctx: Context) -> bool:
    """True if a statement beside a wait reads a clock, in the same round of the same loop."""
    scope: ast.AST = ctx.module.tree if ctx.node is None else ctx.node
    return any(
        isinstance(inner, ast.Call) and ctx.module.qualify(inner.func) in CLOCKS
        for inner in walk(_beside(node, scope))
    )


def _beside(node: ast.AST, scope: ast.AST) -> list[ast.AST]:
    """Return the statements beside a node, and beside the branches and blocks around it.

    Loops and functions are left out, and what stands outside the innermost one around the node.
    """
    found: list[ast.AST] = []
    around: ast.AST | None = scope
    while around is not None:
        inner: ast.AST | None = None
        for child in children(around):
            if not isinstance(child, (ast.stmt, ast.ExceptHandler)):
                continue
            if _holds(child, node):
                inner = child if hasattr(child, "body") else None
            elif not isinstance(child, (*STATEMENTS, *FUNCTIONS, ast.ClassDef)):
                found.append(child)
        if isinstance(inner, (*STATEMENTS, *FUNCTIONS, ast.ClassDef)):
            found = []
        around = inner
    return found


def _holds(outer: ast.stmt | ast.ExceptHandler, node: ast.AST) -> bool:
    """True if a statement encloses an expression or statement of the same module."""
    if not isinstance(node, (ast.expr, ast.stmt)):
        return False
    begin, end = (
        (outer.lineno, outer.col_offset),
        (outer.end_lineno or 0, outer.end_col_offset or 0),
    )
    return begin <= (node.lineno, node.col_offset) < end
