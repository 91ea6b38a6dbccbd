"""Moves of a module that the text shows to be needed: of a new module, of another one, and back."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.words import MODULE_MOVES
from flake8_torchperf.syntax.names import spelled
from flake8_torchperf.syntax.traversal import once, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Methods that return the module itself: torch/nn/modules/module.py.
RETURNING_SELF = MODULE_MOVES | {
    "eval", "train", "requires_grad_", "half", "float", "double", "bfloat16",
}  # fmt: skip
# Words for the host in the name of a device: `self.offload_device`.
HOST_WORDS = ("cpu", "host", "offload")
_PLACES = (ast.Name, ast.Attribute, ast.Subscript)


def moved(call: ast.Call) -> ast.expr | None:
    """Return ``model`` for ``model.eval().to(device)``; None for a module that the code makes."""
    node: ast.expr = call
    while isinstance(node, ast.Call):
        func = node.func
        if not isinstance(func, ast.Attribute) or func.attr not in RETURNING_SELF:
            return None
        node = func.value
    return node if isinstance(node, _PLACES) else None


def made_in(owner: ast.expr, code: ast.AST) -> bool:
    """True if a piece of code makes the module, or the object that holds it, or may."""
    path = spelled(owner)
    made = _made(code)
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in made)


@once
def _made(code: ast.AST) -> frozenset[str]:
    """Return the names and attributes that a piece of code gives anything but a known object."""
    return frozenset(spelled(target) for target, value in _bindings(code) if not _is_known(value))


def _bindings(code: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield each target that a piece of code assigns, and its value; None if that is not known."""
    for node in walk([code]):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from _pairs(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield target, value
            case ast.NamedExpr(target=target, value=value):
                yield target, value


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
        return
    values: list[ast.expr | None] = [None] * len(target.elts)
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(values):
        values = list(value.elts)
    for one, given in zip(target.elts, values, strict=True):
        yield from _pairs(one, given)


def _is_known(value: ast.expr | None) -> bool:
    """True for another name of an object, and for ``model = model.to(device)``."""
    return isinstance(value, _PLACES) or (isinstance(value, ast.Call) and moved(value) is not None)


def is_another(owner: ast.expr, loop: ast.AST) -> bool:
    """True for ``net.to(device)`` in ``for net in nets:``: each round moves another module.

    True as well if the round finds it by a name that the loop binds (``net = nets[i]``).
    """
    names = _names(owner)
    for _ in range(MAX_STEPS):
        if not names.isdisjoint(_picking(loop)):
            return True
        more = {
            name
            for target, value in _bindings(loop)
            if value is not None and isinstance(target, ast.Name) and target.id in names
            for name in _names(value)
        }
        if more <= names:
            return False
        names |= more
    return False


# The names that may lie between a module and the name that a loop binds.
MAX_STEPS = 3


@once
def _picking(loop: ast.AST) -> frozenset[str]:
    """Return the names that a loop's head binds, and those that its rounds count up."""
    parts = getattr(loop, "generators", None) or [loop]
    targets = [part.target for part in parts if isinstance(part, (*_HEADS, ast.comprehension))]
    counted = [node.target for node in walk([loop]) if isinstance(node, ast.AugAssign)]
    return frozenset(name for target in (*targets, *counted) for name in _names(target))


_HEADS = (ast.For, ast.AsyncFor)


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in walk([node]) if isinstance(one, ast.Name)} - {"self"}


def comes_back(owner: ast.expr, codes: Iterable[ast.AST]) -> bool:
    """True if the pieces of code move the module to the host and from there, so that it copies."""
    path = spelled(owner)
    where = {one for code in codes for one in _destinations(code).get(path, ())}
    to_host = {one for one in where if any(word in one for word in HOST_WORDS)}
    return bool(to_host) and to_host != where


@once
def _destinations(code: ast.AST) -> dict[str, frozenset[str]]:
    """Return where a piece of code moves each object, as texts."""
    found: dict[str, frozenset[str]] = {}
    for node in walk([code]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            where = _destination(node, node.func.attr)
            owner = moved(node) if where else None
            if owner is not None:
                path = spelled(owner)
                found[path] = found.get(path, frozenset()) | {where}
    return found


def _destination(call: ast.Call, name: str) -> str:
    """Return the text of the device that a call moves to; "" for a dtype and any other call."""
    if name != "to":
        return name if name in MODULE_MOVES else ""
    given = next((one.value for one in call.keywords if one.arg == "device"), None)
    given = given or next(iter(call.args), None)
    match given:
        case None:
            return ""
        case ast.Constant(value=str(text)) | ast.Call(args=[ast.Constant(value=str(text)), *_]):
            return text.lower()
        case ast.Attribute(value=ast.Name(id="torch")):
            return ""
    text = spelled(given).lower()
    return "" if "dtype" in text else text
