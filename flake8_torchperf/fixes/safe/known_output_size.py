"""``n = r.sum().item()`` ... ``repeat_interleave(x, r)`` -> ``..., output_size=n)``: it is known.

Only where the sum of the same repeats was read before, in the same block, nothing was assigned
since, and there is a repeat for each row. The size is then that number.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.numbers import is_position
from flake8_torchperf.fixes.shared.tensors import has_one_value, only_value
from flake8_torchperf.syntax.traversal import below

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings

# Methods whose result has one element for each element of the tensor, with any other arguments.
_ELEMENTWISE = frozenset(("long", "int", "clamp", "clamp_min", "clamp_max", "abs", "round", "relu",
                          "contiguous", "clone", "detach", "to", "cpu", "cuda"))  # fmt: skip
_SIZED = frozenset(("ones", "zeros", "full", "empty", "arange", "randint", "randperm"))


def plan(place: Place) -> Edit | None:
    """Apply to repeats whose sum has a name, if there is one repeat for each row."""
    edit, call = planned(place), place.site.node
    repeats = _repeats(call, place)
    if edit is None or not isinstance(call, ast.Call) or not isinstance(repeats, ast.Name):
        return None
    return edit if _of_rows(call, repeats, place.around) else None


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
        for node in below(function)
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


def _of_rows(call: ast.Call, repeats: ast.Name, around: Surroundings) -> bool:
    """True if there surely is one repeat for each element of the repeated dimension.

    A single repeat is used for all rows, so its sum is not the size of the result.
    """
    repeated = _repeated(call, around)
    dimension = _dimension(call, around)
    if not isinstance(repeated, ast.Name) or dimension is None:
        return False
    if not has_one_value(repeated, around):
        return False
    made = only_value(repeats, around)
    return made is not None and _fits(made, repeated.id, dimension, around)


def _repeated(call: ast.Call, around: Surroundings) -> ast.expr | None:
    if around.qualified(call.func) == "torch.repeat_interleave":
        return call.args[0] if call.args else None
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _dimension(call: ast.Call, around: Surroundings) -> int | None:
    """Return the dimension that is given as a literal, else None."""
    given = [one.value for one in call.keywords if one.arg == "dim"]
    before = 2 if around.qualified(call.func) == "torch.repeat_interleave" else 1
    given += call.args[before : before + 1]
    match given:
        case [ast.Constant(value=value)] if type(value) is int:
            return value
    return None


def _fits(made: ast.expr, rows: str, dimension: int, around: Surroundings) -> bool:
    """True if an expression has as many elements as a dimension, or cannot serve as repeats."""
    match made:
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _ELEMENTWISE:
            if not around.qualified(made.func).startswith("torch."):
                return _fits(inner, rows, dimension, around)
        case ast.Compare(left=left, ops=[_], comparators=[ast.Constant()]):
            return _fits(left, rows, dimension, around)
        case ast.BinOp(left=left, right=ast.Constant()):
            return _fits(left, rows, dimension, around)
        # A column of a matrix; with more dimensions the index gives a matrix, which is an error.
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=[ast.Slice() as part, _])):
            whole = part.lower is None and part.upper is None and part.step is None
            return whole and name == rows and dimension == 0 and is_position(made.slice.elts[1])  # type: ignore[attr-defined]
        case ast.Call(func=func):
            name = around.qualified(func).removeprefix("torch.")
            return name in _SIZED and _sized_as(made, name, rows, dimension)
    return False


def _sized_as(made: ast.Call, name: str, rows: str, dimension: int) -> bool:
    sizes = made.args
    if name == "randint":
        sizes = [one for one in made.args if isinstance(one, (ast.Tuple, ast.List))]
        sizes += [one.value for one in made.keywords if one.arg == "size"]
    elif name == "full":
        sizes = made.args[:1]
    if len(sizes) != 1:
        return False
    size = sizes[0]
    if isinstance(size, (ast.Tuple, ast.List)):
        if len(size.elts) != 1 or name in ("arange", "randperm"):
            return False
        size = size.elts[0]
    return _is_length(size, rows, dimension)


def _is_length(size: ast.expr, rows: str, dimension: int) -> bool:
    """True for ``len(x)``, ``x.shape[0]`` and ``x.size(0)``."""
    match size:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]):
            return name == rows and dimension == 0
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id=name), attr="shape"),
            slice=ast.Constant(value=at),
        ):
            return name == rows and type(at) is int and at == dimension
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id=name), attr="size"),
            args=[ast.Constant(value=at)],
        ):
            return name == rows and type(at) is int and at == dimension
    return False
