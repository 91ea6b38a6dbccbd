"""``for i in range(n): x[i] = 0`` -> ``x[:n] = 0``: one operation sets all elements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.shared.code import argument_text, names_in, text_of, used_outside
from flake8_torchperf.fixes.shared.numbers import is_whole
from flake8_torchperf.fixes.shared.texts import is_number_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place

_NUMBERS = frozenset(("builtins.int", "builtins.float", "builtins.bool"))


def plan(place: Place) -> Edit | None:
    """Apply to a loop over a range that does nothing but set elements to one number."""
    loop = place.around.statement(place.site.node)
    if not isinstance(loop, ast.For) or loop.orelse or loop.type_comment:
        return None
    match loop.target, loop.body:
        case (
            ast.Name(id=counter),
            [ast.Assign(targets=[ast.Subscript(value=tensor, slice=index)], value=value)],
        ):
            pass
        case _:
            return None
    bounds = _bounds(place, loop.iter)
    written = _index(place, index, counter, bounds)
    if not written or not _is_number(place, value) or counter in names_in([tensor, value]):
        return None
    if not isinstance(tensor, (ast.Name, ast.Attribute)) or used_outside(place, counter, loop):
        return None
    text = f"{text_of(place, tensor)}[{written}] = {argument_text(place, value)}\n"
    return Edit((loop,), {"texts": (text,)})


def _bounds(place: Place, iterated: ast.expr) -> str:
    """Return "2:n" for ``range(2, n)``; "" for another iterable."""
    match iterated:
        case ast.Call(func=func, args=[end], keywords=[]):
            start = ""
        case ast.Call(func=func, args=[first, end], keywords=[]):
            start = "" if ast.unparse(first) == "0" else argument_text(place, first)
        case _:
            return ""
    if place.around.qualified(func) != "builtins.range" or isinstance(end, ast.Starred):
        return ""
    stop = argument_text(place, end)
    # Formatters put spaces around the colon where a bound is more than a name or a number.
    plain = all(one.isidentifier() or one.isdigit() or not one for one in (start, stop))
    return f"{start}:{stop}" if plain else f"{start} : {stop}".lstrip()


def _index(place: Place, index: ast.expr, counter: str, bounds: str) -> str:
    """Return the source of an index with the bounds in place of the counter; "" if unclear."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    written: list[str] = []
    for one in parts:
        if isinstance(one, ast.Name) and one.id == counter:
            written.append(bounds)
        elif counter not in names_in([one]) and _is_basic(place, one):
            written.append(ast.unparse(one))
        else:
            return ""
    return ", ".join(written) if bounds and written.count(bounds) == 1 else ""


def _is_basic(place: Place, part: ast.expr) -> bool:
    """True for slices, ints, None and ``...``, which index as they would beside a slice."""
    if isinstance(part, ast.Slice):
        return True
    if isinstance(part, ast.Constant) and part.value in (None, ...):
        return True
    return is_whole(part, place.around)


def _is_number(place: Place, value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _is_number(place, operand)
    return is_number_parameter(value, place.around, _NUMBERS)


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Replace the loop by one assignment."""
    from flake8_torchperf.fixes.shared.nodes import statements

    return statements.replaced(nodes, edit)
