"""``for ...: y = f(int(x.max()))`` -> ``x_max_value = int(x.max())`` before the loop.

For a read that each round repeats, although the loop does not change the tensor.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.shared.code import fresh_name, named_after, names_in
from flake8_torchperf.fixes.shared.effects import is_pure
from flake8_torchperf.fixes.shared.loops.unchanged import changes_of, is_unchanged, runs_always
from flake8_torchperf.syntax.traversal import below
from flake8_torchperf.values.site import SiteKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings


def plan(place: Place) -> Edit | None:
    """Apply to a read that each round of a loop evaluates, and all equal ones in the loop."""
    read, around = place.site.node, place.around
    if place.site.kind is not SiteKind.HOST_READ or not isinstance(read, ast.Call):
        return None
    if not is_pure(read, around) or _has_property(read):
        return None
    loop = _outermost(place, read)
    if loop is None:
        return None
    inside = {id(one) for one in below(loop)}
    equal = around.known(_reads_by_text).get(ast.dump(read), [])
    reads = [one for one in equal if id(one) in inside]
    base = named_after(read.func.value if isinstance(read.func, ast.Attribute) else read.args[0],
                       around)  # fmt: skip
    name = fresh_name(place, loop, (f"{base}_value", f"{base}_number", f"{base}_read"))
    if not name or reads[0] is not read:
        return None
    return Edit((loop, *reads), {"name": name, "read": ast.unparse(read)})


def _reads_by_text(around: Surroundings) -> dict[str, list[ast.AST]]:
    """Return the reads of a module's reported sites, by their dump."""
    found: dict[str, list[ast.AST]] = {}
    for site in around.reported(SiteKind.HOST_READ):
        found.setdefault(ast.dump(site.node), []).append(site.node)
    return found


def _outermost(place: Place, read: ast.Call) -> ast.For | None:
    """Return the outermost loop whose rounds all read, and that changes nothing of what is read."""
    names = names_in([read])
    chosen: ast.For | None = None
    inner: ast.AST = read
    while (loop := _loop(place, inner)) is not None and runs_always(place, inner, loop):
        given = changes_of(loop, place.around).given
        if names & given or not is_unchanged(names, loop, place.around):
            break
        chosen = inner = loop
    return chosen


def _loop(place: Place, node: ast.AST) -> ast.For | None:
    """Return the innermost loop around a node, if it is a ``for`` in whose body the node stands."""
    here = place.around.parent(node)
    inner: ast.AST = node
    while here is not None and not isinstance(here, (ast.While, ast.FunctionDef, ast.Lambda)):
        if isinstance(here, ast.For):
            return here if any(one is inner for one in here.body) else None
        if isinstance(here, (ast.comprehension, ast.GeneratorExp, ast.AsyncFunctionDef)):
            return None
        inner, here = here, place.around.parent(here)
    return None


def _has_property(read: ast.Call) -> bool:
    """True if an expression holds an attribute that is not called, which may do anything."""
    calls = {id(one.func) for one in ast.walk(read) if isinstance(one, ast.Call)}
    return any(isinstance(one, ast.Attribute) and id(one) not in calls for one in ast.walk(read))


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]]:
    """Read before the loop."""
    from flake8_torchperf.fixes.shared.nodes.before_loop import read_before

    loop, *reads = nodes
    name = edit.facts["name"]
    line = f"{name} = {edit.facts['read']}\n"
    return [read_before(loop, dict.fromkeys(reads, name), line), *reads]
