"""The work that is queued on the device between a wait and the one before it.

A wait straight behind another is nearly free (H100, busy queue: 4,057 us for the first ``.item()``
and 13 us for each that follows); one behind small operations costs hardly more (H200: at most 21 us
behind 64 of them, 390 us behind the forward pass of a small transformer; see
``benchmarks/queue_cost.py``).
"""

from __future__ import annotations

import ast
from dataclasses import replace
from enum import IntEnum
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.judgement.worth.device_work import Work, is_scaler
from flake8_torchperf.judgement.worth.features import BEHIND_CALLER
from flake8_torchperf.syntax.traversal import (
    CALL,
    COMPREHENSIONS,
    DEFINITIONS,
    LEAVING,
    PLAIN,
    SCOPES,
    children,
)
from flake8_torchperf.values.site import SIZED_KINDS, SiteKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from flake8_torchperf.judgement.judged_site import Judged, JudgedSite

    # Returns the queue that a call's function leaves; None if the function is not known.
    Behind: TypeAlias = "Callable[[ast.Call], Queue | None]"
    # Returns the queue in front of a function of a qualified name; None if it is not known.
    Before: TypeAlias = "Callable[[str], Queue | None]"
    Scope: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda"

ON_SOME_PATH = "queue:on-some-path"
# The kinds of waits: one that nobody would take out, a copy to the host, any other.
KEPT, COPY, WAIT = "kept", "copy", "wait"
NON_BLOCKING = "non-blocking"
# Kinds of sites that leave the device without work on their stream.
WAITING = frozenset((
    SiteKind.HOST_READ, SiteKind.HOST_REDUCTION, SiteKind.FORMAT, SiteKind.HOST_COMPARISON,
    SiteKind.SYNCHRONIZE, SiteKind.NUMBER_USE, SiteKind.HOST_ACCUMULATION, SiteKind.BRANCH,
    SiteKind.TRANSFER, SiteKind.LIST_INDEX, SiteKind.NUMBER_ASSIGNED, *SIZED_KINDS,
))  # fmt: skip
# Work in operations: of one operation, and of a call that may run a model.
SMALL, LARGE = 1, 20
# The most operations behind a wait after which another hardly costs more.
LITTLE = 4
# Nodes whose parts need not run once each, one after the other.
_FORKS = frozenset((
    ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.Try, *SCOPES, *COMPREHENSIONS,
))  # fmt: skip


# Statements that end a function.
_ENDING = (ast.Return, ast.Raise)


class LastWait(IntEnum):
    """The last wait before a function is called.

    ``IN_CALLER`` is one of its callers, ``IN_LAST_CALL`` its own in the last round of a loop there.
    """

    UNKNOWN = 0
    IN_CALLER = 1
    IN_LAST_CALL = 2


class Queue(NamedTuple):
    """The queue at one place: the operations since the last wait, and that wait's node.

    Without a node, the operations are those since the start of the function, or since the last wait
    before that, which ``before`` tells. ``opens`` is what a function may begin with, as
    `KEPT` and the like, "" for no wait.
    """

    work: int = 0
    leader: ast.AST | None = None
    before: LastWait = LastWait.UNKNOWN
    opens: str = ""

    def features(self, wait: ast.AST) -> Iterator[str]:
        """Yield the features of the queue in front of a wait."""
        if self.work >= LARGE:
            yield "queue:much"
        elif self.leader is wait or self.before is LastWait.IN_LAST_CALL:
            yield "queue:each-round"  # of a loop in which nothing else waits
        elif self.leader is None and self.before is LastWait.UNKNOWN:
            yield "queue:start"
        elif self.work > LITTLE:
            yield "queue:some"
        else:
            yield "queue:little" if self.work else "queue:empty"

    def leads(self, wait: ast.AST) -> ast.AST | None:
        """Return the wait that leaves the device with hardly any work for this one."""
        near = self.work <= LITTLE and self.leader is not wait
        return self.leader if near else None

    def after(self, work: int) -> Queue:
        """Return the queue behind further operations.

        Small operations end as fast as Python queues them: they alone never become much.
        """
        if work >= LARGE or self.work >= LARGE:
            return self._replace(work=LARGE)
        return self._replace(work=min(self.work + work, LARGE - 1))


def waits_here(site: JudgedSite) -> bool:
    """True if a site leaves the device without work."""
    if site.kind not in WAITING or site.compiled:
        return False
    return site.kind is not SiteKind.TRANSFER or NON_BLOCKING not in site.traits


def waits_of(result: Judged) -> dict[int, str]:
    """Return the kind of each wait that leaves the device without work, by its node's identity."""
    return {id(site.node): _kind(site) for site in result.sites if waits_here(site)}


def _kind(site: JudgedSite) -> str:
    if site.kind is SiteKind.SYNCHRONIZE or site.heat.level is Level.COLD:
        return KEPT
    to_host = site.kind is SiteKind.TRANSFER and "to-host" in site.traits
    return COPY if to_host else WAIT


def is_named_scaled_step(node: ast.AST) -> bool:
    """True for ``scaler.step(optimizer)``, by the name of the scaler.

    It reads on the host whether a gradient is infinite (torch/amp/grad_scaler.py, ``step``), and
    the update that follows is a few operations.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr="step"), args=[_]):
            return is_scaler(owner)
    return False


class Code(NamedTuple):
    """Code in which the queue is followed.

    ``waits`` holds the kind of each wait (`KEPT` and the like) by the identity of its node,
    ``queued`` the identities of the operators that compute on tensors; where it is None, all do
    whose parts may be tensors. ``behind`` returns the queue that a call leaves, ``held`` that of
    one which neither ``behind`` nor its name tells anything about, ``full_name`` the dotted name of
    an expression, imports resolved. ``is_scaled_step`` tells which calls are the step of a gradient
    scaler that waits, by default by the name of the scaler.
    """

    nodes: Sequence[ast.AST]
    waits: Mapping[int, str]
    queued: Collection[int] | None
    behind: Behind
    held: Behind
    full_name: Callable[[ast.expr], str]
    is_scaled_step: Callable[[ast.AST], bool] = is_named_scaled_step

    def kind_of(self, wait: ast.AST) -> str:
        """Return the kind of a wait; "call" for a call whose function waits."""
        return self.waits.get(id(wait), KEPT if self.is_scaled_step(wait) else "call")


def with_queues(result: Judged, code: Code, before: Before) -> Judged:
    """Return the sites with the features of the queue in front of each wait, and its leader.

    ``before`` is asked for the function of each wait that is the first one there.
    """
    walk = _walked(code) if code.waits else None
    if walk is None:
        return result
    on_paths = walk.on_some_path().found
    found = [walk.found.get(id(site.node)) for site in result.sites]
    firsts = {
        site.function
        for site, queue in zip(result.sites, found, strict=True)
        if queue is not None and queue.leader is None and id(site.node) not in walk.of_lambdas
    }
    starts = {function: before(function) for function in sorted(firsts)}
    sites = (
        _behind(
            site,
            queue
            if id(site.node) in walk.of_lambdas
            else behind_all(starts.get(site.function), queue),
            on_paths.get(id(site.node)),
            code,
        )
        for site, queue in zip(result.sites, found, strict=True)
    )
    followed = walk.followed
    return result.having(
        one.showing((f"queue:{followed[id(one.node)]}-behind",))
        if id(one.node) in followed
        else one
        for one in sites
    )


def behind_all(start: Queue | None, queue: Queue | None) -> Queue | None:
    """Return the queue at a place of a function, with what was queued in front of the function."""
    if start is None or queue is None or queue.leader is not None:
        return queue
    return start.after(queue.work)


def queues_before(code: Code) -> Mapping[int, Queue]:
    """Return the queue in front of each node of code by the node's identity.

    Empty if the code is nested too deep.
    """
    walk = _walked(code)
    return {} if walk is None else walk.before


def queue_behind(code: Code) -> Queue | None:
    """Return the queue that code leaves; None if it is nested too deep."""
    walk = _walked(code)
    return None if walk is None else walk.last._replace(opens=walk.opens)


def _behind(site: JudgedSite, queue: Queue | None, least: Queue | None, code: Code) -> JudgedSite:
    if queue is None:
        return site
    shown = site.showing(queue.features(site.node))
    leader = queue.leads(site.node)
    if leader is not None:
        shown = shown.showing((f"leader:{code.kind_of(leader)}",))
    elif queue.before is LastWait.IN_CALLER and queue.work <= LITTLE:
        shown = shown.showing((BEHIND_CALLER,))
    if leader is None and least is not None:
        leader = least.leads(site.node)
        shown = shown if leader is None else shown.showing((ON_SOME_PATH,))
    return replace(shown, leader=leader)


def _walked(code: Code) -> _Walk | None:
    """Return the walk through code; None if it is nested too deep."""
    try:
        walk = _Walk(code, Work(code.nodes, code.waits, code.full_name))
        walk.whole()
    except RecursionError:
        return None  # deeper than Python's own stack
    return walk


class _Walk:
    """Walks code in the order in which it runs; each method returns the queue behind a piece."""

    def __init__(self, code: Code, work: Work, *, emptier: bool = False) -> None:
        self._code = code
        self._work = work
        self._emptier = emptier
        # True if branches with different queues joined.
        self._differs = False
        self.found: dict[int, Queue] = {}
        # The waits in lambdas: their queues say nothing of what stands before the code.
        self.of_lambdas: set[int] = set()
        # The kinds of waits that follow at once on each wait, and on the start of the code.
        self.followed: dict[int, str] = {}
        self.opens = ""
        self.last = Queue()
        # The queues in front of the nodes whose parts have been walked.
        self.before: dict[int, Queue] = {}
        # The queues in front of the waits, in the order in which these were met.
        self._met: list[Queue] = []
        self._is_first = False
        # The queues at the returns of the function that is walked.
        self._returned: list[Queue] = []

    def on_some_path(self) -> _Walk:
        """Return the walk through the same code in which the emptier of two branches counts."""
        if not self._differs:
            return self
        walk = _Walk(self._code, self._work, emptier=True)
        walk.whole()
        return walk

    def whole(self) -> None:
        """Walk a function, or statements, from an empty queue."""
        for node in self._code.nodes:
            if isinstance(node, DEFINITIONS):
                self.last = self._function(node)
            else:
                self.last = self._node(node, self.last)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Queue:
        """Walk a function, and return the queue that it leaves: at its end, or where it returns."""
        outer, self._returned = self._returned, []
        last = self.block(node.body, Queue())
        ends = [*self._returned, last]
        self._returned = outer
        return reduce(self._join, ends)

    def _inner(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    ) -> None:
        """Walk a function or a lambda inside the code, which runs where something calls it."""
        opens, known = self.opens, set(self.found)
        if not isinstance(node, ast.Lambda):
            self._function(node)
        else:
            self._node(node.body, Queue())
            self.of_lambdas.update(self.found.keys() - known)
        self.opens = opens

    def block(self, nodes: Sequence[ast.AST], queue: Queue) -> Queue:
        """Walk statements in their order."""
        for node in nodes:
            queue = self._node(node, queue)
            if isinstance(node, ast.Return):
                self._returned.append(queue)
            if isinstance(node, LEAVING):
                break
        return queue

    def _sides(self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], tested: Queue) -> Queue:
        """Walk the two sides of a branch; one that raises or returns doesn't lead behind it."""
        one, other = self.block(body, tested), self.block(orelse, tested)
        if orelse and isinstance(orelse[-1], _ENDING):
            return one
        return other if isinstance(body[-1], _ENDING) else self._join(one, other)

    def _node(self, node: ast.AST, queue: Queue) -> Queue:
        kind = type(node)
        if kind in _FORKS:
            return self._forked(node, queue)
        inside = len(self._met)
        behind = queue
        if kind not in PLAIN:
            waits, queued = self._code.waits, self._code.queued or ()
            for child in children(node):
                number = id(child)
                if type(child) in PLAIN and number not in waits and number not in queued:
                    self.before[number] = behind  # as `_passed` does
                else:
                    behind = self._node(child, behind)
        if kind is not CALL and id(node) in self._code.waits and len(self._met) > inside:
            # A part of it is the wait: ``total += loss.item()``.
            self.found[id(node)] = self._met[inside]
            return Queue(0, node)
        return self._passed(node, behind)

    def _forked(self, node: ast.AST, queue: Queue) -> Queue:
        """Walk a node whose parts need not run once each, one after the other."""
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                tested = self._passed(node, self._node(test, queue))
                return self._sides(body, orelse, tested)
            case ast.IfExp(test=test, body=value, orelse=other):
                tested = self._node(test, queue)
                return self._join(self._node(value, tested), self._node(other, tested))
            case ast.For(iter=head) | ast.AsyncFor(iter=head):
                return self._repeated(node.body, self._passed(node, self._node(head, queue)))
            case ast.While():
                return self._repeated([node.test, *node.body], queue)
            case ast.Try():
                before = self.block(node.body, queue)
                return self.block([*node.orelse, *node.finalbody], before)
        if isinstance(node, SCOPES):
            self._inner(node)
            return queue
        return self._repeated(children(node), queue)  # a comprehension

    def _join(self, one: Queue, other: Queue) -> Queue:
        """Return the queue where branches join: the fuller one, as if the other ran seldom.

        Or the emptier one: that behind a wait, and of two such the one with less work.
        """
        self._differs = self._differs or one != other
        if not self._emptier:
            return one if one.work >= other.work else other
        if (one.leader is None) != (other.leader is None):
            return other if one.leader is None else one
        return one if one.work <= other.work else other

    def _repeated(self, body: Sequence[ast.AST], queue: Queue) -> Queue:
        """Walk a loop's body a second time with the queue that its first round leaves.

        In a first round, the loops inside have one round: nested loops would double the time.
        """
        if self._is_first:
            return self.block(body, queue)
        self._is_first = True
        left = self.block(body, queue)
        self._is_first = False
        return self.block(body, left)

    def _passed(self, node: ast.AST, queue: Queue) -> Queue:
        """Return the queue behind a node whose parts have been walked."""
        code, number = self._code, id(node)
        self.before[number] = queue
        is_scaled = isinstance(node, CALL) and code.is_scaled_step(node)
        if is_scaled or number in code.waits:
            self._follows(node, queue, KEPT if is_scaled else code.waits[number])
            if number in code.waits:
                self.found[number] = queue
                self._met.append(queue)
            return Queue(SMALL if is_scaled else 0, node)
        queued = code.queued
        if (
            (isinstance(node, ast.BinOp) and self._computes(node))
            if queued is None
            else number in queued
        ):
            return queue.after(SMALL)
        if isinstance(node, CALL) and self._work.given_by(node, thrown_away=True):
            return self._called(node, queue)
        return queue

    def _called(self, node: ast.Call, queue: Queue) -> Queue:
        """Return the queue behind a call that may give the device work."""
        left = self._code.behind(node)
        if left is None and self._work.is_small(node.func):
            return queue.after(SMALL)
        left = left or self._code.held(node)
        if left is None:
            return queue.after(LARGE)
        if left.opens:
            self._follows(node, queue, left.opens)
        if left.leader is not None:
            return Queue(left.work, node)
        return queue if self._work.is_of_host(node) else queue.after(left.work)

    def _follows(self, node: ast.AST, queue: Queue, what: str) -> None:
        """Note what follows on the last wait, or begins the code, if there is little between."""
        if queue.leader is None and queue.work <= LITTLE:
            self.opens = self.opens or what
        leader = queue.leads(node)
        if leader is not None:
            self.followed.setdefault(id(leader), what)

    def _computes(self, node: ast.BinOp) -> bool:
        """True for an operator whose parts may be tensors."""
        return not self._work.lies_on_host(node)
