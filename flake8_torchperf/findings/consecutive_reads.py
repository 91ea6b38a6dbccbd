"""Reads in a row: findings of one function in, groups of them out, each led by its first.

A wait straight behind another is nearly free (H100, busy queue: 4,057 us for the first ``.item()``
and 13 us for each that follows), so the reads of a row are one finding. A row ends where the device
may be given new work, and never leaves the loop or the branch that it began in.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.site import SiteKind
from flake8_torchperf.findings.device_work import Work
from flake8_torchperf.findings.message import HOST_READS
from flake8_torchperf.syntax.traversal import DEFINITIONS, children

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.findings.match import Raw


@dataclass(frozen=True, slots=True)
class Row:
    """A finding, and those that wait straight behind it."""

    first: Raw
    others: tuple[Raw, ...] = ()


# What reads a value so that the next one could be read with it. A branch, a total on the host, a
# number that an operation is given: each has its own remedy, which reading together is not.
_READS = frozenset((SiteKind.HOST_READ, SiteKind.FORMAT, SiteKind.SYNCHRONIZE))

# The reads of a piece of code are counted from 0; these stand for no read.
_NONE = -1
_LEFT = -2


def in_rows(raws: Sequence[Raw], roots: Sequence[ast.AST]) -> list[Row]:
    """The findings of one analysis as rows, mostly of one finding, in the order of their firsts.

    ``roots`` are the function or the statements that the findings stand in.
    """
    reads = {id(raw.site.node): i for i, raw in enumerate(raws) if _joins(raw)}
    if len(reads) < 2:
        return [Row(raw) for raw in raws]
    try:
        walked = _Walk(reads, Work(roots, reads))
        walked.block([root for root in roots if isinstance(root, ast.stmt)], _NONE)
    except RecursionError:  # expressions nested deeper than Python's own stack
        return [Row(raw) for raw in raws]
    behind: dict[int, list[Raw]] = {}
    for follower, leader in walked.led.items():
        behind.setdefault(leader, []).append(raws[follower])
    return [Row(raw, tuple(behind.get(i, ()))) for i, raw in enumerate(raws) if i not in walked.led]


def _joins(raw: Raw) -> bool:
    """Does a finding read one value, so that what was waited for before makes it cheap?

    Findings of a user's own pages are told one by one, and those about loops have their own advice.
    """
    site = raw.site
    if site.compiled or not raw.rule.own or raw.rule.family != HOST_READS:
        return False
    return site.kind in _READS or (site.kind is SiteKind.TRANSFER and "to-host" in site.traits)


class _Walk:
    """Goes through code in the order in which it runs, with the read that leads here.

    Each method takes the leader before a piece of code and returns the one after it: `_NONE` where
    the device may have work again, `_LEFT` where control does not get there.
    """

    __slots__ = ("_reads", "_work", "led")

    def __init__(self, reads: dict[int, int], work: Work) -> None:
        self._reads = reads
        self._work = work
        # The leader of each read that follows one.
        self.led: dict[int, int] = {}

    def block(self, body: Sequence[ast.stmt], leader: int) -> int:
        """Statements, one after the other."""
        for statement in body:
            leader = self._statement(statement, leader)
            if leader == _LEFT:
                return _LEFT
        return leader

    def _statement(self, node: ast.stmt, leader: int) -> int:
        if isinstance(node, DEFINITIONS):
            self.block(node.body, _NONE)
            return leader
        match node:
            case ast.If():
                tested = self._expression(node.test, leader)
                sides = [self.block(node.body, tested), self.block(node.orelse, tested)]
                return _met(sides)
            case ast.For() | ast.AsyncFor():
                self._expression(node.iter, leader)
                self.block(node.body, _NONE)
                self.block(node.orelse, _NONE)
                return _NONE
            case ast.While():
                self._expression(node.test, _NONE)
                self.block(node.body, _NONE)
                self.block(node.orelse, _NONE)
                return _NONE
            case ast.With() | ast.AsyncWith():
                return self.block(node.body, self._entered(node.items, leader))
            case ast.Match():
                return self._match(node, leader)
        if isinstance(node, TRIES):
            return self._try(node, leader)
        return self._simple(node, leader)

    def _simple(self, node: ast.stmt, leader: int) -> int:
        match node:
            case ast.Expr(value=ast.Call() as call):
                return self._call(call, leader, thrown_away=True)
            case ast.Assert():
                leader = self._expression(node.test, leader)
                if node.msg is not None:
                    self._expression(node.msg, leader)
                return leader
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                if node.value is not None:
                    leader = self._expression(node.value, leader)
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    leader = self._expression(target, leader)
                return self._passed(node, leader)
        leader = self._inside(node, leader)
        return _LEFT if isinstance(node, LEAVING) else leader

    def _entered(self, items: Sequence[ast.withitem], leader: int) -> int:
        """What ``with`` opens starts no work; what it is given may."""
        for item in items:
            opened = item.context_expr
            if isinstance(opened, ast.Call):
                leader = self._passed(opened, self._inside(opened, leader))
            else:
                leader = self._expression(opened, leader)
        return leader

    def _match(self, node: ast.Match, leader: int) -> int:
        leader = self._expression(node.subject, leader)
        sides = [leader]
        for case in node.cases:
            inside = leader if case.guard is None else self._expression(case.guard, leader)
            sides.append(self.block(case.body, inside))
        return _met(sides)

    def _try(self, node: ast.Try, leader: int) -> int:
        tried = self.block(node.body, leader)
        # An exception may come before or after anything in the body.
        caught = leader if tried == leader else _NONE
        sides = [tried if tried == _LEFT else self.block(node.orelse, tried)]
        sides += [self.block(handler.body, caught) for handler in node.handlers]
        met = _met(sides)
        last = self.block(node.finalbody, _NONE if met == _LEFT else met)
        return _LEFT if met == _LEFT else last

    def _expression(self, node: ast.AST, leader: int) -> int:
        match node:
            case ast.Constant():
                return leader
            case ast.Call():
                return self._call(node, leader, thrown_away=False)
            case ast.BoolOp():
                before = self._expression(node.values[0], leader)
                after = before
                for value in node.values[1:]:
                    after = self._expression(value, after)
                return self._passed(node, _met([before, after]))
            case ast.IfExp():
                tested = self._expression(node.test, leader)
                sides = [self._expression(side, tested) for side in (node.body, node.orelse)]
                return self._passed(node, _met(sides))
            case ast.Lambda():
                self._expression(node.body, _NONE)
                return self._passed(node, leader)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node, leader)
                return self._passed(node, _NONE)
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                self._inside(node, leader)
                return self._passed(node, _NONE)
            case ast.BinOp(op=ast.MatMult()):
                self._inside(node, leader)
                return self._passed(node, _NONE)
        return self._passed(node, self._inside(node, leader))

    def _comprehension(self, node: Comprehension, leader: int) -> None:
        self._expression(node.generators[0].iter, leader)
        inside = _NONE
        for i, generator in enumerate(node.generators):
            if i:
                self._expression(generator.iter, inside)
                inside = _NONE
            for test in generator.ifs:
                inside = self._expression(test, inside)
        if isinstance(node, ast.DictComp):
            inside = self._expression(node.key, inside)
            self._expression(node.value, inside)
        else:
            self._expression(node.elt, inside)

    def _call(self, node: ast.Call, leader: int, *, thrown_away: bool) -> int:
        leader = self._inside(node, leader)
        if id(node) not in self._reads and self._work.given_by(node, thrown_away=thrown_away):
            return _NONE
        return self._passed(node, leader)

    def _inside(self, node: ast.AST, leader: int) -> int:
        for child in children(node):
            leader = self._expression(child, leader)
        return leader

    def _passed(self, node: ast.AST, leader: int) -> int:
        """The leader behind a node of which all parts were evaluated."""
        read = self._reads.get(id(node))
        if read is None:
            return leader
        if leader == _NONE:
            return read
        self.led[read] = leader
        return leader


def _met(sides: Sequence[int]) -> int:
    """The leader where branches meet again: one that stands before all ways to get there."""
    arriving = {side for side in sides if side != _LEFT}
    if not arriving:
        return _LEFT
    return arriving.pop() if len(arriving) == 1 else _NONE


# Statements that end their block.
LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # from Python 3.11

if TYPE_CHECKING:
    from typing import TypeAlias

    Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
