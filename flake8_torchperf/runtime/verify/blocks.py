"""Turns the changed statements of a function into a function of their own, to be run alone.

A training loop in a ``main`` can't be called, but the statements that a fix changes can: with the
names that they read as parameters, and the names that are read behind them as results. Must not
import torch and runs nothing.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.runtime.verify.changed import changed_lines, lines_before_new
from flake8_torchperf.values.values import Scalar, Sequence, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from flake8_torchperf.findings.finding import Edit
    from flake8_torchperf.runtime.verify.job import Trial
    from flake8_torchperf.values.values import Value

NAME = "_torchperf_block"
_INDENT = "    "
# From the last line of a text to the first one in the function behind it.
_HEAD = 4
# More statements than this are a program again, whose inputs can't be made up.
_MOST_LINES = 60
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BUILTIN = frozenset(dir(builtins))
# Parts that can't be moved into another function, or would leave it early.
_BOUND_TO_PLACE = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)
_Step: TypeAlias = "tuple[str, int]"


@dataclass(frozen=True, slots=True)
class _Block:
    """Consecutive statements of a text, and the names that the function reads behind them."""

    statements: list[ast.stmt]
    wanted: tuple[str, ...]


def changed_alone(trial: Trial, values: Callable[[int], Mapping[str, Value]]) -> Trial | None:
    """Return the trial of the changed statements alone; None where they can't stand alone.

    ``values`` returns what is known of the names in a line of the text before.
    """
    old, new = ast.parse(trial.before), ast.parse(trial.after)
    function = _function_at(old, trial.finding.line)
    twin = None if function is None else _named(new, function.name)
    if function is None or twin is None or _is_method(function):
        return None
    lines = _lines(trial, function)
    before, path = _block(function, lines)
    if not before.statements:
        return None
    after = _same_block(twin, path, len(before.statements), _grown(old, new, path, function, twin))
    if after is None or not _can_move(before.statements) or not _can_move(after):
        return None
    names = _free(before.statements, old)
    if "self" in names or set(names) != set(_free(after, new)):
        return None
    hints = _hints(before.statements, names, values)
    if not _imports_torch(old) or not _rewritten(trial.edit) & set(names) <= set(hints):
        return None  # what the fix rewrites may be anything
    head = ", ".join(f"{name}: {hints[name]}" if name in hints else name for name in names)
    texts = [
        _appended(text, head, statements, before.wanted)
        for text, statements in ((trial.before, before.statements), (trial.after, after))
    ]
    if not all(map(_parses, texts)):
        return None
    first = before.statements[0]
    moved = len(trial.before.splitlines()) + _HEAD - first.lineno
    indent = len(_INDENT) - first.col_offset
    finding = trial.finding
    placed = replace(
        finding,
        line=finding.line + moved,
        end_line=finding.end_line + moved,
        column=finding.column + indent,
        end_column=finding.end_column + indent,
        site=replace(finding.site, function=NAME),
    )
    return replace(trial, finding=placed, before=texts[0], after=texts[1])


def _lines(trial: Trial, function: ast.stmt) -> set[int]:
    """Return the lines of code that the fix changes, with the one that new lines stand before."""
    last = function.end_lineno or function.lineno
    lines = changed_lines(trial.before, trial.after)
    lines |= {min(line, last) for line in lines_before_new(trial.before, trial.after)}
    texts = [text.strip() for text in trial.before.splitlines()]
    code = {line for line in lines if texts[line - 1] and not texts[line - 1].startswith("#")}
    return {*code, trial.finding.line}


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:  # a text of several lines was not as deep as the code around it
        return False
    return True


def _function_at(tree: ast.Module, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return the outermost function around a line."""
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0):
            return node
    return None


def _named(tree: ast.Module, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    found = [node for node in tree.body if isinstance(node, _FUNCTIONS) and node.name == name]
    return found[0] if len(found) == 1 else None


def _is_method(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return bool(function.args.args) and function.args.args[0].arg in ("self", "cls")


def _block(function: ast.AST, lines: set[int]) -> tuple[_Block, list[_Step]]:
    """Return the smallest run of statements that holds the lines, and the way to it."""
    path: list[_Step] = []
    here: ast.AST = function
    while True:
        found = next(
            (
                (field, index)
                for field, block in _blocks(here)
                for index, one in enumerate(block)
                if all(line in _span(one) for line in lines)
                and any(True for _ in _blocks(one))
                and not any(line in _header(one) for line in lines)
            ),
            None,
        )
        if found is None:
            break
        path.append(found)
        here = getattr(here, found[0])[found[1]]
    for field, block in _blocks(here):
        inside = [at for at, one in enumerate(block) if any(line in _span(one) for line in lines)]
        spans = [_span(block[at]) for at in inside]
        if inside and all(any(line in span for span in spans) for line in lines):
            path.append((field, inside[0]))
            statements = block[inside[0] : inside[-1] + 1]
            return _Block(statements, _wanted(function, statements)), path
    return _Block([], ()), path


def _blocks(node: ast.AST) -> Iterator[tuple[str, list[ast.stmt]]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list) and block:
            yield field, block


def _span(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _header(node: ast.stmt) -> range:
    first = next((block[0].lineno for _, block in _blocks(node)), node.lineno + 1)
    return range(node.lineno, max(first, node.lineno + 1))


def _grown(
    old: ast.Module, new: ast.Module, path: list[_Step], function: ast.AST, twin: ast.AST
) -> int:
    """Return by how many statements the fix makes the block longer."""
    sizes = []
    for start in (function, twin):
        here: ast.AST = start
        for field, index in path[:-1]:
            here = getattr(here, field)[index]
        sizes.append(len(getattr(here, path[-1][0])) if path else 0)
    return sizes[1] - sizes[0]


def _same_block(twin: ast.AST, path: list[_Step], count: int, grown: int) -> list[ast.stmt] | None:
    """Return the statements of the other text at the same place; None if it has no such place."""
    if not path or not count:
        return None
    here: ast.AST = twin
    for field, index in path[:-1]:
        block = getattr(here, field, [])
        if index >= len(block):
            return None
        here = block[index]
    field, first = path[-1]
    statements: list[ast.stmt] = getattr(here, field, [])[first : first + count + grown]
    return statements or None


def _can_move(statements: list[ast.stmt]) -> bool:
    """True if statements mean the same in another function."""
    lines = (statements[-1].end_lineno or 0) - statements[0].lineno
    nodes = [node for one in statements for node in ast.walk(one)]
    if lines > _MOST_LINES or any(isinstance(node, _BOUND_TO_PLACE) for node in nodes):
        return False
    bodies = [one for node in nodes if isinstance(node, _LOOPS) for one in node.body]
    inside = {id(part) for one in bodies for part in ast.walk(one)}
    leaves = (node for node in nodes if isinstance(node, (ast.Break, ast.Continue)))
    return all(id(node) in inside for node in leaves)


def _wanted(function: ast.AST, statements: list[ast.stmt]) -> tuple[str, ...]:
    """Return the names that statements bind and that the function may read behind them."""
    bound = {name for one in statements for name in _names(one, ast.Store)}
    last = statements[-1].end_lineno or 0
    around = [
        node
        for node in ast.walk(function)
        if isinstance(node, _LOOPS) and node.lineno < statements[0].lineno and last in _span(node)
    ]
    inner = {id(node) for one in statements for node in ast.walk(one)}
    read = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and id(node) not in inner
        and (node.lineno > last or any(node.lineno in _span(loop) for loop in around))
    }
    return tuple(sorted(bound & read))


def _names(node: ast.AST, kind: type[ast.expr_context]) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Name) and isinstance(one.ctx, kind):
            yield one.id


def _free(statements: list[ast.stmt], tree: ast.Module) -> list[str]:
    """Return the names that statements read, and that neither they nor the module set before."""
    known = set(_BUILTIN)
    for one in tree.body:
        known |= _bound_at_top(one)
    found: list[str] = []
    bound: set[str] = set()
    for statement in statements:
        nodes = [one for one in ast.walk(statement) if isinstance(one, ast.Name)]
        stores = {one.id for one in nodes if not isinstance(one.ctx, ast.Load)}
        if isinstance(statement, ast.AugAssign):
            stores = set()  # it reads its target
        local = {
            one.id
            for part in ast.walk(statement)
            if isinstance(part, ast.comprehension)
            for one in ast.walk(part.target)
            if isinstance(one, ast.Name)
        } | _targets_first(statement)
        for node in nodes:
            reads = isinstance(node.ctx, ast.Load) or isinstance(statement, ast.AugAssign)
            if reads and node.id not in bound | known | local and node.id not in found:
                found.append(node.id)
        bound |= stores
    return found


def _targets_first(statement: ast.stmt) -> set[str]:
    """Return the names that loops in a statement bind, and those that a block sets before use."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            found |= set(_names(node.target, ast.Store))
        for _, block in _blocks(node):
            read: set[str] = set()
            for one in block:
                read |= set(_names(one, ast.Load))
                if isinstance(one, (ast.Assign, ast.AnnAssign)):
                    found |= set(_names(one, ast.Store)) - read
    return found


def _bound_at_top(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {(one.asname or one.name).partition(".")[0] for one in aliases}
        case ast.Try() | ast.If():
            inner = [one for _, block in _blocks(statement) for one in block]
            return {name for one in inner for name in _bound_at_top(one)}
    return set(_names(statement, ast.Store))


def _rewritten(edit: Edit) -> set[str]:
    """Return the names in what an edit rewrites, but not those that are only called.

    Where it names expressions in its statements, only they become something else.
    """
    parts = [node for node in edit.nodes if isinstance(node, ast.expr)] or edit.nodes
    nodes = [node for part in parts for node in ast.walk(part)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}


def _imports_torch(tree: ast.Module) -> bool:
    return any(
        isinstance(one, ast.Import) and any(a.name == "torch" and not a.asname for a in one.names)
        for one in tree.body
    )


def _hints(
    statements: Iterable[ast.stmt],
    names: list[str],
    values: Callable[[int], Mapping[str, Value]],
) -> dict[str, str]:
    """Return annotations for the names whose values are known where they are first read."""
    first: dict[str, int] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id in names:
                first[node.id] = min(first.get(node.id, node.lineno), node.lineno)
    known = {line: values(line) for line in set(first.values())}
    hints = {name: _hint(known[line].get(name)) for name, line in first.items()}
    return {name: hint for name, hint in hints.items() if hint}


def _hint(value: Value | None) -> str:
    match value:
        case Tensor(partly=False):
            return "torch.Tensor"
        case Sequence(kind="list" | "tuple", element=Tensor()):
            return "list[torch.Tensor]"
        case Scalar(kind="int" | "float" | "bool" | "str" as kind):
            return kind
    return ""


def _appended(text: str, head: str, statements: list[ast.stmt], wanted: tuple[str, ...]) -> str:
    """Return a module's text with the statements behind it, as a function."""
    lines = text.splitlines(keepends=True)
    first, last = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
    body = textwrap.indent(textwrap.dedent("".join(lines[first - 1 : last])), _INDENT)
    known = ", ".join(f'{name!r}: locals().get("{name}")' for name in wanted)
    whole = text if text.endswith("\n") else f"{text}\n"
    body = body if body.endswith("\n") else f"{body}\n"
    return f"{whole}\n\ndef {NAME}({head}):\n{body}    return {{{known}}}\n"
