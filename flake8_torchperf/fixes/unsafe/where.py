"""``if c: x = a`` / ``else: x = b``, and ``a if c else b`` -> ``torch.where(c, a, b)``.

Only where both sides are tensors, or one of them a number, and cost little to compute.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.tensors import bindings, is_cheap, is_tensor, only_value
from flake8_torchperf.knowledge.table import load
from flake8_torchperf.values.values import Strength, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings


def plan(place: FixPlace) -> Edit | None:
    """Apply to a condition of one tensor that chooses one name's value, or an expression's."""
    around, condition, operand = place.around, place.site.node, place.site.operand
    if not isinstance(condition, ast.expr) or not isinstance(operand, Tensor):
        return None
    if operand.reason.strength < Strength.INFERRED or operand.dtype == "complex":
        return None
    if operand.device == "host" or operand.scalar is not True:
        return None  # one of several elements raises an error, and would be chosen by each
    above, swapped = around.parent(condition), False
    test: ast.AST | None = condition
    while isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not):
        above, test, swapped = around.parent(above), above, not swapped
    if not isinstance(above, (ast.If, ast.IfExp)) or above.test is not test:
        return None
    if any(isinstance(part, (ast.NamedExpr, ast.Await)) for part in ast.walk(condition)):
        return None
    sides = _sides(above, around)
    name = around.reach("torch.where", above)
    if sides is None or name is None or not _fit(sides, around):
        return None
    if _asks_for_non_finite(condition, around):
        return None
    facts = {"swapped": swapped, "where": name[0], "mask": operand.dtype == "bool"}
    return Edit((above,), facts, name[1])


def _sides(node: ast.If | ast.IfExp, around: Surroundings) -> tuple[ast.expr, ast.expr] | None:
    """Return the values chosen where the test holds and where it fails; None where unclear."""
    match node:
        case ast.IfExp(body=one, orelse=other):
            return one, other
        case ast.If(body=[ast.Assign(targets=[target], value=one)], orelse=[]):
            if isinstance(target, ast.Name) and _is_bound_before(target, node, around):
                return one, target
        case ast.If(
            body=[ast.Assign(targets=[target], value=one)],
            orelse=[ast.Assign(targets=[same], value=other)],
        ):
            plain = isinstance(target, (ast.Name, ast.Attribute))
            if plain and ast.dump(target) == ast.dump(same) and not _is_elif(node, around):
                return one, other
    return None


def _is_bound_before(target: ast.Name, node: ast.If, around: Surroundings) -> bool:
    """True if a name has a value before the branch, and so has one where the test fails."""
    if _is_elif(node, around):
        return False
    function = around.function(node)
    if function is None:
        return False
    if any(isinstance(one, ast.arg) for one in bindings(function, target.id)):
        return True
    here: ast.AST | None = node
    while here is not None and here is not function:
        above = around.parent(here)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(above, field, None)
            before = block[: block.index(here)] if isinstance(block, list) and here in block else []
            if any(_assigns(one, target.id) for one in before):
                return True
        here = above
    return False


def _assigns(statement: ast.stmt, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(one, ast.Name) and one.id == name for one in targets)


def _is_elif(node: ast.If, around: Surroundings) -> bool:
    above = around.parent(node)
    is_else = isinstance(above, ast.If) and above.orelse == [node]
    return isinstance(above, ast.If) and is_else and node.col_offset == above.col_offset


def _fit(sides: tuple[ast.expr, ast.expr], around: Surroundings) -> bool:
    """True if both sides may be computed, and `torch.where` takes them without a copy."""
    if any(_is_made_on_host(side, around) for side in sides):
        return False
    tensors = [is_tensor(side, around) for side in sides]
    numbers = [_is_number(side) for side in sides]
    if not any(tensors) or not all(t or n for t, n in zip(tensors, numbers, strict=True)):
        return False
    return all(is_cheap(side, around) for side in sides)


def _is_made_on_host(side: ast.expr, around: Surroundings) -> bool:
    """True for ``torch.zeros(())``, which each step would copy to the device."""
    made = only_value(side, around) if isinstance(side, ast.Name) else side
    if not isinstance(made, ast.Call) or any(one.arg == "device" for one in made.keywords):
        return False
    name = around.qualified(made.func)
    op = load().function(name) if name.startswith("torch.") else None
    return op is not None and op.factory and not op.like


# torch.where hands the side not chosen a gradient of 0, and 0 times infinity is NaN.
_NON_FINITE = frozenset(("isfinite", "isinf", "isnan", "isneginf", "isposinf"))


def _asks_for_non_finite(condition: ast.expr, around: Surroundings) -> bool:
    """True if a test guards against NaN or infinity, itself or by a name's value."""
    function = around.function(condition)
    asked: list[ast.AST] = [condition]
    if function is not None:
        names = {one.id for one in ast.walk(condition) if isinstance(one, ast.Name)}
        values = (value for name in names for value in bindings(function, name))
        asked += [value for value in values if value is not None]
    return any(_is_guard(node) for one in asked for node in ast.walk(one))


def _is_guard(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in _NON_FINITE
        case ast.Compare(left=one, ops=[ast.Eq() | ast.NotEq()], comparators=[other]):
            return ast.dump(one) == ast.dump(other)  # only NaN differs from itself
    return False


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _is_number(node.operand)
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Compute both sides and choose on the device."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import choices

    (node,) = nodes
    if isinstance(node, cst.IfExp):
        return [choices.of_expression(node, edit.facts)]
    assert isinstance(node, cst.If)
    return [choices.of_statement(node, edit.facts)]
