"""``x = sum(t.norm() ** 2 for t in ts)`` -> ``torch.stack(torch._foreach_norm(ts)).pow(2).sum()``.

The list of tensors is made before; if it is empty, the sum is 0 as before.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import argument_text, fresh_name, invariant, text_of
from flake8_torchperf.fixes.unsafe.loops.total_norm import norm_of
from flake8_torchperf.syntax.bindings import all_bound_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace


def plan(place: FixPlace) -> Edit | None:
    """Apply to a sum over a generator or list that is all that a statement assigns."""
    around, statement = place.around, place.around.statement(place.site.node)
    match statement:
        case ast.Assign(
            targets=[target],
            value=ast.Call(
                func=func,
                args=[ast.GeneratorExp(elt=elt, generators=clauses) as loop]
                | [ast.ListComp(elt=elt, generators=clauses) as loop],
                keywords=[],
            ),
        ) if around.qualified(func) == "builtins.sum":
            pass
        case _:
            return None
    norm, power = _power(elt)
    found = norm_of(place, norm)
    torch = around.reach("torch", statement)
    if found is None or torch is None or any(one.is_async for one in clauses):
        return None
    tensor, order = found
    if not invariant(order, all_bound_by([loop])):
        return None
    wanted = ("grads", "gradients") if ".grad" in ast.unparse(tensor) else ("tensors", "params")
    name = fresh_name(place, statement, wanted)
    if not name:
        return None
    given = "" if ast.unparse(order) in ("2", "2.0") else f", {argument_text(place, order)}"
    norms = f"{torch[0]}.stack({torch[0]}._foreach_norm({name}{given}))"
    powered = f".pow({power})" if power else ""
    text = f"{name} = [{text_of(place, tensor)}{_clauses(place, clauses)}]\n"
    text += f"{text_of(place, target)} = {norms}{powered}.sum() if {name} else 0\n"
    return Edit((statement,), {"texts": (text,)}, torch[1])


def _power(elt: ast.expr) -> tuple[ast.expr, str]:
    """Return ``t.norm()`` and "2" for ``t.norm() ** 2`` or ``t.norm().pow(2)``."""
    match elt:
        case ast.BinOp(left=norm, op=ast.Pow(), right=ast.Constant(value=int() | float() as power)):
            return norm, repr(power)
        case ast.Call(
            func=ast.Attribute(value=norm, attr="pow"),
            args=[ast.Constant(value=int() | float() as power)],
            keywords=[],
        ):
            return norm, repr(power)
        case ast.Call(func=ast.Attribute(value=norm, attr="square"), args=[], keywords=[]):
            return norm, "2"
    return elt, ""


def _clauses(place: FixPlace, clauses: Sequence[ast.comprehension]) -> str:
    """Return the source of the clauses of a comprehension."""
    text = ""
    for one in clauses:
        text += f" for {ast.unparse(one.target)} in {text_of(place, one.iter)}"
        text += "".join(f" if {argument_text(place, test)}" for test in one.ifs)
    return text


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Put the list before the statement, and sum the norms in it."""
    from flake8_torchperf.fixes.shared.nodes import new_statements

    return new_statements.replaced(nodes, edit)
