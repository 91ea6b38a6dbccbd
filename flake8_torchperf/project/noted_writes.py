"""The attributes that a method writes on its first parameter, by its text alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol, TypeVar

from flake8_torchperf.syntax.names import is_name

if TYPE_CHECKING:
    from flake8_torchperf.syntax.traversal import Nodes


class Method(Protocol):
    """A method."""

    @property
    def tree(self) -> ast.FunctionDef | ast.AsyncFunctionDef:
        """The definition, for whoever asks for the attributes that methods write."""


Info = TypeVar("Info", bound=Method)

# Methods that put a value into a list, set or dict.
FILLING_METHODS = ("append", "add", "extend", "insert", "update", "setdefault", "appendleft")
# Methods of modules that store a value under the name passed with it.
REGISTERING = {"register_buffer", "register_parameter", "register_module", "add_module"}
# Stands for every attribute if a method computes the name of the attribute that it writes.
ANY = "*"


def record_writes(
    method: Info, nodes: Nodes, writers: dict[str, list[Info]], setters: dict[str, list[Info]]
) -> None:
    """Note the attributes that a method writes in its nodes, but not their values."""
    arguments = [*method.tree.args.posonlyargs, *method.tree.args.args]
    if not arguments:
        return
    me = arguments[0].arg
    for attribute in nodes.of(ast.Attribute):
        if isinstance(attribute.ctx, ast.Store) and is_name(attribute.value, me):
            _note(writers, attribute.attr, method)
    for item in nodes.of(ast.Subscript):
        held = item.value
        if not isinstance(item.ctx, ast.Store) or not isinstance(held, ast.Attribute):
            continue
        if is_name(held.value, me):
            _note(writers, held.attr, method)
    for call in nodes.of(ast.Call):
        _record_call(call, me, method, writers, setters)


def _record_call(
    call: ast.Call,
    me: str,
    method: Info,
    writers: dict[str, list[Info]],
    setters: dict[str, list[Info]],
) -> None:
    """Note ``self.xs.append(x)``, ``self.register_buffer("x", t)``, ``setattr(self, "x", t)``."""
    func = call.func
    if isinstance(func, ast.Attribute):
        owner = func.value
        held = _held(owner) if func.attr in FILLING_METHODS else owner
        if isinstance(held, ast.Attribute) and is_name(held.value, me):
            if func.attr in FILLING_METHODS:
                _note(writers, held.attr, method)
        elif is_name(owner, me) or (_is_super(owner) and func.attr in REGISTERING):
            attr = _text(call.args[0]) if call.args else ""
            if not attr and call.keywords and call.keywords[0].arg == "name":
                attr = _text(call.keywords[0].value)
            if attr or func.attr in REGISTERING:
                _note(setters, attr or ANY, method)
    elif is_name(func, "setattr") and len(call.args) > 1 and is_name(call.args[0], me):
        _note(setters, _text(call.args[1]) or ANY, method)


def _is_super(node: ast.expr) -> bool:
    """True for ``super()``, which calls a base's method on the same object."""
    return isinstance(node, ast.Call) and is_name(node.func, "super")


def _held(node: ast.expr) -> ast.expr:
    """Return ``self.xs`` for ``self.xs[key]`` and for ``self.xs.setdefault(key, [])``."""
    while True:
        match node:
            case ast.Subscript(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr="setdefault")):
                node = inner
            case _:
                return node


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _note(table: dict[str, list[Info]], attr: str, method: Info) -> None:
    methods = table.setdefault(attr, [])
    if method not in methods:
        methods.append(method)
