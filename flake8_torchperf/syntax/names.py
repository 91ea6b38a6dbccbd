"""Names as written in the code: dotted names, the text of expressions, parameters."""

from __future__ import annotations

import ast


def dotted_name(node: ast.expr) -> str:
    """Return ``a.b.c`` for a name or attribute chain, "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def is_name(node: ast.expr, name: str) -> bool:
    """True if the node is exactly this name."""
    return isinstance(node, ast.Name) and node.id == name


def asks_super(node: ast.expr) -> bool:
    """True for a call of ``super``."""
    return isinstance(node, ast.Call) and is_name(node.func, "super")


def spelled(node: ast.expr) -> str:
    """Return the text of an expression, as `ast.unparse` does, but faster for ``self.x.y``."""
    return dotted_name(node) or ast.unparse(node)


def called_a_device(node: ast.expr) -> bool:
    """True for a device by its name: ``self.device``, ``cfg["device"]``, ``device()``."""
    match node:
        case ast.Call(func=called):
            node = called
        case ast.Subscript(slice=ast.Constant(value=str() as key)):
            return "device" in key.lower()
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return "device" in name.lower() or name == "dev"
    return False


def moves_to_device(call: ast.Call) -> bool:
    """True if the arguments of a call name a device, as those of ``x.to(device)`` do."""
    given = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "device")]
    return any(map(called_a_device, given))


def named_parameters(args: ast.arguments) -> list[ast.arg]:
    """Return the parameters that take one argument each, in order."""
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def object_called(func: ast.expr) -> ast.expr:
    """Return the expression of the object that a call runs: ``model`` for ``model.forward(x)``."""
    match func:
        case ast.Attribute(value=(ast.Name() | ast.Attribute()) as owner, attr="forward"):
            return owner
    return func


def called_name(func: ast.expr) -> str:
    """Return the last name of a called expression; "" if it has none."""
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def given_to(call: ast.Call) -> list[ast.expr]:
    """Return the arguments of a call, those by keyword included."""
    given = [*call.args]
    if call.keywords:
        given += [keyword.value for keyword in call.keywords]
    return given
