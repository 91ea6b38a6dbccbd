"""The methods that a method calls on its own object, and what is read of attributes, by text."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def read_of_attributes(pieces: Iterable[Nodes]) -> dict[str, dict[str, None]]:
    """Return the attributes that are read of each attribute, as ``shape`` of ``self.x.shape``."""
    found: dict[str, dict[str, None]] = {}
    for nodes in pieces:
        for node in nodes.of(ast.Attribute):
            if isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Attribute):
                found.setdefault(node.value.attr, {})[node.attr] = None
    return found
