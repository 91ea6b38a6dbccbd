"""``if t.any(): raise E(m)`` and ``assert t.all(), m`` -> ``torch._assert_async(..., m)``.

The device tests the condition; the error is raised the next time that the host waits for the
device. The function takes only tensors, and a text that is made before the test.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.numbers import is_real
from flake8_torchperf.fixes.shared.tensors import is_tensor, is_used_by_torch
from flake8_torchperf.fixes.shared.texts import can_be_made_before, is_number_parameter
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.traversal import FUNCTIONS
from flake8_torchperf.values.values import Strength, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

# These errors say that values are wrong. Other errors are often caught and handled.
ERRORS = frozenset(("ValueError", "RuntimeError", "AssertionError", "ArithmeticError", "Exception",
                    "FloatingPointError", "OverflowError", "ZeroDivisionError", "IndexError",
                    "TypeError"))  # fmt: skip
# Methods that arrays and numbers lack.
_OF_TENSORS = methods_of("tests-finite-reals")
_NUMBERS = frozenset(("builtins.int", "builtins.float", "builtins.bool"))


def plan(place: FixPlace) -> Edit | None:
    """Apply to a tensor that decides on an error, alone or as one term of ``and`` or ``or``."""
    around, term = place.around, place.site.node
    operand = place.site.operand
    if not isinstance(term, ast.expr) or not isinstance(operand, Tensor):
        return None
    if operand.reason.strength < Strength.INFERRED or operand.dtype == "complex":
        return None
    if place.site.heat.level is Level.COLD or _is_in_tests(term, around):
        return None  # code that runs once gains nothing, and a test shows the values that differ
    if not _is_tensor(term, operand, around):
        return None
    negated, outer = _without_not(term, around)
    test: ast.expr = outer
    terms, joined = [outer], ""
    above = around.parent(outer)
    if isinstance(above, ast.BoolOp):
        test, terms, joined = above, above.values, type(above.op).__name__
    statement = around.parent(test)
    if not isinstance(statement, (ast.If, ast.Assert)):
        return None
    if not _raises(statement, test, around) or _caught(statement, around):
        return None
    if any(isinstance(part, (ast.NamedExpr, ast.Await)) for part in ast.walk(test)):
        return None
    name = around.reach("torch._assert_async", statement)
    logical_not = around.reach("torch.logical_not", statement)
    if name is None or logical_not is None:
        return None
    index = terms.index(outer)
    if not _can_be_split(statement, joined, index, terms):
        return None
    facts = {"index": index, "joined": joined, "negated": negated, "assert_": name[0],
             "mask": operand.dtype == "bool", "not_": logical_not[0]}  # fmt: skip
    return Edit((statement,), facts, name[1])


def _without_not(term: ast.expr, around: Surroundings) -> tuple[bool, ast.expr]:
    """Return whether a term is negated, and the expression with all its ``not``."""
    negated = False
    outer = around.parent(term)
    while isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not):
        negated, term, outer = not negated, outer, around.parent(outer)
    return negated, term


def _is_tensor(term: ast.expr, operand: Tensor, around: Surroundings) -> bool:
    """True if a condition is a tensor on every path.

    A comparison of an array or None gives a bool.
    """
    match term:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            return all(
                is_tensor(one, around)
                or is_real(one, around)
                or is_number_parameter(one, around, _NUMBERS)
                for one in (left, right)
            ) and is_tensor(term, around)
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[]):
            if name in ("any", "all") and not around.qualified(term.func).startswith("torch."):
                return _is_tensor(inner, operand, around) or _compares_tensors(
                    inner, operand, around
                )
            return name in _OF_TENSORS or is_tensor(term, around)
    return is_tensor(term, around)


def _compares_tensors(inner: ast.expr, operand: Tensor, around: Surroundings) -> bool:
    """True if a comparison whose ``all()`` is called, and that is no bool, is not of arrays."""
    if not isinstance(inner, ast.Compare):
        return False
    names = (one for one in ast.walk(inner) if isinstance(one, ast.Name))
    stated = operand.reason.strength >= Strength.STATED
    return stated or any(is_used_by_torch(one, around) for one in names)


def _is_in_tests(node: ast.AST, around: Surroundings) -> bool:
    """True if a node is in a test, whose runner shows the values of a failed assertion."""
    path = around.module.path
    if path is not None:
        name = path.stem
        if name.startswith("test_") or name.endswith("_test") or name == "conftest":
            return True
        if not {"test", "tests", "testing"}.isdisjoint(path.parts[-3:-1]):
            return True
    here = around.parent(node)
    while here is not None:
        if isinstance(here, FUNCTIONS) and here.name.startswith("test"):
            return True
        if isinstance(here, ast.ClassDef) and here.name.startswith("Test"):
            return True
        here = around.parent(here)
    return False


def _raises(statement: ast.stmt, test: ast.expr, around: Surroundings) -> bool:
    """True if a statement does nothing but raise an error with a text, as ``test`` decides."""
    match statement:
        case ast.Assert(test=tested, msg=message):
            plain = message is None or can_be_made_before(message, test, around)
            return tested is test and plain
        case ast.If(test=tested, body=[ast.Raise(exc=raised, cause=None)], orelse=[]):
            return tested is test and _is_error(raised, test, around)
        case ast.If(
            test=tested,
            body=[ast.Raise(exc=raised, cause=ast.Constant(value=None))],
            orelse=[],
        ):
            return tested is test and _is_error(raised, test, around)
    return False


def _is_error(raised: ast.expr | None, test: ast.expr, around: Surroundings) -> bool:
    match raised:
        case ast.Name(id=name):
            return name in ERRORS
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
            return name in ERRORS
        case ast.Call(func=ast.Name(id=name), args=[message], keywords=[]):
            return name in ERRORS and can_be_made_before(message, test, around)
    return False


def _caught(statement: ast.stmt, around: Surroundings) -> bool:
    """True if the same function handles the error, or if the statement is an ``elif``."""
    here: ast.AST = statement
    above = around.parent(here)
    is_else = isinstance(above, ast.If) and above.orelse == [here]
    if isinstance(above, ast.If) and is_else and statement.col_offset == above.col_offset:
        return True
    while above is not None and not isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(above, ast.Try) and above.handlers and here in above.body:
            return True
        if isinstance(above, ast.With) and any(_expects(one) for one in above.items):
            return True
        here, above = above, around.parent(above)
    return False


def _expects(item: ast.withitem) -> bool:
    """True for ``pytest.raises(...)``, ``self.assertRaises(...)``, ``contextlib.suppress(...)``."""
    called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return "raises" in name.lower() or name == "suppress"


def _can_be_split(
    statement: ast.AST | None, joined: str, index: int, terms: list[ast.expr]
) -> bool:
    """True if the terms before and after one can be tested apart from it, in the same order."""
    last = index == len(terms) - 1
    if not joined:
        return True
    if isinstance(statement, ast.Assert):
        return joined == "And" or last
    if joined == "Or":
        return last or index == 0
    return last or all(_is_free(one) for one in terms[index + 1 :])


def _is_free(term: ast.expr) -> bool:
    if isinstance(term, ast.UnaryOp) and isinstance(term.op, ast.Not):
        return repeatable(term.operand)
    return repeatable(term)


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]]:
    """Put the test of the tensor into a separate statement, and leave other terms as they are."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import assertions

    (node,) = nodes
    if isinstance(node, cst.If):
        return [assertions.of_if(node, edit.facts)]
    assert isinstance(node, cst.SimpleStatementLine)
    return [assertions.of_assert(node, edit.facts)]
