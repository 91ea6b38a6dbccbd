"""Calls that move what may be made on the host, or a module: cheap, by the text alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.words import HOST_DATA_COPIES, MODULE_MOVES, MOVE_CALLS
from flake8_torchperf.syntax.names import called_name, given_to, is_name

if TYPE_CHECKING:
    from collections.abc import Container

    from flake8_torchperf.syntax.traversal import Nodes


def moves_module(nodes: Nodes, called: Container[str]) -> bool:
    """True if something is moved in place, or moved and called, as only a module can be."""
    if any(_moves(statement.value) for statement in nodes.of(ast.Expr)):
        return True
    for call in nodes.of(ast.Call):
        match call.func:
            case ast.Attribute(attr="eval" | "train", value=inner):
                found = _moves(inner)
            case ast.Attribute(attr=name, value=owner) if name in MODULE_MOVES:
                found = called_name(owner) in called
            case func:
                found = _moves(func)  # `model.to(device)(x)`
        if found:
            return True
    return False


def _moves(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in MODULE_MOVES
    return False


def moves_what_is_made(nodes: Nodes) -> bool:
    """True if what no parameter gives is moved, which may be made, or kept, on the host.

    Examples are ``make_mask(n).to(x.device)`` and ``self.betas.to(x.device)``.
    """
    given = {one.arg for one in nodes.of(ast.arg)}
    for call in nodes.of(ast.Call):
        match call.func:
            case ast.Attribute(value=owner, attr="to" | "type"):
                found = any(map(may_name_place, given_to(call))) and _may_be_made(owner, given)
            case ast.Attribute(value=owner, attr=name) if name in MOVE_CALLS:
                found = name != "copy_" and _may_be_made(owner, given)
            case _:
                continue
        if found:
            return True
    return False


def _may_be_made(owner: ast.expr, given: Container[str]) -> bool:
    """True unless an expression is a parameter, or made of one by methods and indices alone."""
    match owner:
        case ast.Name(id=name):
            return name not in given
        case ast.Subscript(value=inner):
            return _may_be_made(inner, given)
        case ast.Call(func=ast.Attribute(value=inner)):
            return is_name(inner, "self") or is_name(inner, "cls") or _may_be_made(inner, given)
    return isinstance(owner, (ast.Attribute, ast.Call, ast.BinOp))


def may_name_place(node: ast.expr) -> bool:
    """True if an argument may be a device, or a tensor on one, rather than a dtype."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (str, int)) and not isinstance(value, bool)
        case ast.Attribute(attr="dtype") | ast.Attribute(value=ast.Name(id="torch")):
            return False
        case ast.Name(id=name):
            return "dtype" not in name
    return True


def copies_to_device(call: ast.Call) -> bool:
    """True for a call that copies host data to a device: ``torch.tensor(x, device=d)``."""
    return called_name(call.func) in HOST_DATA_COPIES and any(
        keyword.arg == "device" for keyword in call.keywords
    )
