"""``a == 0 and b == 0`` -> ``(a == 0) & (b == 0)``: one wait for the elements of one tensor.

Elements that one statement unpacks have one device, dtype and shape, so no comparison of them with
a number can fail, and evaluating all of them is safe.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.shared.code import names_in, text_of
from flake8_torchperf.fixes.shared.evaluation import is_condition
from flake8_torchperf.fixes.shared.tensors import is_tensor
from flake8_torchperf.syntax.traversal import FUNCTIONS, below
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place

_SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Global, ast.Nonlocal)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult)


def plan(place: Place) -> Edit | None:
    """Apply to ``and`` and ``or`` between comparisons of these elements with numbers."""
    term, operand = place.site.node, place.site.operand
    whole = place.around.parent(term)
    if not isinstance(whole, ast.BoolOp) or not isinstance(operand, Tensor):
        return None
    if operand.scalar is not True or operand.dtype != "bool" or not is_condition(place, whole):
        return None
    if not all(map(_is_flag, whole.values)):
        return None
    names = names_in([whole])
    if not names or not _are_elements_of_one(names, whole, place):
        return None
    operator = "&" if isinstance(whole.op, ast.And) else "|"
    text = f" {operator} ".join(f"({_text(one, place)})" for one in whole.values)
    return Edit((whole,), {"text": text})


def _text(node: ast.expr, place: Place) -> str:
    text = text_of(place, node)
    return text[1:-1] if text.startswith("(") else text


def _is_flag(node: ast.expr) -> bool:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            plain = not isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn))
            return plain and _is_element(left) and _is_number(right)
    return False


def _is_element(node: ast.expr) -> bool:
    """True for a name, or a sum, difference or product of names."""
    match node:
        case ast.Name():
            return True
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
            return _is_element(left) and _is_element(right)
    return False


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _are_elements_of_one(names: frozenset[str], node: ast.AST, place: Place) -> bool:
    """True if one statement unpacks all the names and nothing else binds them."""
    function = place.around.function(node)
    if function is None:
        return False
    lines: set[ast.AST | None] = set()
    for one in below(function):
        if isinstance(one, ast.arg) and one.arg in names:
            return False
        if isinstance(one, _SCOPES) and one is not function:
            return False
        if isinstance(one, ast.Name) and one.id in names and not isinstance(one.ctx, ast.Load):
            above = place.around.parent(one)
            lines.add(_unpacks(above, place))
    return len(lines) == 1 and None not in lines


def _unpacks(above: ast.AST | None, place: Place) -> ast.AST | None:
    """Return the statement that unpacks one tensor into the names of a given tuple, else None."""
    while isinstance(above, ast.Tuple):
        statement = place.around.parent(above)
        if not isinstance(statement, ast.Tuple):
            if not isinstance(statement, ast.Assign) or statement.targets != [above]:
                return None
            sites = place.around.reported(SiteKind.TENSOR_ITERATION)
            known = any(site.node is above for site in sites)
            return statement if known or is_tensor(statement.value, place.around) else None
        above = statement
    return None


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Write one flag."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (old,) = nodes
    assert isinstance(old, cst.BooleanOperation)
    return [build.in_place_of(old, build.expression(edit.facts["text"]))]
