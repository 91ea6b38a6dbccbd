"""``torch.zeros(n).to(d)`` -> ``torch.zeros(n, device=d)``: the tensor is made where it is used.

Only where everything before the move gives the same bits on every device. ``linspace`` and the
windows round differently on each, and random numbers come from another generator there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.brackets import needs_brackets
from flake8_torchperf.fixes.shared.factories import (
    PLAIN_FACTORIES,
    MadeTensors,
    Repeated,
    Sameness,
    dtype_of_cast,
    is_dtype,
)
from flake8_torchperf.fixes.shared.held_names import HeldNames
from flake8_torchperf.syntax.names import given_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings


def plan(place: FixPlace) -> Edit | None:
    """Apply to factories whose tensor is moved, or used as an index, and not used before."""
    return planned(place, Repeated.EXACTLY)


def planned(place: FixPlace, how: Repeated) -> Edit | None:
    """Return the edit for numbers that a device repeats in this way."""
    if place.site.operation == "index":
        return _as_index(place, how)
    call = place.site.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    given = where_to(call, "as-another" in place.site.traits)
    statement = place.around.statement(call)
    if given is None or statement is None:
        return None
    held = HeldNames(
        place, statement, [ast.parse(text, mode="eval").body for text in given.values()]
    )
    made = MadeTensors(place.around, held)
    receiver = call.func.value
    found = made.sameness(receiver)
    if found is None:
        return None
    cast = given.pop("dtype", "")
    outer = _cast_behind(call, place.around) if not cast else None
    dropped = None
    if _takes_dtype(made, place.around) and (cast or outer is not None):
        given["dtype"] = cast or dtype_of_cast(outer, place.around)  # type: ignore[arg-type]
        call, cast = outer or call, ""
    elif not cast:
        dropped = _folded(made, receiver, given, place.around)
    if cast and found < Sameness.PLAIN and not _is_of_floats(call, cast, place.around):
        found = Sameness.ROUNDED  # beyond the range of ints each device gives others
    if cast and made.doubles:
        found = Sameness.ROUNDED
    if made.repeated(found) is not how:
        return None
    facts = {"given": given, "cast": cast, "moves": True, "levels": 2 if call is outer else 1,
             "dropped": "" if dropped is None else ast.dump(dropped)}  # fmt: skip
    return _edit(place, call, receiver, made, facts)


def _edit(
    place: FixPlace, call: ast.Call, receiver: ast.expr, made: MadeTensors, facts: dict[str, Any]
) -> Edit | None:
    """Return the edit of a move, and of the factories in statements before it."""
    within = {id(one) for one in ast.walk(receiver)}
    here = [one for one in made.calls if id(one) in within]
    before = [one for one in made.calls if id(one) not in within]
    texts = [ast.dump(one) for one in here]
    alike = [one for one in ast.walk(receiver)
             if isinstance(one, ast.Call) and ast.dump(one) in texts]  # fmt: skip
    if len(alike) != len(here):
        return None
    facts["made"] = texts
    facts["within"] = needs_brackets(receiver, call, place.around.parent(call))
    facts["whole"] = isinstance(place.around.parent(call), (ast.Assign, ast.AnnAssign))
    first: ast.AST = call
    match place.around.parent(call):
        case ast.Assign(targets=[ast.Name(id=bound)]) as line if (
            isinstance(receiver, ast.Name) and bound == receiver.id and not facts["cast"]
        ):
            first = line  # skip `x = x`
            facts["moves"] = False
    return Edit((first, *before), facts)


def _takes_dtype(made: MadeTensors, around: Surroundings) -> bool:
    """True if a factory makes the same numbers in any dtype, and nothing is computed with them."""
    if made.casts or made.computes or len(made.calls) != 1:
        return False
    (call,) = made.calls
    return _is_plain(call, around)


def _is_plain(call: ast.Call, around: Surroundings) -> bool:
    name = around.qualified(call.func).removeprefix("torch.")
    return name in PLAIN_FACTORIES and not any(one.arg == "dtype" for one in call.keywords)


def _folded(
    made: MadeTensors, receiver: ast.expr, given: dict[str, str], around: Surroundings
) -> ast.Call | None:
    """Return the cast in ``torch.zeros(n).int()``, whose dtype is then given to the factory."""
    if made.computes or len(made.calls) != 1 or len(made.casts) != 1:
        return None
    (cast,) = made.casts
    within = [one for one in ast.walk(receiver) if one is cast]
    if not within or not _is_plain(made.calls[0], around):
        return None
    if not any(one is made.calls[0] for one in ast.walk(cast)):
        return None
    dtype = dtype_of_cast(cast, around)
    if not dtype:
        return None
    device = given.pop("device")
    given |= {"dtype": dtype, "device": device}
    return cast


def _cast_behind(call: ast.Call, around: Surroundings) -> ast.Call | None:
    """Return the ``.to(dtype)`` or ``.int()`` directly after a move."""
    above = around.parent(call)
    cast = around.parent(above) if isinstance(above, ast.Attribute) else None
    if isinstance(cast, ast.Call) and cast.func is above and dtype_of_cast(cast, around):
        return cast
    return None


def _is_of_floats(call: ast.Call, cast: str, around: Surroundings) -> bool:
    """True if a move is given a floating dtype, by its name in torch."""
    given = given_to(call)
    dtype = next((one for one in given if ast.unparse(one) == cast), None)
    return is_dtype(dtype, around, of_floats=True)


def _as_index(place: FixPlace, how: Repeated) -> Edit | None:
    """Return the edit of ``x[torch.arange(n), ids]``, which makes the index where ``x`` is."""
    part = place.site.node
    around, statement = place.around.parent(part), place.around.statement(part)
    if isinstance(around, ast.Tuple):
        around = place.around.parent(around)
    if not isinstance(around, ast.Subscript) or not repeatable(around.value):
        return None
    if not isinstance(part, ast.expr) or statement is None:
        return None
    where = ast.Attribute(around.value, "device", ast.Load())
    made = MadeTensors(place.around, HeldNames(place, statement, [where]))
    found = made.sameness(part, loose=True)
    if found is None:
        return None
    actual = made.repeated(found)
    if actual is Repeated.EXACTLY and "by-stated" not in place.site.traits:
        actual = Repeated.ROUNDED  # only use shows what is indexed, which is not sure enough
    if actual is not how:
        return None
    given = {"device": ast.unparse(where)}
    facts = {"given": given, "cast": "", "moves": True, "levels": 0, "dropped": ""}
    return _edit(place, part, part, made, facts)  # type: ignore[arg-type]


def where_to(call: ast.Call, by_tensor: bool) -> dict[str, str] | None:
    """Return the arguments for what ``to``, ``cuda`` or ``type_as`` does; None where unknown.

    ``by_tensor`` says that its first argument is a tensor, whose device and dtype are taken.
    """
    if not isinstance(call.func, ast.Attribute):
        return None
    given = dict(zip(("device", "dtype"), call.args, strict=False))
    for one in call.keywords:
        if one.arg is None or one.arg in given:
            return None
        given[one.arg] = one.value
    queued = given.pop("non_blocking", None)
    if len(call.args) > 2 or not isinstance(queued, (ast.Constant, type(None))):
        return None
    if call.func.attr == "cuda" and not given:
        return {"device": '"cuda"'}
    first = given.get("device") or given.get("other")
    if call.func.attr in ("type_as", "to") and len(given) == 1 and by_tensor:
        other = ast.unparse(first) if first is not None and _plain(first) else ""
        return {"device": f"{other}.device", "dtype": f"{other}.dtype"} if other else None
    if not set(given) <= {"device", "dtype"} or call.func.attr not in ("to", "cuda"):
        return None
    dtype = given.get("dtype")
    if by_tensor or not _is_device(first) or not (dtype is None or _plain(dtype)):
        return None
    return {name: ast.unparse(value) for name, value in given.items()}


def _is_device(node: ast.expr | None) -> bool:
    """True if an expression names the same device when it is evaluated earlier.

    The finding already excludes dtypes. Ints are refused: ``cuda`` takes them for another device.
    """
    match node:
        case None:
            return False
        case ast.Constant(value=value):
            return isinstance(value, str)
        case ast.Attribute(value=ast.Subscript(value=owner, slice=key), attr="device"):
            return repeatable(owner) and repeatable(key)
    return repeatable(node)


def _plain(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and repeatable(node)


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.RemovalSentinel]:
    """Pass the device to the factories, and remove the move."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import given_arguments as given

    first, *before = nodes
    new: list[cst.CSTNode | cst.RemovalSentinel] = []
    if edit.facts["moves"]:
        assert isinstance(first, cst.BaseExpression)
        new.append(given.without_move(first, edit.facts))
    else:
        new.append(cst.RemoveFromParent())
    texts = edit.facts["given"]
    new += [given.with_keywords(cst.ensure_type(one, cst.Call), texts) for one in before]
    return new
