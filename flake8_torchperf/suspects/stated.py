"""What annotations and docstrings state, as grades.

Enters an ast annotation and the facts of the module it stands in; leaves a grade, or None where it
says nothing of what the object is. Over-approximates `interpret/annotations.py`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.grades import (
    ANY,
    LIST,
    OBJECT,
    ROLE,
    TENSOR,
    TORCH,
    WEAK,
    element,
    holding,
    mapping,
)
from flake8_torchperf.suspects.modulemap import ClassInfo
from flake8_torchperf.suspects.words import HOST_CLASSES, is_public, torch_words
from flake8_torchperf.suspects.world import Unread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.suspects.facts import ModuleFacts

HOST_NAMES = frozenset(("int", "float", "bool", "str", "bytes", "complex", "None", "type"))
NOTHING = frozenset(("Any", "object", "TypeVar", "Callable", "Type"))
HOLDERS = frozenset((
    "dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict",
    "Counter", "ChainMap", "tuple", "Tuple", "Iterable", "Iterator", "Generator", "AsyncIterator",
    "AsyncGenerator", "AsyncIterable", "set", "Set", "frozenset", "FrozenSet", "AbstractSet",
    "KeysView", "ValuesView", "Reversible", "Collection", "ItemsView",
))  # fmt: skip
MAPPINGS = frozenset((
    "dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict",
    "Counter", "ChainMap",
))  # fmt: skip
LISTS = frozenset(("list", "List", "Sequence", "MutableSequence", "deque", "Deque"))
CHOICES = frozenset(("Optional", "Union", "Annotated", "Final", "ClassVar", "Required",
                     "NotRequired", "ReadOnly", "Awaitable", "Coroutine", "InitVar"))  # fmt: skip
TENSOR_BASES = re.compile(r"Tensor|Param|Buffer|Variable")
RECORDS = ("NamedTuple", "TypedDict")
MAX_DEPTH = 8


def stated(node: ast.expr | None, facts: ModuleFacts, depth: int = 0) -> int | None:
    """The grade of an object so annotated; None where anything may stand there."""
    if node is None or depth > MAX_DEPTH:
        return None
    match node:
        case ast.Constant(value=str(text)):
            return stated(_parsed(text), facts, depth + 1)
        case ast.Constant():
            return 0
        case ast.Name() | ast.Attribute():
            return _named(node, facts, depth)
        case ast.BinOp(left=left, right=right):
            return _either(_sides(left, right), facts, depth)
        case ast.Subscript(value=base, slice=inner):
            return _generic(base, inner, facts, depth)
    return None


def _sides(left: ast.expr, right: ast.expr) -> list[ast.expr]:
    """``a | b | c`` as three."""
    if isinstance(left, ast.BinOp):
        return [*_sides(left.left, left.right), right]
    return [left, right]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None  # a string in an annotation may be any text


def _either(nodes: Iterable[ast.expr], facts: ModuleFacts, depth: int) -> int | None:
    """One of several; an option that says nothing leaves what the others say.

    A tensor or something else, None apart, is no more than assumed to be a tensor.
    """
    grades = [(stated(node, facts, depth + 1), _is_none(node)) for node in nodes]
    result = 0
    silent = False
    other = False
    for grade, empty in grades:
        silent = silent or grade is None
        other = other or (not empty and not (grade or 0) & TENSOR)
        result |= grade or 0
    if silent and not result:
        return None
    return result & ~TENSOR | WEAK if other and result & TENSOR else result


def _named(node: ast.expr, facts: ModuleFacts, depth: int) -> int | None:
    module = facts.module
    if isinstance(node, ast.Name) and node.id in module.classes:
        return of_class(module.classes[node.id], facts, depth)
    name = module.qualify(node)
    head, _, short = name.rpartition(".")
    if not head and short in HOST_NAMES:
        return 0
    if short in NOTHING:
        return None
    if short in LISTS:
        return None if short in ("list", "List") else LIST
    if short in HOLDERS:
        return None
    if short == "Self":
        return OBJECT
    if isinstance(node, ast.Name) and node.id in module.constants:
        return _alias(module.constants[node.id], facts, depth)
    if short.endswith("Tensor") or short in ("Parameter", "Buffer", "Variable"):
        return TENSOR | ROLE if short == "Parameter" else TENSOR
    result: int | None = None
    if head.partition(".")[0] == "torch" and (
        short in torch_words().classes or short in HOST_CLASSES
    ):
        result = 0 if short in HOST_CLASSES else of_torch(short)
        if not facts.ours("torch") or is_public(name):
            return result
    found = facts.world.resolve(name, module)
    if found is None:
        return result
    home, thing = found
    if isinstance(thing, list):
        return _alias(thing, home, depth)
    if isinstance(thing, ClassInfo):
        return of_class(thing, home, depth) | (result or 0)
    return ANY if isinstance(thing, Unread) else result


def of_torch(short: str) -> int:
    """An object of a class of torch's; a loader's batches lie on the host."""
    return TORCH | holding(ANY) if short == "DataLoader" else TORCH


def of_class(info: ClassInfo, facts: ModuleFacts, depth: int = 0) -> int:
    """An object of a class of the project."""
    result = facts.world.typed(info)
    for base in info.bases:
        if TENSOR_BASES.search(base):
            result |= TENSOR
        if base.rpartition(".")[2] in RECORDS:
            for inner in info.annotations.values():
                found = stated(inner, facts, depth + 1)
                result |= holding(ANY if found is None else found)
    return result


def _alias(values: list[ast.expr], facts: ModuleFacts, depth: int) -> int | None:
    """A type alias, a NewType or a TypeVar assigned at module level."""
    parts: list[ast.expr] = []
    for value in values:
        if isinstance(value, ast.Call):
            parts += [*value.args[1:], *(k.value for k in value.keywords)]
        else:
            parts.append(value)
    return _either(parts, facts, depth)


def _generic(base: ast.expr, inner: ast.expr, facts: ModuleFacts, depth: int) -> int | None:
    short = facts.module.qualify(base).rpartition(".")[2]
    if short in ("Literal", "Type", "type"):
        return 0
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    grades = [stated(part, facts, depth + 1) for part in parts]
    if short == "Callable":
        return OBJECT if grades and grades[-1] != 0 else 0
    joined = 0
    for grade in grades:
        joined |= grade or 0
    if short in LISTS or short in HOLDERS:
        if not joined and any(g is None for g in grades):
            return None
        if short in MAPPINGS and not grades[0]:
            return mapping(joined)
        return holding(joined) | (LIST if short in LISTS else 0)
    if short == "Optional":
        return grades[0]
    if short in CHOICES:
        return _either(parts if short == "Union" else parts[:1], facts, depth)
    found = _named(base, facts, depth)
    if not joined:
        return found
    return joined | element(joined) | (found or 0)


def documented(docstring: str, name: str) -> bool:
    """May the docstring say that this parameter is a tensor?"""
    word = rf"\b{re.escape(name)}\b"
    return re.search(rf"{word}[^\n]*ensor|ensor[^\n]*{word}", docstring) is not None
