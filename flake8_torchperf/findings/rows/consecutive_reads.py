"""Rows of waits: groups findings of one function whose waits follow directly on each other.

A wait straight after another is nearly free (H100, busy queue: 4,057 us for the first ``.item()``
and 13 us for each that follows). A row holds only such waits. It ends where any work is queued, at
waits for other ranks or other streams, and at the end of the loop or branch that it began in.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.message import HOST_READS
from flake8_torchperf.interpreter.events.waiting_wrappers import OF_HELPERS
from flake8_torchperf.judgement.worth.device_work import Work
from flake8_torchperf.judgement.worth.features import features, is_behind_once
from flake8_torchperf.judgement.worth.queue import NON_BLOCKING
from flake8_torchperf.syntax.traversal import DEFINITIONS, LEAVING, children
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import tensor_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from flake8_torchperf.findings.match import Raw
    from flake8_torchperf.judgement.judged_site import JudgedSite


# Conversions to text that call ``Tensor.__format__``, which reads the number of a 0-d tensor.
_FORMATS = ("f-string", "format")
# Leaders are indices of waits, from 0; these two stand for no wait.
_NONE = -1
_LEFT = -2


def in_rows(
    raws: Sequence[Raw], roots: Sequence[ast.AST], queued: Collection[int]
) -> list[list[Raw]]:
    """Return the findings of one analysis as rows, mostly of one finding.

    ``roots`` are the function or the statements that contain the findings; ``queued`` holds the
    identities of the operators that compute on tensors.
    """
    alone = [[raw] for raw in raws]
    waits = {id(raw.site.node): i for i, raw in enumerate(raws) if _may_lead(raw)}
    following = {i for i in waits.values() if _may_follow(raws[i].site)}
    if len(waits) < 2 or not following:
        return alone
    try:
        walked = _Walk(waits, following, queued, Work(roots, waits))
        walked.block([root for root in roots if isinstance(root, ast.stmt)], _NONE)
    except RecursionError:  # expressions nested deeper than Python's own stack
        return alone
    for follower, leader in walked.led.items():
        alone[leader] += alone[follower]
        alone[follower] = []
    return [row for row in alone if row]


def with_followers(told: list[list[Raw]], rest: Sequence[list[Raw]]) -> list[list[Raw]]:
    """Return the rows that are told, each with the waits of ``rest`` that it leaves little to do.

    A wait that is not worth a finding of its own is named by the one that it follows at once: when
    that is gone, it waits instead.
    """
    homes = {id(raw.site.node): row for row in told for raw in row}
    for row in rest:
        rule, site = row[0].rule, row[0].site
        home = homes.get(id(site.leader))
        if home is not None and rule.own and is_behind_once(features(site, rule.code)):
            home += row
            homes |= {id(raw.site.node): home for raw in row}
    return told


def _may_lead(raw: Raw) -> bool:
    """True if the wait leaves the device with no work on this stream.

    A row holds only findings with the same remedy. A branch, a running total, a number passed to
    an operation and the findings of a user's own pages have remedies of their own.
    """
    site = raw.site
    if site.compiled or not raw.rule.own or raw.rule.family != HOST_READS:
        return False
    if not OF_HELPERS.isdisjoint(site.traits):  # the helper may queue work after its wait
        return False
    if site.kind is SiteKind.SYNCHRONIZE:
        # Collectives wait for other ranks, events and streams for their own work alone.
        return site.operation.endswith(".synchronize") and site.operation.startswith("torch.")
    if site.kind is SiteKind.TRANSFER:
        return "to-host" in site.traits and NON_BLOCKING not in site.traits
    return site.kind in (SiteKind.HOST_READ, SiteKind.FORMAT)


def _may_follow(site: JudgedSite) -> bool:
    """True if the wait itself queues no work: it reads a value that is already computed.

    The text of a tensor with dimensions is computed on the device (torch/_tensor_str.py); the text
    of one without is its number.
    """
    if site.kind is not SiteKind.FORMAT:
        return True
    tensor = None if site.operand is None else tensor_of(site.operand)
    return tensor is not None and tensor.scalar is True and site.operation in _FORMATS


class _Walk:
    """Walks code in the order in which it runs, with the wait that leads the current row.

    Each method takes the leader before a piece of code and returns the one after it: `_NONE` if the
    device may have work again, `_LEFT` if control does not reach the end.
    """

    __slots__ = ("_following", "_queued", "_reads", "_work", "led")

    def __init__(
        self, reads: dict[int, int], following: set[int], queued: Collection[int], work: Work
    ) -> None:
        self._reads = reads
        self._following = following
        self._queued = queued
        self._work = work
        # Follower -> leader, both as indices of waits.
        self.led: dict[int, int] = {}

    def block(self, body: Sequence[ast.stmt], leader: int) -> int:
        """Walk statements in order and return the leader after them."""
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
        """Walk the items of a ``with``; opening a context starts no work, but its arguments may."""
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
        # An exception may be raised at any point of the body.
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
        """Return the leader after a node whose parts have been walked."""
        read = self._reads.get(id(node))
        if read is None:
            return _NONE if id(node) in self._queued else leader
        if leader == _NONE or read not in self._following:
            return read
        self.led[read] = leader
        return leader


def _met(sides: Sequence[int]) -> int:
    """Return the leader where branches join: the one that all branches have in common."""
    arriving = {side for side in sides if side != _LEFT}
    if not arriving:
        return _LEFT
    return arriving.pop() if len(arriving) == 1 else _NONE


TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # from Python 3.11

if TYPE_CHECKING:
    from typing import TypeAlias

    Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
