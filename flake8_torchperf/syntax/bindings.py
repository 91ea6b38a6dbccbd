"""The names that code binds, and the statements of a function that decide one attribute."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.names import is_name
from flake8_torchperf.syntax.traversal import DEFINITIONS, FUNCTIONS, NAME, inside, once, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flake8_torchperf.syntax.traversal import Nodes

# If an attribute depends on more simple statements than this, interpreting them takes too long.
MAX_STATEMENTS = 60
# The most steps from an attribute to the names that its value depends on.
MAX_STEPS = 8
BLOCKS = ("body", "orelse", "finalbody")
# Nodes with the name that they bind in a field; that of a clause or a pattern may be None.
_NAMED = (*DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


def bound_by(node: ast.AST) -> Sequence[str]:
    """Return the names that a node without its parts binds, deletes or shares with outer code.

    A parameter is bound by the call, so it is none of these.
    """
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, _NAMED):
        return () if node.name is None else (node.name,)
    match node:
        case ast.MatchMapping(rest=str(name)):
            return (name,)
        case ast.Import(names=names):
            return [one.asname or one.name.partition(".")[0] for one in names]
        case ast.ImportFrom(names=names):
            return [one.asname or one.name for one in names]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
    return ()


def all_bound_by(code: Iterable[ast.AST]) -> frozenset[str]:
    """Return the names that pieces of code bind, delete or share with outer code in any way."""
    return frozenset(name for root in code for node in ast.walk(root) for name in bound_by(node))


@once
def bound_in(code: ast.AST) -> frozenset[str]:
    """Return the names that a piece of code gives a value, other than by a definition."""
    if isinstance(code, FUNCTIONS):
        names = inside(code, ast.Name)
    else:
        names = [node for node in walk([code]) if isinstance(node, ast.Name)]
    return frozenset([name.id for name in names if isinstance(name.ctx, ast.Store)])


def times_bound(nodes: Nodes) -> Counter[str]:
    """Return how often some nodes give each name a value."""
    return Counter(name.id for name in nodes.of(NAME) if isinstance(name.ctx, ast.Store))


def changes_in(node: ast.expr, loop: ast.AST) -> bool:
    """True if an expression may change each round, because it uses a name that the loop binds."""
    bound = bound_in(loop)
    return any(isinstance(inner, ast.Name) and inner.id in bound for inner in walk([node]))


def binding_statements(
    method: ast.FunctionDef | ast.AsyncFunctionDef, me: str, attribute: str
) -> list[ast.stmt]:
    """Return the statements that bind ``self.attribute`` and the names that its value depends on.

    The blocks around these statements are copied without their other statements. The list is empty
    if there are more than `MAX_STATEMENTS`.
    """
    tables = _bound_by(method)
    if me not in tables:
        simple = [s for s in walk(method.body) if isinstance(s, ast.stmt) and not _blocks(s)]
        tables[me] = [(statement, _bound(statement, me)) for statement in simple]
    kept: set[int] = set()
    wanted = new = {f"{me}.{attribute}"}
    for _ in range(MAX_STEPS):
        found = [s for s, bound in tables[me] if id(s) not in kept and not bound.isdisjoint(new)]
        kept.update(map(id, found))
        used = {name for s in found for name in _used(s, me)}
        new = used - wanted
        wanted = wanted | used
        if not new:
            break
    return _pruned(method.body, kept) if len(kept) <= MAX_STATEMENTS else []


@once
def _bound_by(method: ast.AST) -> dict[str, list[tuple[ast.stmt, set[str]]]]:
    """Return the table of the names that a method's simple statements bind, by name of ``self``.

    It is filled on demand and cached, because a long method makes many attributes.
    """
    return {}


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(statement, DEFINITIONS):
        return []
    found = [getattr(statement, name, []) for name in BLOCKS]
    found += [handler.body for handler in getattr(statement, "handlers", [])]
    found += [case.body for case in getattr(statement, "cases", [])]
    return [block for block in found if block]


def _bound(statement: ast.stmt, me: str) -> set[str]:
    """Return the names, and the attributes of ``self``, that a simple statement binds."""
    if isinstance(statement, DEFINITIONS):
        return {statement.name}
    found: set[str] = set()
    for node in walk([statement]):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Attribute(value=owner, attr=name, ctx=ast.Store()) if is_name(owner, me):
                found.add(f"{me}.{name}")
            case ast.Subscript(value=ast.Attribute(value=owner, attr=name), ctx=ast.Store()):
                found.add(f"{me}.{name}" if is_name(owner, me) else "")
            case ast.Call(args=[ast.Constant(value=str(name)), *_]):
                found.add(f"{me}.{name}")  # self.register_buffer("name", ...)
            case ast.Call(args=[_, ast.Constant(value=str(name)), *_], func=ast.Name(id="setattr")):
                found.add(f"{me}.{name}")
    return found


def _used(statement: ast.stmt, me: str) -> set[str]:
    """Return the names, and the attributes of ``self``, that a simple statement reads."""
    found: set[str] = set()
    for node in walk([statement]):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if name != me:
                found.add(name)
            case ast.Attribute(value=owner, attr=name, ctx=ast.Load()) if is_name(owner, me):
                found.add(f"{me}.{name}")
    return found


def _pruned(body: list[ast.stmt], kept: set[int]) -> list[ast.stmt]:
    """Return a block with only the statements in ``kept``, and the blocks that contain them."""
    found: list[ast.stmt] = []
    for statement in body:
        if id(statement) in kept:
            found.append(statement)
        elif isinstance(statement, (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.Try)):
            inner = {name: _pruned(getattr(statement, name, []), kept) for name in BLOCKS}
            if any(inner.values()):
                part = copy.copy(statement)
                for name, block in inner.items():
                    if block or hasattr(part, name):
                        setattr(part, name, block)
                part.body = part.body or [ast.copy_location(ast.Pass(), statement)]
                found.append(part)
    return found
