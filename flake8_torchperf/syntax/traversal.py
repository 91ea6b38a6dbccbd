"""Walks over every node of a piece of code, faster than `ast.walk`, also sorted by type."""

from __future__ import annotations

import ast
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    Node = TypeVar("Node", bound=ast.AST)
    Fact = TypeVar("Fact")

# Fields without evaluated nodes: names, numbers, operators, contexts, annotations.
LEAVES = frozenset((
    "ctx", "op", "ops", "id", "attr", "arg", "name", "kind", "type_comment", "annotation",
    "returns", "type_params", "conversion", "is_async", "level", "module", "simple", "rest",
    "kwd_attrs", "str", "tag", "type_ignores", "asname",
))  # fmt: skip
# Types that nearly every node is compared with. Reading a compiled constant is faster than reading
# an attribute of `ast`, which takes two look-ups in tables.
ATTRIBUTE: Final = ast.Attribute
CALL: Final = ast.Call
CONSTANT: Final = ast.Constant
NAME: Final = ast.Name
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
SCOPES = (*DEFINITIONS, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Statements that end their block.
LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
# Fields whose lists may hold None: the key of ``**other`` in a dict, a parameter without default.
# Looking for None in every list would take one comparison for each node.
HOLED = frozenset(("keys", "kw_defaults"))
# Types without an evaluated node below them.
PLAIN = frozenset((ast.Constant, ast.Name, ast.Global, ast.Nonlocal, ast.MatchSingleton))
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = dict.fromkeys(PLAIN, ())


def fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """Return the fields of a type of node that can hold further nodes to visit."""
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple(name for name in kind._fields if name not in LEAVES)
    return found


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below one that are evaluated, in the order of its fields."""
    found: list[ast.AST] = []
    kind = type(node)
    names = _FIELDS.get(kind)
    if names is None:
        names = fields(kind)
    held = node.__dict__
    for name in names:
        inner = held.get(name)
        if type(inner) is not list:
            if inner is not None:
                found.append(inner)
        elif name in HOLED and None in inner:
            found.extend([one for one in inner if one is not None])
        elif inner:
            found.extend(inner)
    return found


def walk(roots: Sequence[ast.AST]) -> list[ast.AST]:
    """Return the nodes themselves and all evaluated nodes below them, nearest first."""
    found = list(roots)
    table = _FIELDS
    for node in found:  # the loop appends to the list
        kind = type(node)
        if kind is NAME or kind is CONSTANT:
            continue
        if kind is ATTRIBUTE:
            found.append(node.value)  # type: ignore[attr-defined]
            continue
        # The body of `children`, inlined because the call would take half of the time.
        names = table.get(kind)
        if names is None:
            names = fields(kind)
        held = node.__dict__
        for name in names:
            inner = held.get(name)
            if type(inner) is not list:
                if inner is not None:
                    found.append(inner)
            elif name in HOLED and None in inner:
                found.extend([one for one in inner if one is not None])
            elif inner:
                found.extend(inner)
    return found


def sorted_by_type(roots: Sequence[ast.AST]) -> dict[type[ast.AST], list[Any]]:
    """Return the nodes that `walk` returns, per exact type, nearest first."""
    table: dict[type[ast.AST], list[Any]] = {}
    for node in walk(roots):
        kind = type(node)
        found = table.get(kind)
        if found is None:
            table[kind] = [node]
        else:
            found.append(node)
    return table


class Nodes:
    """The nodes of one piece of code by their type; the code is walked on first use.

    A function is walked once for all that ask for its nodes, here or by `inside`.
    """

    __slots__ = ("_by_type", "_roots", "_words")

    def __init__(self, roots: Sequence[ast.AST]) -> None:
        self._roots = roots
        self._by_type: dict[type[ast.AST], list[Any]] | None = None
        self._words: frozenset[str] | None = None

    def by_type(self) -> dict[type[ast.AST], list[Any]]:
        """Return all nodes, per exact type, nearest first."""
        if self._by_type is None:
            root = self._roots[0] if len(self._roots) == 1 else None
            if isinstance(root, FUNCTIONS):
                below_root = _sorted_below(root)
                kind = type(root)
                self._by_type = {**below_root, kind: [root, *below_root.get(kind, ())]}
            else:
                self._by_type = sorted_by_type(self._roots)
        return self._by_type

    def of(self, kind: type[Node]) -> list[Node]:
        """Return the nodes of one type."""
        table = self._by_type  # `by_type` without its call: it is nearly always made
        return (self.by_type() if table is None else table).get(kind, [])

    def of_any(self, *kinds: type[ast.AST]) -> list[Any]:
        """Return the nodes of several types, one type after the other."""
        table = self.by_type()
        return [node for kind in kinds for node in table.get(kind, ())]

    def words(self) -> frozenset[str]:
        """Return every name, attribute and keyword in the code."""
        if self._words is None:
            found = {name.id for name in self.of(NAME)}
            found.update([part.attr for part in self.of(ATTRIBUTE)])
            found.update([keyword.arg or "" for keyword in self.of(ast.keyword)])
            self._words = frozenset(found)
        return self._words


def once(find: Callable[[Node], Fact]) -> Callable[[Node], Fact]:
    """Cache the result of a function of one node on that node.

    Each site needs the facts about the function or the loop around it. Walking that code for each
    site would take time quadratic in its size. The result is stored on the node, because a table of
    weak references is slower. The result may refer to nodes below that node, but not to the node
    itself, which would then stay in memory until the next garbage collection.
    """
    name = f"_torchperf_{find.__module__}.{find.__qualname__}"

    @wraps(find)
    def fact(node: Node) -> Fact:
        held: dict[str, Fact] = node.__dict__
        if name not in held:
            held[name] = find(node)
        return held[name]

    return fact


@once
def below(node: ast.AST) -> list[ast.AST]:
    """Return every node below one as `ast.walk` orders them, annotations and operators included."""
    return list(ast.walk(node))[1:]


@once
def _sorted_below(code: ast.AST) -> dict[type[ast.AST], list[Any]]:
    return sorted_by_type(children(code))


def inside(code: ast.AST, kind: type[Node]) -> list[Node]:
    """Return the nodes of one type below a piece of code, nearest first; it is walked only once."""
    return _sorted_below(code).get(kind, [])


def method_calls(roots: Sequence[ast.AST], names: Container[str]) -> Iterator[ast.Call]:
    """Yield the calls of methods by these names: ``scaler.scale(loss).backward()`` for one."""
    for node in walk(roots):
        if isinstance(node, CALL) and isinstance(node.func, ATTRIBUTE) and node.func.attr in names:
            yield node


def round_counters(loop: ast.AST) -> set[str]:
    """Return the names that count rounds: those of ``range`` and the first of ``enumerate``."""
    match loop:
        case ast.For(
            target=ast.Name(id=name),
            iter=ast.Call(func=ast.Name(id="range"))
            | ast.Call(func=ast.Name(id="reversed"), args=[ast.Call(func=ast.Name(id="range"))]),
        ):
            return {name}
        case ast.For(
            target=ast.Tuple(elts=[ast.Name(id=name), *_]),
            iter=ast.Call(func=ast.Name(id="enumerate")),
        ):
            return {name}
    return set()


def plain_names(node: ast.AST) -> set[str]:
    """Return the names that a piece of code mentions, without names of attributes."""
    return {inner.id for inner in walk([node]) if isinstance(inner, ast.Name)}
