"""``total += loss.item()`` -> ``total += loss.detach().double()``, and one ``float(total)`` after.

The total is a name, or an entry of a dict that nothing else sees until the loop is over.

It is added up in double precision, and counts in int64, as Python does: in bfloat16, 1,000 ones add
up to 256. ``float`` and ``int`` take a number as well, so a loop without rounds leaves the same
value.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.code import names_in, text_of
from flake8_torchperf.fixes.shared.kinds import has_float64, kind_of
from flake8_torchperf.fixes.shared.loops.entries import entry_total
from flake8_torchperf.fixes.shared.numbers import is_whole
from flake8_torchperf.fixes.shared.siblings import statements_before
from flake8_torchperf.fixes.shared.tensors import bindings
from flake8_torchperf.syntax.traversal import below
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class _Total:
    """A total: the number that it starts with, and its reads.

    ``within`` are the reads in branches of the loop, ``after`` is the statement after the loop, if
    the total is read there.
    """

    start: int | float
    within: tuple[ast.expr, ...]
    after: ast.stmt | None


def plan(place: FixPlace) -> Edit | None:
    """Apply to a name or an entry that starts as a number, and that the loop only adds to."""
    around, statement = place.around, place.site.node
    read, operand = place.site.operand_node, place.site.operand
    if not isinstance(statement, ast.AugAssign):
        return None
    if not isinstance(statement.op, (ast.Add, ast.Sub)) or not isinstance(operand, Tensor):
        return None
    whole = _read(read, statement, around)
    function = around.function(statement)
    if whole is None or function is None:
        return None
    match statement.target:
        case ast.Name(id=name):
            total = _total(statement, name, function, around)
        case ast.Subscript() as target:
            total = _entry(target, function, around)
        case _:
            return None
    kind = None if total is None else _kind(whole, operand, total.start, around)
    if total is None or kind is None or bindings(function, kind) or _is_bound(kind, around):
        return None
    if _is_caught(statement, around):
        return None
    nodes: tuple[ast.AST, ...] = (whole, *total.within)
    if total.after is not None:
        nodes = (*nodes, total.after)
    name = text_of(place, statement.target)
    facts = {"kind": kind, "name": name, "after": total.after is not None}
    return Edit(nodes, {**facts, "cast": "long" if kind == "int" else _floats(around)})


def _is_caught(statement: ast.AugAssign, around: Surroundings) -> bool:
    """True if an ``except`` or ``finally`` around the loop uses the total, a tensor there."""
    target = statement.target.value if isinstance(statement.target, ast.Subscript) else None
    names = names_in([target or statement.target])
    here: ast.AST = statement
    above = around.parent(here)
    while above is not None and not isinstance(here, _SCOPES):
        caught = [*above.handlers, *above.finalbody] if isinstance(above, ast.Try) else []
        if names & names_in(caught) and here in getattr(above, "body", ()):
            return True
        here, above = above, around.parent(above)
    return False


def _entry(target: ast.Subscript, function: ast.AST, around: Surroundings) -> _Total | None:
    """Return an entry of a dict as a total; None where no statement follows that could read it."""
    entry = entry_total(target, function, around)
    after = None if entry is None else _behind(entry.loop, around)
    return None if entry is None or after is None else _Total(entry.start, (), after)


def _floats(around: Surroundings) -> str:
    """Return the method for the most precise floats that all devices in the file have."""
    return "double" if has_float64(around) else "float"


def _is_bound(name: str, around: Surroundings) -> bool:
    module = around.module
    tables = (module.imports, module.functions, module.classes, module.constants)
    return any(name in table for table in tables)


def _read(read: ast.AST | None, statement: ast.AugAssign, around: Surroundings) -> ast.Call | None:
    """Return the call that reads the value, with ``float`` or ``int`` around it.

    None where the value is added with more than arithmetic around it.
    """
    if not isinstance(read, ast.Call) or read.keywords or _source(read) is None:
        return None
    above = around.parent(read)
    match above:
        case ast.Call(func=ast.Name(id="float" | "int"), args=[_], keywords=[]):
            read, above = above, around.parent(above)
    whole = read
    here: ast.AST = read
    while above is not None and above is not statement:
        fits = isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.USub)
        if isinstance(above, ast.BinOp):
            fits = isinstance(above.op, (ast.Add, ast.Sub, ast.Mult, ast.Div))
        if not fits:
            return None
        here, above = above, around.parent(above)
    return whole if here is statement.value else None


def _source(read: ast.expr) -> ast.expr | None:
    """Return the tensor of ``t.item()``, ``float(t)`` or ``int(t.item())``."""
    match read:
        case ast.Call(func=ast.Attribute(value=tensor, attr="item"), args=[]):
            return tensor
        case ast.Call(func=ast.Name(id="float" | "int"), args=[tensor]):
            return _source(tensor) or tensor
    return None


def _kind(read: ast.Call, operand: Tensor, start: int | float, around: Surroundings) -> str | None:
    """Return "float" or "int" for the total at the end; None where it is unknown."""
    called = read.func.id if isinstance(read.func, ast.Name) else ""
    if called == "float" or type(start) is float:
        return "float" if called != "int" or operand.dtype in ("int", "bool") else None
    if operand.dtype in ("int", "bool"):
        return _kind_of_arithmetic(read, around)
    source = _source(read)
    kind = operand.dtype if source is None else kind_of(source, operand.dtype, around)
    return "float" if kind == "float" and not called else None


def _kind_of_arithmetic(read: ast.Call, around: Surroundings) -> str | None:
    """Return "float" or "int" for arithmetic with a whole number; None where it may be either."""
    here: ast.AST = read
    above = around.parent(here)
    whole = True
    while isinstance(above, (ast.BinOp, ast.UnaryOp)):
        if isinstance(above, ast.BinOp):
            if isinstance(above.op, ast.Div):
                return "float"
            other = above.right if here is above.left else above.left
            whole = whole and is_whole(other, around)
        here, above = above, around.parent(above)
    return "int" if whole else None


def _total(
    statement: ast.AugAssign, name: str, function: ast.AST, around: Surroundings
) -> _Total | None:
    """Return the uses of a total in a function; None where it is more than a total."""
    found = _start(statement, name, around)
    if found is None:
        return None
    loop, start = found
    inside = {id(node) for node in below(loop)}
    within: list[ast.expr] = []
    later = False
    for node in below(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return None
        if not isinstance(node, ast.Name) or node.id != name or node is statement.target:
            continue
        added = isinstance(around.parent(node), ast.AugAssign)
        if id(node) not in inside and node.lineno > loop.lineno:
            later = later or added or isinstance(node.ctx, ast.Load)
        elif isinstance(node.ctx, ast.Load) and id(node) in inside:
            if not _in_branch(node, loop, statement, around):
                return None
            within.append(node)
        elif not isinstance(node.ctx, ast.Load) and _number(around.parent(node), node) is None:
            return None
    after = _behind(loop, around) if later else None
    if later and after is None:
        return None
    return _Total(start, tuple(within), after)


def _start(
    statement: ast.stmt, name: str, around: Surroundings
) -> tuple[ast.For | ast.AsyncFor | ast.While, int | float] | None:
    """Return the loop that adds to a total after it is set to a number, and that number."""
    here: ast.AST = statement
    loop: ast.For | ast.AsyncFor | ast.While | None = None
    while not isinstance(here, _SCOPES):
        above = around.parent(here)
        if above is None:
            return None
        if isinstance(here, _LOOPS):
            loop = here
        elif not isinstance(here, (ast.With, ast.AsyncWith)):
            loop = None
        for earlier in reversed(statements_before(here, around)):
            for node in ast.walk(earlier):
                if isinstance(node, ast.Name) and node.id == name:
                    number = _number(around.parent(node), node)
                    if number is None or loop is None or loop.orelse:
                        return None
                    return (loop, number) if around.statement(node) is earlier else None
        here = above
    return None


def _number(assign: ast.AST | None, target: ast.Name) -> int | float | None:
    """Return the number of ``total = 0``, also with a type, or among several targets."""
    match assign:
        case ast.Assign(targets=[one], value=ast.Constant(value=value)) if one is target:
            return value if type(value) in (int, float) else None  # type: ignore[return-value]
        case ast.AnnAssign(target=one, value=ast.Constant(value=value)) if one is target:
            return value if type(value) in (int, float) else None  # type: ignore[return-value]
    return None


def _in_branch(node: ast.AST, loop: ast.AST, statement: ast.AST, around: Surroundings) -> bool:
    """True if a read is in a branch of the loop that does not add to the total."""
    here: ast.AST | None = node
    while here is not None and here is not loop:
        above = around.parent(here)
        if isinstance(above, (*_SCOPES, *_LOOPS)) and above is not loop:
            return False
        if isinstance(above, ast.If) and here is not above.test:
            return all(part is not statement for part in ast.walk(above))
        here = above
    return False


def _behind(loop: ast.stmt, around: Surroundings) -> ast.stmt | None:
    """Return the statement that runs next after a loop, also after a ``with`` that ends there."""
    here: ast.AST = loop
    while True:
        above = around.parent(here)
        block = getattr(above, "body", None)
        if not isinstance(block, list) or here not in block:
            return None
        if here is not block[-1]:
            behind = block[block.index(here) + 1]
            return behind if isinstance(behind, ast.stmt) else None
        if not isinstance(above, (ast.With, ast.AsyncWith)):
            return None
        here = above


def rewrite(
    nodes: Sequence[cst.CSTNode], edit: Edit
) -> Sequence[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]]:
    """Add up tensors, and read the total where a number is needed."""
    import libcst as cst

    from flake8_torchperf.fixes.shared.nodes import totals

    read, *others = nodes
    assert isinstance(read, cst.Call)
    written: list[cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]] = [
        totals.detached(read, edit.facts["cast"])
    ]
    behind = others.pop() if edit.facts["after"] else None
    written += [totals.number(use, edit.facts["kind"]) for use in others]
    if behind is not None:
        line = totals.read_line(edit.facts["name"], edit.facts["kind"])
        written.append(cst.FlattenSentinel([line, behind]))
    return written
