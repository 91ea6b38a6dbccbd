"""``torch.zeros(n).to(d)`` -> ``torch.zeros(n, device=d)``: the tensor is made where it is used.

Only for factories whose values are exact on every device: ``linspace`` and the windows round in
their own way on each, and random numbers come from another generator there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.pieces.numbers import is_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings

# Zeros and ones are the same in every dtype; whole numbers are in their own.
PLAIN = frozenset(("zeros", "ones", "empty", "eye", "zeros_like", "ones_like", "empty_like"))
WHOLE = frozenset(("full", "tril_indices", "triu_indices"))
# What makes another tensor of the result: a leaf, one in pinned memory, one that exists already.
_CHOSEN = frozenset(("device", "generator", "out", "requires_grad", "pin_memory", "names"))
# Methods that only look at the same memory in another way: they do so on every device.
_VIEWS = frozenset(("unsqueeze", "view", "squeeze", "t", "transpose", "permute", "repeat"))
# Methods that round to the nearest number of another dtype, as every device does.
_CASTS = frozenset(("float", "double", "half", "bfloat16", "int", "long", "short", "bool"))
_KEPT = _VIEWS | _CASTS
_INTS = frozenset(("torch.int8", "torch.int16", "torch.short", "torch.int32", "torch.int",
                   "torch.int64", "torch.long"))  # fmt: skip


def plan(place: Place) -> Edit | None:
    """Apply to a factory whose tensor is moved, or is an index, in the same expression."""
    return _as_index(place) or planned(place, _is_exact)


def _as_index(place: Place) -> Edit | None:
    """``x[torch.arange(n), ids]``: the index is made where ``x`` is, which is stated a tensor."""
    part = place.site.node
    if place.site.operation != "index" or "by-stated" not in place.site.traits:
        return None
    around = place.around.parent(part)
    if isinstance(around, ast.Tuple):
        around = place.around.parent(around)
    if not isinstance(around, ast.Subscript) or not repeatable(around.value):
        return None
    made = _factory(part) if isinstance(part, ast.expr) else None
    if made is None or {one.arg for one in made.keywords} & {*_CHOSEN, None}:
        return None
    name = place.around.qualified(made.func).removeprefix("torch.")
    if not _is_exact(made, name, False, place.around):
        return None
    device = f"{ast.unparse(around.value)}.device"
    return Edit((part,), {"given": {"device": device}, "moves": False})


def planned(
    place: Place, allowed: Callable[[ast.Call, str, bool, Surroundings], bool]
) -> Edit | None:
    """The edit for a factory that ``allowed(call, name, casts, around)`` lets be made elsewhere."""
    call = place.site.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    keywords = where_to(call, "as-another" in place.site.traits)
    made = _factory(call.func.value)
    if keywords is None or made is None:
        return None
    casts = "dtype" in keywords
    if casts and _casts(call.func.value):
        return None
    if any(one.arg is None or one.arg in _CHOSEN for one in made.keywords):
        return None
    if casts and any(one.arg == "dtype" for one in made.keywords):
        return None
    name = place.around.qualified(made.func).removeprefix("torch.")
    if not allowed(made, name, casts, place.around):
        return None
    return Edit((call,), {"given": keywords, "moves": True})


def _is_cast_to_ints(made: ast.Call, around: Surroundings) -> bool:
    """Does a factory round its numbers to ints, as every device does?"""
    given = [one.value for one in made.keywords if one.arg == "dtype"]
    return any(around.qualified(one) in _INTS for one in given)


def where_to(call: ast.Call, by_tensor: bool) -> dict[str, str] | None:
    """The arguments that say what ``to``, ``cuda`` or ``type_as`` does; None where not known.

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
    """Is it the same device if it is evaluated earlier?

    That it is no dtype the finding says; a number names another device for ``cuda``.
    """
    match node:
        case None:
            return False
        case ast.Constant(value=value):
            return isinstance(value, str)
    return repeatable(node)


def _plain(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and repeatable(node)


def _factory(node: ast.expr) -> ast.Call | None:
    """The call that makes the tensor, behind methods and indices that only look at it."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _KEPT:
            return _factory(inner)
        case ast.Subscript(value=inner, slice=index) if _adds_dimensions(index):
            return _factory(inner)
        case ast.Call():
            return node
    return None


def _casts(node: ast.expr) -> bool:
    """Is there a cast on the way to the factory?"""
    inner: ast.expr | None = node
    while inner is not None:
        match inner:
            case ast.Call(func=ast.Attribute(attr=name)) if name in _CASTS:
                return True
            case ast.Call(func=ast.Attribute(value=value)) | ast.Subscript(value=value):
                inner = value
            case _:
                inner = None
    return False


def _adds_dimensions(index: ast.expr) -> bool:
    """``[None]``, ``[:, None]``, ``[..., None]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(one, ast.Constant) and one.value in (None, ...))
        or (isinstance(one, ast.Slice) and not (one.lower or one.upper or one.step))
        for one in parts
    )


def _is_exact(made: ast.Call, name: str, casts: bool, around: Surroundings) -> bool:
    """Does a factory give the same numbers on every device?"""
    if name in PLAIN:
        return True
    if casts:
        return False  # rounded once, where it was rounded twice
    if name == "arange":
        bounds = [*made.args, *(one.value for one in made.keywords if one.arg != "dtype")]
        if len(bounds) == 1 or _is_cast_to_ints(made, around):
            return True
        return all(is_whole(one, around) for one in bounds)
    return name in WHOLE


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Pass the device to the factory, and leave the move out."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    arguments = [
        build.keyword(name, build.expression(text)) for name, text in edit.facts["given"].items()
    ]
    new: list[cst.CSTNode] = []
    for old in nodes:
        assert isinstance(old, cst.BaseExpression)
        made = old
        if edit.facts["moves"]:
            made = cst.ensure_type(cst.ensure_type(old, cst.Call).func, cst.Attribute).value
        new.append(build.in_place_of(old, _made_with(made, arguments)))
    return new


def _made_with(node: cst.BaseExpression, arguments: Sequence[cst.Arg]) -> cst.BaseExpression:
    """The expression with further arguments for the factory in it; see `_factory`."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)) as func) if (
            name in _KEPT
        ):
            return node.with_changes(func=func.with_changes(value=_made_with(inner, arguments)))
        case cst.Subscript(value=inner):
            return node.with_changes(value=_made_with(inner, arguments))
    assert isinstance(node, cst.Call)
    return build.with_arguments(node, arguments)
