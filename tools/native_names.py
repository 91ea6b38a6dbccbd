"""Declare names that never change, so that compiled code need not look them up.

Takes the text of a module and returns it with its constants declared final. Names from ``ast``
become constants too: compiled code would otherwise look each one up in a dict, each time. No class
of nodes derives from another one that nodes can be of, so ``isinstance`` becomes a comparison of
types, which takes a tenth of the time. No line moves. The module knows nothing about the meaning of
the names.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterator

CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
# Classes of ast that no node is an instance of itself.
ABSTRACT = frozenset((
    "AST", "mod", "stmt", "expr", "expr_context", "boolop", "operator", "unaryop", "cmpop",
    "excepthandler", "pattern", "type_ignore", "type_param", "slice",
))  # fmt: skip
# Calls that make types: names that annotations know under the very name.
MAKERS = ("TypeVar", "ParamSpec", "NewType", "namedtuple", "NamedTuple")


class Edit(NamedTuple):
    """The new text between two places of one line, in bytes."""

    line: int
    start: int
    end: int
    text: str


def fixed_names(text: str) -> str:
    """Return the text of a module with its constants declared final."""
    tree = ast.parse(text)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    edits = [*_constants(tree)]
    taken = [*_taken_from_ast(tree)] if any(_imports_ast(node) for node in imports) else []
    names = sorted({node.attr for node in taken})
    asked = [call for call in ast.walk(tree) if _asks_type(call)] if taken else []
    inside = {id(part) for call in asked for part in ast.walk(call)}
    edits += [_edit(call, _asked(call)) for call in asked]
    edits += [_edit(node, _own(node.attr)) for node in taken if id(node) not in inside]
    for node in imports:
        end = node.end_col_offset or 0
        if _imports_ast(node):
            own = "".join(f"; {_own(name)}: _Final = ast.{name}" for name in names)
            edits.append(Edit(node.lineno, end, end, own))
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            more = "; from typing import Any as _Any, Final as _Final"
            edits.append(Edit(node.lineno, end, end, more))
    lines = [line.encode() for line in text.split("\n")]
    for edit in sorted(edits, reverse=True):
        line = lines[edit.line - 1]
        lines[edit.line - 1] = line[: edit.start] + edit.text.encode() + line[edit.end :]
    return b"\n".join(lines).decode()


def _edit(node: ast.expr, text: str) -> Edit:
    return Edit(node.lineno, node.col_offset, node.end_col_offset or 0, text)


def _asks_type(node: ast.AST) -> TypeGuard[ast.Call]:
    """True for ``isinstance(node, ast.Name)`` with one or several classes, on one line."""
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(), kinds], keywords=[]):
            each = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
            return node.lineno == node.end_lineno and all(map(_is_concrete, each))
    return False


def _is_concrete(kind: ast.expr) -> bool:
    """True if the expression names a class of ast that nodes are instances of."""
    match kind:
        case ast.Attribute(value=ast.Name(id="ast"), attr=name):
            return name not in ABSTRACT
    return False


def _asked(node: ast.Call) -> str:
    """Return the ``isinstance`` call as a comparison of types."""
    name, kinds = ast.unparse(node.args[0]), node.args[1]
    each = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    attributes = [kind.attr for kind in each if isinstance(kind, ast.Attribute)]
    return "(" + " or ".join(f"type({name}) is {_own(attr)}" for attr in attributes) + ")"


def _imports_ast(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import) and [alias.name for alias in node.names] == ["ast"]


def _own(name: str) -> str:
    return f"_ast_{name}"


def _constants(tree: ast.Module) -> Iterator[Edit]:
    """Yield edits that declare constants final, where they are assigned once, at module level."""
    bound = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _is_bound(n)]
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                if CONSTANT.fullmatch(name) and bound.count(name) == 1 and not _makes_type(value):
                    place = target.end_col_offset or 0
                    yield Edit(node.lineno, place, place, f": {_final(value)}")
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr()):
                kind = ast.unparse(annotation)
                if (
                    not CONSTANT.fullmatch(name)
                    or bound.count(name) > 1
                    or kind.startswith("Final")
                ):
                    continue
                start, end = annotation.col_offset, annotation.end_col_offset or 0
                if annotation.lineno == annotation.end_lineno and kind != "TypeAlias":
                    yield Edit(annotation.lineno, start, end, f"_Final[{kind}]")


def _is_bound(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _makes_type(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in MAKERS


def _final(value: ast.expr) -> str:
    """Return the annotation of a constant.

    A tuple is declared as one of any length, which need not be built again for each use.
    """
    if not isinstance(value, ast.Tuple) or not value.elts:
        return "_Final"
    if all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in value.elts):
        return "_Final[tuple[str, ...]]"
    if all(_names_class(element) for element in value.elts):
        return "_Final[tuple[type[_Any], ...]]"
    return "_Final"


def _names_class(node: ast.expr) -> bool:
    """True if the node names a class: ``ast.Name`` or ``Tensor``, not ``UNKNOWN``."""
    last = ast.unparse(node).rpartition(".")[2]
    return isinstance(node, ast.Name | ast.Attribute) and CONSTANT.fullmatch(last) is None


def _taken_from_ast(tree: ast.Module) -> Iterator[ast.Attribute]:
    """Yield ``ast.Name`` and the like in the code of functions, as a value and not as a type."""
    waiting: list[ast.AST] = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Attribute(value=ast.Name(id="ast")):
                yield node
                continue
            case ast.FunctionDef():
                waiting.extend(node.body)
                waiting.extend(d for d in [*node.args.defaults, *node.args.kw_defaults] if d)
            case ast.ClassDef():
                waiting.extend(n for n in node.body if isinstance(n, ast.FunctionDef))
            case ast.AnnAssign(value=value):
                waiting.extend([] if value is None else [value])
            case ast.MatchClass():
                waiting.extend([*node.patterns, *node.kwd_patterns])
            case ast.Call(func=ast.Name(id="cast")):
                waiting.extend(node.args[1:])
            case _:
                waiting.extend(ast.iter_child_nodes(node))
