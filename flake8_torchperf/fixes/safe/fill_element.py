"""``v[i] = 1.0`` -> ``v[i].fill_(1.0)``: the number is passed with the kernel.

Both write the same bits and raise the same errors, for an element chosen by ints alone and a
number of any dtype.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.safe.fill_on_device import NUMBER_CONSTANTS
from flake8_torchperf.fixes.shared.numbers import is_whole
from flake8_torchperf.fixes.shared.tensors import bindings
from flake8_torchperf.values.values import Strength, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

# A larger integer raises OverflowError in one form and ValueError in the other.
_LARGEST = 2**63


def plan(place: FixPlace) -> Edit | None:
    """Apply to an assignment of a number to a single element."""
    statement = assignment(place)
    operand = place.site.operand
    if statement is None or place.site.operation != "element":
        return None
    # Arrays have no `fill_`: that it is a tensor must be stated, not seen from its use alone.
    if not isinstance(operand, Tensor) or operand.reason.strength < Strength.STATED:
        return None
    if not is_view(place.site.node, place.around):
        return None
    return Edit((statement,)) if is_number(statement.value, place.around) else None


def is_view(target: ast.AST, around: Surroundings) -> bool:
    """True if an element is surely a view: an index that is a tensor, list or bool gives a copy."""
    if not isinstance(target, ast.Subscript):
        return False
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return all(is_whole(one, around) for one in parts)


def assignment(place: FixPlace) -> ast.Assign | None:
    """Return the statement that assigns to the place of a finding, and to nothing else."""
    match place.around.parent(place.site.node):
        case ast.Assign(targets=[target]) as statement if target is place.site.node:
            return statement
    return None


def is_number(node: ast.expr, around: Surroundings) -> bool:
    """True if the value is surely a Python number that may be evaluated after the element.

    A parameter does not count: assignments refuse numpy's float32, but `fill_` takes it. Booleans
    do not count, because `torch.jit.trace` knows no `fill_` and no `full` of a bool.
    """
    match node:
        case ast.Constant(value=value):
            return _is_small(value)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return is_number(operand, around)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
            return is_number(left, around) and is_number(right, around)
        case ast.Call(func=func, args=[ast.Constant()], keywords=[]):
            return around.qualified(func) == "builtins.float"
        case ast.Name(id=name):
            function = around.function(node)
            bound = [] if function is None else bindings(function, name)
            return bool(bound) and all(
                isinstance(one, ast.Constant) and _is_small(one.value) for one in bound
            )
    return around.qualified(node) in NUMBER_CONSTANTS


def _is_small(value: object) -> bool:
    return isinstance(value, float) or (type(value) is int and value < _LARGEST)


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Replace the assignment by a call."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (line,) = nodes
    assert isinstance(line, cst.SimpleStatementLine)
    old = line.body[0]
    assert isinstance(old, cst.Assign)
    target = cst.ensure_type(old.targets[0].target, cst.Subscript)
    func = cst.Attribute(target, cst.Name("fill_"))
    call = cst.Call(func, [cst.Arg(build.bare(old.value))])
    return [line.with_changes(body=[cst.Expr(call, semicolon=old.semicolon)])]
