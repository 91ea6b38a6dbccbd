"""``n = r.sum().item()`` ... ``repeat_interleave(x, r)`` -> ``..., output_size=n)``: it is known.

Only where the sum of the same repeats was read before, in the same block, nothing was assigned
since, and there is a repeat for each row. The size is then that number.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.repeats import of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place


def plan(place: Place) -> Edit | None:
    """Apply to repeats whose sum has a name, if there is one repeat for each row."""
    edit, call = planned(place), place.site.node
    repeats = _repeats(call, place)
    if edit is None or not isinstance(call, ast.Call) or not isinstance(repeats, ast.Name):
        return None
    return edit if of_rows(call, repeats, place.around) else None


def planned(place: Place) -> Edit | None:
    """Return the edit for repeats whose sum has a name."""
    call = place.site.node
    repeats = _repeats(call, place)
    if repeats is None or not isinstance(call, ast.Call) or not isinstance(repeats, ast.Name):
        return None
    if any(one.arg in (None, "output_size") for one in call.keywords):
        return None
    for before in _statements_before(call, place):
        match before:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name != repeats.id:
                if _is_sum(value, repeats.id, place):
                    return Edit((call,), {"size": name}) if _stays(name, place, call) else None
        if not _leaves_alone(before, repeats.id):
            return None
    return None


def _repeats(call: ast.AST, place: Place) -> ast.expr | None:
    match call:
        case ast.Call(func=func, args=[_, repeats, *_]) if (
            isinstance(func, (ast.Attribute, ast.Name))
            and place.around.qualified(func) == "torch.repeat_interleave"
        ):
            return repeats
        case ast.Call(func=ast.Attribute(attr="repeat_interleave"), args=[repeats, *_]):
            return repeats
    return None


def _statements_before(call: ast.Call, place: Place) -> Iterator[ast.stmt]:
    """Return the statements before the one with a call, in the same block, the nearest first."""
    statement = place.around.statement(call)
    block = None if statement is None else place.around.parent(statement)
    if statement is None or block is None:
        return
    for field in ("body", "orelse", "finalbody"):
        rows = getattr(block, field, None)
        if isinstance(rows, list) and statement in rows:
            yield from reversed(rows[: rows.index(statement)])


def _is_sum(value: ast.expr, repeats: str, place: Place) -> bool:
    """True for ``r.sum().item()`` and ``int(r.sum())``."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return _sums(inner, repeats)
        case ast.Call(func=ast.Name() as func, args=[inner], keywords=[]):
            if place.around.qualified(func) != "builtins.int":
                return False
            return _sums(inner, repeats) or _is_sum(inner, repeats, place)
    return False


def _sums(node: ast.expr, repeats: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sum"), args=[]):
            return name == repeats
    return False


def _leaves_alone(statement: ast.stmt, name: str) -> bool:
    """True if a statement only assigns to other names, and does not mention the tensor."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name:
            return False
        if isinstance(node, ast.NamedExpr):
            return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return all(isinstance(target, ast.Name) for target in targets)


def _stays(name: str, place: Place, call: ast.Call) -> bool:
    """True if the name of the sum is assigned exactly once in the function."""
    function = place.around.function(call)
    if function is None:
        return False
    bound = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
    ]
    return len(bound) == 1 and repeatable(bound[0])


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Pass the size."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    assert isinstance(call, cst.Call)
    size = build.keyword("output_size", cst.Name(edit.facts["size"]))
    return [build.with_arguments(call, [size])]
