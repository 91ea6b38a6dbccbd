"""``isinf(t).any() or isnan(t).any()`` -> ``(isinf(t) | isnan(t)).any()``: one wait, not two.

Both parts test one tensor, so they have one shape and one device. The second part raises nothing
that the first does not.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.evaluation import is_condition
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.syntax.traversal import below

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

_TESTS = methods_of("tests-finite-values")
_EXTREMES = methods_of("finds-extremes")
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_EQUAL = (ast.Eq, ast.NotEq)


@dataclass(frozen=True, slots=True)
class Flag:
    """One operand: a bool computed from a tensor.

    ``mask`` is the operand of ``any`` or ``all`` (``reduced``), None for a comparison of a maximum
    or minimum. ``core`` is the flag as a tensor, ``host`` says whether the operand reads it, and
    ``raises`` names what could make it fail.
    """

    tensor: str
    core: ast.expr
    mask: ast.expr | None
    reduced: str
    host: bool
    raises: frozenset[str]


def plan(place: FixPlace) -> Edit | None:
    """Apply to ``or`` and ``and`` between flags of one tensor."""
    around = place.around
    here: ast.AST | None = place.site.node
    while isinstance(here, ast.expr) and not isinstance(here, ast.BoolOp):
        here = around.parent(here)
    if not isinstance(here, ast.BoolOp):
        return None
    found: list[Flag] = []
    for value in here.values:  # most operands are no flags, and each of thousands asks
        one = flag(value, around)
        if one is None:
            return None
        first = found[0] if found else one
        if one.tensor != first.tensor or one.host != first.host:
            return None
        if not one.raises <= first.raises:
            return None
        found.append(one)
    if not found[0].host and not _is_truth_or_tensor(here, place):
        return None
    reduced = "any" if isinstance(here.op, ast.Or) else "all"
    masks = [one.mask for one in found if one.mask is not None and one.reduced == reduced]
    together = len(masks) == len(found)
    parts = masks if together else [one.core for one in found]
    facts = {
        "parts": [_in_brackets(part) for part in parts],
        "operator": "|" if reduced == "any" else "&",
        "reduced": reduced if together else "",
        "host": found[0].host,
    }
    return Edit((here,), facts)


def _is_truth_or_tensor(node: ast.expr, place: FixPlace) -> bool:
    """True if a value is only tested, or passed to functions of torch.

    `torch.jit.script` makes a bool of ``a or b``, but a tensor of ``a | b``. Functions of torch
    take tensors, so a function that passes them a bool cannot be scripted as it is.
    """
    if is_condition(place, node):
        return True
    match place.around.parent(node):
        case ast.Call(func=func):
            return place.around.qualified(func).startswith("torch.")
        case ast.Assign(targets=[ast.Name(id=name)]):
            function = place.around.function(node)
            return function is not None and all(
                _is_truth_or_tensor(one, place)
                for one in below(function)
                if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
            )
    return False


def _in_brackets(part: ast.expr) -> str:
    text = ast.unparse(part)
    return f"({text})" if isinstance(part, ast.Compare) else text


def flag(node: ast.expr, around: Surroundings) -> Flag | None:
    """Return the flag that an operand computes; None where it is another expression."""
    core, host = _unread(node, around)
    match core:
        case ast.Call(func=ast.Attribute(value=mask, attr=str(reduced)), args=[]) if reduced in (
            "any",
            "all",
        ):
            pass
        case ast.Call(func=func, args=[mask]) if _of_torch(func, around) in ("any", "all"):
            reduced = _of_torch(func, around)
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant() | ast.UnaryOp()]):
            tensor = _extreme(left, around)
            raises = {"empty", *(("complex",) if isinstance(op, _ORDERED) else ())}
            known = tensor is not None and isinstance(op, (*_ORDERED, *_EQUAL))
            return Flag(tensor or "", core, None, "", host, frozenset(raises)) if known else None
        case _:
            return None
    if isinstance(core, ast.Call) and core.keywords:
        return None
    found = _masked(mask, around)
    return None if found is None else Flag(found[0], core, mask, reduced, host, found[1])


def _unread(node: ast.expr, around: Surroundings) -> tuple[ast.expr, bool]:
    """Return an operand without its read: ``bool(...)``, ``.item()``, ``.item() is True``."""
    match node:
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=True)]):
            inner, read = _unread(left, around)
            return (inner, True) if read else (node, False)
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return inner, True
        case ast.Call(func=func, args=[inner], keywords=[]) if (
            around.qualified(func) == "builtins.bool"
        ):
            return _unread(inner, around)[0], True
    return node, False


def _masked(mask: ast.expr, around: Surroundings) -> tuple[str, frozenset[str]] | None:
    """Return the tensor whose elements a mask tests, and names for what could make it fail."""
    match mask:
        case ast.Call(func=ast.Attribute(value=tensor, attr=name), args=[], keywords=[]):
            known = name in _TESTS and repeatable(tensor)
            return (ast.dump(tensor), frozenset()) if known else None
        case ast.Call(func=func, args=[tensor], keywords=[]):
            known = _of_torch(func, around) in _TESTS and repeatable(tensor)
            return (ast.dump(tensor), frozenset()) if known else None
        case ast.Compare(left=tensor, ops=[op], comparators=[ast.Constant() | ast.UnaryOp()]):
            if repeatable(tensor) and isinstance(op, _ORDERED):
                return ast.dump(tensor), frozenset(("complex",))
            if repeatable(tensor) and isinstance(op, _EQUAL):
                return ast.dump(tensor), frozenset()
    return None


def _extreme(node: ast.expr, around: Surroundings) -> str | None:
    """Return the tensor of ``x.max()`` or ``torch.min(x)``."""
    match node:
        case ast.Call(func=ast.Attribute(value=tensor, attr=name), args=[], keywords=[]):
            return ast.dump(tensor) if name in _EXTREMES and repeatable(tensor) else None
        case ast.Call(func=func, args=[tensor], keywords=[]):
            known = _of_torch(func, around) in _EXTREMES and repeatable(tensor)
            return ast.dump(tensor) if known else None
    return None


def _of_torch(func: ast.expr, around: Surroundings) -> str:
    name = around.qualified(func)
    return name.removeprefix("torch.") if name.startswith("torch.") else ""


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Write one flag."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (old,) = nodes
    assert isinstance(old, cst.BooleanOperation)
    facts = edit.facts
    text = f" {facts['operator']} ".join(facts["parts"])
    if facts["reduced"]:
        text = f"({text}).{facts['reduced']}()"
    if facts["host"]:
        text = f"bool({text})"
    # Needs no brackets where ``or`` needed none: these operators bind more tightly.
    return [build.in_place_of(old, build.expression(text))]
