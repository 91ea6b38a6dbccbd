"""The parameters of a function that it reads on the host, by the text of its body.

A function reads a parameter where it makes a number or text of it, compares it or takes it for a
bound or an index. Whether that waits depends on what calls pass.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.calls.other_kinds import is_declared_int
from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.interpreter.models.builtin_reductions import REDUCTIONS
from flake8_torchperf.knowledge.logging_calls import READING_METHODS
from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.suspects.words import CONVERTING
from flake8_torchperf.syntax.names import given_to
from flake8_torchperf.values.values import STR, UNKNOWN, Mapping_, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import FunctionInfo
    from flake8_torchperf.values.values import Value

_READING = methods_of("reads", "copies-to-host")


def _read_parameters(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters that are read on the host and whose type nothing shows."""
    read: dict[str, None] = {}
    for call in info.nodes.of(ast.Call):
        match call:
            case ast.Call(func=ast.Name(id=function), args=[one]) if function in CONVERTING:
                named = [one.id] if isinstance(one, ast.Name) else _dict_of(one)
                read.update((name, None) for name in named)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                if method in _READING:
                    read[name] = None
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in _READING:
                read.update((name, None) for name in _dict_of(value))
    return _undeclared(read, info, analysis)


def _dict_of(value: ast.expr) -> list[str]:
    """Return the name of the dict whose entry a value is computed from: ``batch["n"].max()``."""
    while True:
        match value:
            case ast.Call(func=ast.Attribute(value=inner)):
                value = inner
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str())):
                return [name]
            case _:
                return []


def _tested_parameters(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters of unknown type that a test compares, or that stand as an index."""
    found: dict[str, None] = {}
    for branch in info.nodes.of_any(ast.If, ast.While, ast.IfExp, ast.Assert):
        match branch.test:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, ORDERING):
                found.update((one.id, None) for one in (left, right) if isinstance(one, ast.Name))
    for item in info.nodes.of(ast.Subscript):
        if isinstance(item.slice, ast.Name) and isinstance(item.value, ast.Name):
            found[item.slice.id] = None
    return _undeclared(found, info, analysis)


def positions(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters declared to be integers that index a table of the object.

    A loop over ``scheduler.timesteps`` gives ``def step(self, x, t: int)`` a tensor, which
    ``self.alphas[t]`` reads.
    """
    if info.owner is None:
        return []
    names = {
        item.slice.id: None
        for item in info.nodes.of(ast.Subscript)
        if isinstance(item.slice, ast.Name) and isinstance(item.value, ast.Attribute)
    }
    declared = declared_parameters(info, analysis) if names else {}
    return [name for name in names if is_declared_int(declared.get(name, UNKNOWN))]


def masks(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters that stand as an index and may be masks, as far as is declared.

    ``tensor[mask]`` waits for how many elements the mask keeps; an index of integers doesn't wait.
    """
    found: dict[str, None] = {}
    for item in info.nodes.of(ast.Subscript):
        parts = item.slice.elts if isinstance(item.slice, ast.Tuple) else [item.slice]
        found.update((part.id, None) for part in parts if isinstance(part, ast.Name))
    declared = declared_parameters(info, analysis) if found else {}
    return [name for name in found if name in declared and may_be_mask(declared[name])]


def may_be_mask(value: Value) -> bool:
    """True for a tensor of unknown type, and for a value of which nothing is known."""
    return value is UNKNOWN or (isinstance(value, Tensor) and value.dtype == "unknown")


def _repeats(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters of unknown type that say how often ``repeat_interleave`` repeats."""
    found: dict[str, None] = {}
    for call in info.nodes.of(ast.Call):
        match call.func:
            case ast.Attribute(value=owner, attr="repeat_interleave"):
                place = 1 if isinstance(owner, ast.Name) and owner.id == "torch" else 0
                named = {keyword.arg: keyword.value for keyword in call.keywords}
                if "output_size" in named:
                    continue  # nothing is read then
                given = [*call.args[place : place + 1], named.get("repeats")]
                found.update((one.id, None) for one in given if isinstance(one, ast.Name))
    return _undeclared(found, info, analysis)


# Comparisons by which a branch on a tensor waits.
ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _undeclared(names: dict[str, None], info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return those of the names that are parameters whose type nothing in the function shows.

    A name that goes through the values of ``**keywords`` stands for these.
    """
    if not names:
        return []
    declared = declared_parameters(info, analysis)
    keywords = info.tree.args.kwarg
    if keywords is not None and not names.keys().isdisjoint(_values_of(keywords.arg, info)):
        names = {**names, keywords.arg: None}
    return [name for name in names if declared.get(name) in UNDECLARED]


# The value of a parameter of unknown type, and of one such as ``**keywords``.
UNDECLARED = (UNKNOWN, Mapping_(STR, UNKNOWN))


def _values_of(keywords: str, info: FunctionInfo) -> set[str]:
    """Return the names that a loop over a dict binds to its values."""
    found: set[str] = set()
    loops = [(one.iter, one.target) for one in info.nodes.of(ast.For)]
    loops += [(one.iter, one.target) for one in info.nodes.of(ast.comprehension)]
    for source, target in loops:
        match source, target:
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr="items")),
                ast.Tuple(elts=[_, ast.Name(id=name)]),
            ) if held == keywords:
                found.add(name)
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr="values")),
                ast.Name(id=name),
            ) if held == keywords:
                found.add(name)
    return found


def _written(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters of unknown type that are written as numbers, or given to a logger.

    A format with a number of digits asks for a number, as ``f"{loss:.4f}"`` does. Texts and other
    objects are written without one.
    """
    found: dict[str, None] = {}
    for part in info.nodes.of(ast.FormattedValue):
        if part.format_spec is not None and asks_for_number(part.format_spec, _SPEC):
            found.update(_names([part.value]))
    for parts in info.nodes.of(ast.BinOp):
        if isinstance(parts.op, ast.Mod) and asks_for_number(parts.left, _PERCENT):
            right = parts.right
            found.update(_names(right.elts if isinstance(right, ast.Tuple) else [right]))
    for call in info.nodes.of(ast.Call):
        match call.func:
            case ast.Attribute(value=text, attr="format") if asks_for_number(text, _BRACES):
                found.update(_names(given_to(call)))
            case ast.Attribute(attr=name) if name in READING_METHODS:
                found.update(_names(given_to(call)))
            case _ if call.args and asks_for_number(call.args[0], _PERCENT):
                found.update(_names(call.args[1:]))
    return _undeclared(found, info, analysis)


# Formats that write a number: of `format()`, of `str.format` and of `%`.
_SPEC = re.compile(r"[\d.]+[eEfFgG%]$")
_BRACES = re.compile(r"\{\w*:[^{}]*[\d.]+[eEfFgG%]\}")
_PERCENT = re.compile(r"%[-+ #]?[\d.]*[eEfFgG]")


def asks_for_number(node: ast.expr, form: re.Pattern[str]) -> bool:
    """True if a text, or a part of one, holds a format of a number."""
    match node:
        case ast.Constant(value=str(text)):
            return form.search(text) is not None
        case ast.JoinedStr(values=parts):
            return any(asks_for_number(part, form) for part in parts)
    return False


def _reduced(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters of unknown type that a function of Python rounds or reduces.

    Those that a loop goes through don't count: one call may pass a list, and another a tensor.
    """
    found: dict[str, None] = {}
    for call in info.nodes.of(ast.Call):
        match call.func:
            case ast.Name(id=name) if name in COMPARING_OR_ADDING:
                found.update(_names(call.args))
            case ast.Attribute(value=ast.Name(id="math")):
                found.update(_names(call.args))
    return _undeclared(found, info, analysis)


# Functions of Python that compare or add what they are given, round it or count up to it.
COMPARING_OR_ADDING = REDUCTIONS | {"round", "range"}


def _bounds(info: FunctionInfo, analysis: Analysis) -> list[str]:
    """Return the parameters of unknown type that bound a slice or the numbers of ``arange``."""
    found: dict[str, None] = {}
    for part in info.nodes.of(ast.Slice):
        found.update(_names([one for one in (part.lower, part.upper) if one is not None]))
    for call in info.nodes.of(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "arange":
            found.update(_names(given_to(call)))
    return _undeclared(found, info, analysis)


def _names(nodes: Iterable[ast.expr]) -> dict[str, None]:
    """Return the names among expressions, and those of which an expression is an element."""
    found: dict[str, None] = {}
    for node in nodes:
        one = node.value if isinstance(node, ast.Subscript) else node
        if isinstance(one, ast.Name):
            found[one.id] = None
    return found


# In the order in which they are asked: few functions of a file are looked up.
KINDS_OF_READS = (
    _read_parameters,
    _tested_parameters,
    positions,
    _repeats,
    _written,
    _reduced,
    _bounds,
    masks,
)
