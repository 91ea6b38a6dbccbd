"""``x[:, ids] = 0`` -> ``x.index_fill_(1, ids, 0)``: the number is passed with the kernel.

`index_fill_` takes only one int64 vector, while an index may have another dtype or shape. The code
that makes the index must show that it is an int64 vector.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.safe.fill_element import assignment, is_number
from flake8_torchperf.fixes.shared.numbers import is_whole
from flake8_torchperf.fixes.shared.tensors import is_int64, only_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings


def plan(place: Place) -> Edit | None:
    """Apply to a number that is assigned to positions along one dimension."""
    statement = assignment(place)
    if statement is None or place.site.operation != "positions":
        return None
    target = statement.targets[0]
    assert isinstance(target, ast.Subscript)
    dimension = _dimension(target.slice)
    if dimension is None or not is_number(statement.value, place.around):
        return None
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if not _is_vector(parts[dimension], place.around):
        return None
    return Edit((statement,), {"dimension": dimension})


def _dimension(index: ast.expr) -> int | None:
    """Return the dimension of the positions; None where other parts of the index select too."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    given = [n for n, part in enumerate(parts) if not _is_all(part)]
    kinds = (ast.Name, ast.Call, ast.Subscript)
    if len(given) != 1 or not isinstance(parts[given[0]], kinds):
        return None
    return given[0]


def _is_vector(node: ast.expr, around: Surroundings) -> bool:
    """True if an index surely has one dimension and is int64, or becomes int64 by `long`."""
    match node:
        case ast.Name():
            value = only_value(node, around)
            return value is not None and _is_vector(value, around)
        case ast.Call(func=func, args=[bound], keywords=keywords):
            name = around.qualified(func)
            plain = all(one.arg == "device" for one in keywords)
            if plain and (name == "torch.randperm" or name == "torch.arange"):
                return name == "torch.randperm" or is_whole(bound, around)
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args, keywords=[]):
            flat = name in ("flatten", "ravel") and not args
            if name in ("view", "reshape") and len(args) == 1:
                flat = ast.unparse(args[0]) in ("-1", "(-1,)")
            if name == "long" and not args:
                return _is_flat(inner)
            return flat and _is_positions(inner, around)
        case ast.Subscript(value=ast.Call() as made, slice=ast.Constant(value=int())):
            as_tuple = any(
                one.arg == "as_tuple" and ast.unparse(one.value) == "True" for one in made.keywords
            )
            where = around.qualified(made.func) == "torch.where" and len(made.args) == 1
            return where or (as_tuple and is_int64(made, around))
    return False


def _is_flat(node: ast.expr) -> bool:
    """True for ``x.flatten()`` and ``x.reshape(-1)``."""
    match node:
        case ast.Call(func=ast.Attribute(attr="flatten" | "ravel"), args=[], keywords=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="view" | "reshape"), args=[size], keywords=[]):
            return ast.unparse(size) == "-1"
    return False


def _is_positions(node: ast.expr, around: Surroundings) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="long"), args=[], keywords=[]):
            return True
    return is_int64(node, around)


def _is_all(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step)


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Replace the assignment by a call."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (line,) = nodes
    assert isinstance(line, cst.SimpleStatementLine)
    old = line.body[0]
    assert isinstance(old, cst.Assign)
    target = cst.ensure_type(old.targets[0].target, cst.Subscript)
    dimension = edit.facts["dimension"]
    positions = cst.ensure_type(target.slice[dimension].slice, cst.Index).value
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    arguments = [
        cst.Arg(cst.Integer(str(dimension)), comma=comma),
        cst.Arg(build.bare(positions), comma=comma),
        cst.Arg(build.bare(old.value)),
    ]
    call = cst.Call(cst.Attribute(target.value, cst.Name("index_fill_")), arguments)
    return [line.with_changes(body=[cst.Expr(call, semicolon=old.semicolon)])]
