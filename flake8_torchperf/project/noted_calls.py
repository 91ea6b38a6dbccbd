"""The names of the methods that a method calls on its own object, by its text alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.syntax.traversal import Nodes


def called_on_first(arguments: ast.arguments, nodes: Nodes) -> tuple[str, ...]:
    """Return the names of the methods that are called on the first parameter, each once."""
    parameters = [*arguments.posonlyargs, *arguments.args]
    me = parameters[0].arg if parameters else ""
    found: dict[str, None] = {}
    for call in nodes.of(ast.Call):
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == me:
                found[attr] = None
            case ast.Name(id=name) if name == me:
                found["forward"] = None
    return tuple(found)


def called_by_super(nodes: Nodes) -> tuple[str, ...]:
    """Return the names of the methods that are called through ``super()``, each once."""
    found: dict[str, None] = {}
    for call in nodes.of(ast.Call):
        match call.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=attr):
                found[attr] = None
    return tuple(found)
