"""Loops that only store the items they iterate; for a tensor's rows, that costs one ``unbind``.

The analysis is by syntax alone.
"""

from __future__ import annotations

import ast

from flake8_torchperf.idioms.loop_kinds import head_of, names_in
from flake8_torchperf.syntax.names import called_name
from flake8_torchperf.syntax.traversal import COMPREHENSIONS, children, once, walk

# Methods of lists and queues that store their argument.
STORING = frozenset(("append", "appendleft", "add", "insert", "put"))
# Displays, which store their items.
LITERAL_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict)


@once
def only_keeps(loop: ast.AST) -> bool:
    """True for ``for row in t: rows.append(row)`` and ``{k: row for k, row in zip(keys, t)}``.

    ``Tensor.__iter__`` makes all rows with one ``unbind`` (torch/_tensor.py), so only the loop's
    body can launch anything for each row.
    """
    head = head_of(loop)
    rows = frozenset[str]() if head is None else frozenset(names_in(_row(head)))
    if isinstance(loop, COMPREHENSIONS):
        if len(loop.generators) > 1 or loop.generators[0].ifs:
            return False
        made = [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]
        return all(_kept(part, rows) for part in made)
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return False
    return all(_stores(statement, rows) for statement in loop.body)


@once
def listed_calls(function: ast.AST) -> frozenset[int]:
    """Return the calls, by identity, made into a list or tuple: ``tuple(zip(keys, values))``."""
    found: set[int] = set()
    for call in walk([function]):
        match call:
            case ast.Call(func=ast.Name(id="list" | "tuple"), args=[ast.Call() as inner]):
                found.add(id(inner))
    return frozenset(found)


@once
def stored_calls(function: ast.AST) -> frozenset[int]:
    """Return the calls, by identity, whose items a loop only stores: ``[(a, b) for ... in zip()]``.

    A loop that ends early is no such loop.
    """
    found: set[int] = set()
    for loop in walk([function]):
        if isinstance(loop, (*COMPREHENSIONS, ast.For)) and only_keeps(loop):
            head = head_of(loop)
            if head is not None and isinstance(head.iter, ast.Call):
                found.add(id(head.iter))
    return frozenset(found)


@once
def formatted_displays(function: ast.AST) -> frozenset[int]:
    """Return the tuples, by identity, whose items ``"%g %g" % (*losses, step)`` makes text of."""
    return frozenset(
        id(node.right)
        for node in walk([function])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
    )


@once
def moves_each(loop: ast.AST) -> bool:
    """True for ``[t.to(device) for t in tensors]``: a single tensor would be moved as a whole.

    A value whose items are moved one by one is a list of tensors, whatever its declaration says.
    """
    if not isinstance(loop, COMPREHENSIONS) or isinstance(loop, ast.DictComp):
        return False
    match loop.generators, loop.elt:
        case (
            [ast.comprehension(target=ast.Name(id=row))],
            ast.Call(func=ast.Attribute(value=ast.Name(id=moved), attr="to" | "cuda")),
        ):
            return moved == row
    return False


def _row(head: ast.For | ast.AsyncFor | ast.comprehension) -> ast.expr:
    """Return the loop's target, without the counter that ``enumerate`` adds."""
    match head.iter, head.target:
        case ast.Call(func=ast.Name(id="enumerate")), ast.Tuple(elts=[_, row]):
            return row
    return head.target


def _stores(statement: ast.AST, rows: frozenset[str]) -> bool:
    """True if a statement of the body only stores rows, or does not use them at all."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=name)) as call):
            if name in STORING and not call.keywords and rows.isdisjoint(names_in(owner)):
                return all(_kept(argument, rows) for argument in call.args)
        case ast.Expr(value=ast.Yield(value=ast.expr() as value)):
            return _kept(value, rows)
    return rows.isdisjoint(names_in(statement))


def _kept(part: ast.AST, rows: frozenset[str]) -> bool:
    """True if a piece of code only names rows, or holds them in displays and records."""
    if isinstance(part, ast.Name) or rows.isdisjoint(names_in(part)):
        return True
    held = isinstance(part, LITERAL_DISPLAYS) or (
        isinstance(part, ast.Call) and _makes_record(part.func)
    )
    return held and all(
        _kept(inner.value if isinstance(inner, ast.keyword) else inner, rows)
        for inner in children(part)
    )


def _makes_record(called: ast.expr) -> bool:
    """True for ``PixelData(heatmaps=row)``: the callee is a class by its name."""
    name = called_name(called)
    return name[:1].isupper() and not name.isupper()
