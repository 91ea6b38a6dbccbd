"""Tells whether the value that a loop leaves in a name is read later, by the control flow.

Other loops are taken to run at least one round, and statements in a ``try`` not to raise.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import FUNCTIONS, below

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*FUNCTIONS, ast.Lambda)
# Code through which others read a function's names.
_SHARING = (*_SCOPES, ast.Global, ast.Nonlocal)


def read_after(name: str, loop: ast.stmt, body: Sequence[ast.stmt]) -> bool:
    """True if a name is read after a loop in a function's body, before it is bound again."""
    inside = [one for part in body for one in ast.walk(part) if isinstance(one, _SHARING)]
    if any(_is_read(name, one) for one in inside):
        return True  # a function inside may run at any time
    search = _Search(name, loop)
    search.block(body, _Ends(False, False, False))
    return search.found or not search.seen


@dataclass(frozen=True, slots=True)
class _Ends:
    """True each where the name is read after a block's end, ``break`` and ``continue``."""

    end: bool
    on_break: bool
    on_continue: bool


class _Search:
    """Follows one name backwards; each answer is True if its value at that place may be read."""

    def __init__(self, name: str, loop: ast.stmt) -> None:
        self._name = name
        self._loop = loop
        self.seen = False  # True if the loop was met
        self.found = False  # True if the name is read after it

    def block(self, body: Sequence[ast.stmt], ends: _Ends) -> bool:
        after = ends.end
        for statement in reversed(body):
            if statement is self._loop:
                self.seen = True
                self.found = self.found or after
            after = self._before(statement, _Ends(after, ends.on_break, ends.on_continue))
        return after

    def _before(self, statement: ast.stmt, ends: _Ends) -> bool:
        match statement:
            case ast.Break():
                return ends.on_break
            case ast.Continue():
                return ends.on_continue
            case ast.Return() | ast.Raise():
                return self._reads([statement])
            case ast.If(test=test, body=body, orelse=orelse):
                either = [self.block(body, ends), self.block(orelse, ends)]
                return any(either) or self._reads([test])
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._of_loop(statement, ends)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                return self.block(body, ends) or self._reads(items)
            case ast.Try():
                return self._of_try(statement, ends)
            case ast.Match(subject=subject, cases=cases):
                ways = [self.block(one.body, ends) for one in cases]
                guards = [one.guard for one in cases if one.guard is not None]
                return any(ways) or ends.end or self._reads([subject, *guards])
        if self._reads([statement]):
            return True
        return ends.end and not self._binds(statement)

    def _of_loop(self, loop: ast.For | ast.AsyncFor | ast.While, ends: _Ends) -> bool:
        again = self.block(loop.orelse, ends)
        if isinstance(loop, ast.While):
            head, binds = loop.test, False
            again = again or self._reads([head])
        else:
            head, binds = loop.iter, _is_stored(self._name, loop.target)
        inside = self.block(loop.body, _Ends(again, ends.end, again))
        if inside and not binds and not again:
            inside = self.block(loop.body, _Ends(True, ends.end, True))
        return self._reads([head]) or (inside and not binds)

    def _of_try(self, statement: ast.Try, ends: _Ends) -> bool:
        last = self.block(statement.finalbody, ends)
        jumps = _Ends(last, ends.on_break or last, ends.on_continue or last)
        caught = [self.block(one.body, jumps) for one in statement.handlers]
        ends = _Ends(self.block(statement.orelse, jumps), jumps.on_break, jumps.on_continue)
        if any(caught) and any(one is self._loop for one in below(statement)):
            self.found = True  # a later statement of the body may raise
        return self.block(statement.body, ends)

    def _reads(self, nodes: Iterable[ast.AST]) -> bool:
        return any(_is_read(self._name, node) for node in nodes)

    def _binds(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Assign(targets=targets):
                return any(_is_stored(self._name, one) for one in targets)
            case ast.AnnAssign(target=target, value=ast.expr()):
                return _is_stored(self._name, target)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                return any((one.asname or one.name) == self._name for one in names)
        return False


def _is_stored(name: str, target: ast.expr) -> bool:
    """True if an assignment to a target binds a name."""
    match target:
        case ast.Name(id=bound):
            return bound == name
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(_is_stored(name, one) for one in parts)
        case ast.Starred(value=inner):
            return _is_stored(name, inner)
    return False


def _is_read(name: str, node: ast.AST) -> bool:
    """True if a piece of code may read a name of the scope around it."""
    match node:
        case ast.Name(id=used, ctx=ctx):
            return used == name and isinstance(ctx, (ast.Load, ast.Del))
        case ast.AugAssign(target=ast.Name(id=used)) if used == name:
            return True
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return name in names
    if isinstance(node, _COMPREHENSIONS):
        first = node.generators[0]
        if any(_is_stored(name, one.target) for one in node.generators):
            return _is_read(name, first.iter)
    if isinstance(node, _SCOPES):
        taken = [one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)]
        if name in taken:
            given = [*node.args.defaults, *(one for one in node.args.kw_defaults if one)]
            return any(_is_read(name, one) for one in given)
    return any(_is_read(name, one) for one in ast.iter_child_nodes(node))
