"""``for p in ps: p.mul_(c)`` -> ``torch._foreach_mul_(ps, c)``, if there is anything in ``ps``."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import argument_text, fresh_name, invariant, text_of
from flake8_torchperf.fixes.shared.loops.gather import Rounds, is_list, rounds_of, stays
from flake8_torchperf.fixes.shared.tensors import only_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace


@dataclass(frozen=True, slots=True)
class _Kind:
    """The operands of a foreach operation.

    ``lists`` says which operands may be a list with one tensor each, ``numbers`` which may be one
    number for all. ``options`` are keywords that take one number for all. Every operand has to be
    given.
    """

    lists: tuple[bool, ...] = ()
    numbers: tuple[bool, ...] = ()
    options: frozenset[str] = frozenset()


_BOTH = _Kind((True,), (True,))
_SUM = _Kind((True,), (True,), frozenset(("alpha",)))
_THREE = _Kind((True, True), (False, False), frozenset(("value",)))
# torch/_foreach operations of torch 2.13 (native_functions.yaml) with the meaning of the method.
_KINDS = {
    "mul_": _BOTH,
    "div_": _BOTH,
    "add_": _SUM,
    "sub_": _SUM,
    "pow_": _BOTH,
    "clamp_min_": _BOTH,
    "clamp_max_": _BOTH,
    "copy_": _Kind((True,), (False,)),
    "lerp_": _Kind((True, True), (False, True)),
    "addcmul_": _THREE,
    "addcdiv_": _THREE,
    **dict.fromkeys(("zero_", "neg_", "abs_", "sqrt_", "exp_", "reciprocal_", "sign_"), _Kind()),
}
_AUGMENTED: dict[type[ast.operator], str] = {
    ast.Mult: "mul_",
    ast.Div: "div_",
    ast.Add: "add_",
    ast.Sub: "sub_",
}


@dataclass(frozen=True, slots=True)
class _Step:
    """One operation in place: its name, the tensor that it changes, and its operands."""

    name: str
    tensor: ast.expr
    args: tuple[ast.expr, ...] = ()
    options: tuple[tuple[str, ast.expr], ...] = ()


def plan(place: FixPlace) -> Edit | None:
    """Apply to a loop that does nothing but operations in place that have a foreach form."""
    if not place.site.loops:
        return None
    loop = place.site.loops[-1].node
    rounds = rounds_of(place, loop)
    if not isinstance(loop, ast.For) or rounds is None or not rounds.body:
        return None
    steps: list[_Step] = []
    for statement in rounds.body:
        found = _steps(statement, place, rounds)
        if not found:
            return None
        steps += found
    tensor = ast.dump(_read(steps[0].tensor))
    if any(ast.dump(_read(step.tensor)) != tensor for step in steps):
        return None
    if not stays(place, loop.iter) and any(
        _varies(arg, rounds) for step in steps for arg in step.args
    ):
        return None
    torch = place.around.name_of("torch")
    values, listed = _changed(place, loop, steps[0].tensor, rounds)
    calls = [_call(place, step, rounds, torch or "torch", values) for step in steps]
    if not values or not all(calls):
        return None
    text = f"{listed}if {values}:\n" + "".join(f"    {call}\n" for call in calls)
    return Edit((loop,), {"texts": (text,)}, () if torch else ("torch",))


def _steps(statement: ast.stmt, place: FixPlace, rounds: Rounds) -> list[_Step]:
    """Return the operations of ``p.mul_(a).add_(b)`` or ``p *= a``, the first one first."""
    match statement:
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in _AUGMENTED:
            return [_augmented(_AUGMENTED[type(op)], target, value, place, rounds)]
        case ast.Expr(value=ast.Call() as call):
            return _chained(call)
    return []


def _augmented(
    name: str, target: ast.expr, value: ast.expr, place: FixPlace, rounds: Rounds
) -> _Step:
    """Return the operation of ``p += a``, where ``p += c * a`` adds each ``a`` with a factor."""
    match value:
        case ast.BinOp(left=one, op=ast.Mult(), right=other) if name in ("add_", "sub_"):
            for factor, added in ((one, other), (other, one)):
                listed = _is_listed(added, place) and _varies(added, rounds)
                if listed and invariant(factor, rounds.bound):
                    return _Step(name, target, (added,), (("alpha", factor),))
    return _Step(name, target, (value,))


def _chained(call: ast.Call) -> list[_Step]:
    if not isinstance(call.func, ast.Attribute):
        return []
    name, owner = call.func.attr, call.func.value
    options = tuple((one.arg or "", one.value) for one in call.keywords)
    if name == "clamp_":
        return [
            _Step(f"clamp_{bound}_", owner, (value,))
            for bound, value in options
            if bound in ("min", "max") and not call.args
        ]
    if name not in _KINDS:
        return []
    if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute):
        before = _chained(owner)
        if before:
            return [*before, _Step(name, before[0].tensor, tuple(call.args), options)]
    return [_Step(name, owner, tuple(call.args), options)]


def _read(tensor: ast.expr) -> ast.expr:
    """Return the same expression, as it is read."""
    match tensor:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=inner, attr=name):
            return ast.Attribute(inner, name, ast.Load())
    return tensor


def _varies(node: ast.expr, rounds: Rounds) -> bool:
    return not invariant(node, rounds.bound)


def _changed(place: FixPlace, loop: ast.For, tensor: ast.expr, rounds: Rounds) -> tuple[str, str]:
    """Return the name of the list of changed tensors, and the statement that makes it.

    The name is "" if the tensor does not change with the round, is not a simple name, or if no name
    is free. The statement is "" if the loop's own list can be used.
    """
    if not _varies(tensor, rounds) or not _simple(tensor):
        return "", ""
    text = text_of(place, tensor)
    if text == rounds.target and not rounds.conditions and is_list(place, loop.iter):
        return rounds.iterable, ""
    wanted = ("grads", "gradients") if ".grad" in text else ("tensors", "params", "values")
    name = fresh_name(place, loop, wanted)
    return name, f"{name} = {rounds.listed(text)}\n"


def _simple(tensor: ast.expr) -> bool:
    """True for a name, an attribute or ``.detach()`` of one; other calls could make a tensor."""
    match tensor:
        case ast.Name():
            return True
        case ast.Attribute(value=inner):
            return _simple(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="detach"), args=[], keywords=[]):
            return _simple(inner)
    return False


def _is_listed(node: ast.expr, place: FixPlace) -> bool:
    """True for what another list may hold: a simple tensor, or an entry such as ``state[k]``."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="detach"), args=[], keywords=[]):
            match inner:
                case ast.Subscript(value=ast.Name(), slice=ast.Name()):
                    return True
            return _is_listed(inner, place)
        case ast.Subscript(value=ast.Name() as entries, slice=ast.Name()):
            match only_value(entries, place.around):
                case ast.Call(func=ast.Attribute(attr="state_dict")):
                    return True
            return False
    return _simple(node)


def _call(place: FixPlace, step: _Step, rounds: Rounds, torch: str, values: str) -> str:
    """Return the call for one operation; "" where it does not take an operand in that form."""
    kind = _KINDS[step.name]
    if len(step.args) != len(kind.lists) or not {name for name, _ in step.options} <= kind.options:
        return ""
    given = [values]
    for number, arg in enumerate(step.args):
        if invariant(arg, rounds.bound):
            if not kind.numbers[number]:
                return ""
            given.append(argument_text(place, arg))
        elif not kind.lists[number] or not _is_listed(arg, place):
            return ""
        else:
            given.append(rounds.listed(text_of(place, arg)))
    for name, value in step.options:
        if not invariant(value, rounds.bound):
            return ""
        given.append(f"{name}={argument_text(place, value)}")
    return f"{torch}._foreach_{step.name}({', '.join(given)})"


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.FlattenSentinel[cst.CSTNode]]:
    """Replace the loop by the list and the calls."""
    from flake8_torchperf.fixes.shared.nodes import new_statements

    return new_statements.replaced(nodes, edit)
