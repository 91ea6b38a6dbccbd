"""Comprehensions and generator expressions: loops inside an expression."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.row_storage import moves_each, only_keeps
from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.engine.place import LoopPlace
from flake8_torchperf.interpreter.inference.iterables import iterable
from flake8_torchperf.interpreter.transfer import assignment, expressions, index_loops
from flake8_torchperf.interpreter.transfer.iteration import unpack_reads, yields_keys
from flake8_torchperf.interpreter.transfer.narrowing import narrow
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.values import UNKNOWN, Mapping_, Sequence, Tensor, Value, tensor_of

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.environments import Env

COMPREHENSION_KINDS = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "iterator"}


def comprehension(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp, env: Env, ctx: Context
) -> Value:
    """Return the value of ``[elt for target in iter if test]``, of a set or of a generator."""
    before = _Before.of(ctx)
    inner, place = _enter(node, node.generators, dict(env), ctx)
    element = evaluate(node.elt, inner, place)
    _iterated(place, inner, before, ctx)
    _keep_walrus(node.generators, inner, env)
    return Sequence(COMPREHENSION_KINDS[type(node)], element)


def dict_comprehension(node: ast.DictComp, env: Env, ctx: Context) -> Value:
    """Return the value of ``{key: value for target in iter if test}``."""
    before = _Before.of(ctx)
    inner, place = _enter(node, node.generators, dict(env), ctx)
    key = evaluate(node.key, inner, place)
    value = evaluate(node.value, inner, place)
    _iterated(place, inner, before, ctx)
    _keep_walrus(node.generators, inner, env)
    return Mapping_(key, value)


@dataclass(frozen=True, slots=True)
class _Before:
    """The counts when a comprehension begins: opaque calls, decided values, recorded sites."""

    opaque: int
    decided: int
    sites: int

    @staticmethod
    def of(ctx: Context) -> _Before:
        """Return the counts of the place."""
        budget = ctx.budget
        return _Before(budget.opaque_calls, budget.decided, len(ctx.sink or ()))


def _iterated(inner: Context, env: Env, before: _Before, ctx: Context) -> None:
    """Complete the sites of a comprehension's clauses, and record the tensors they iterate."""
    opaque = ctx.budget.opaque_calls > before.opaque
    for loop in inner.loops[len(ctx.loops) :]:
        if ctx.sink is not None and loop.over is not None and len(ctx.sink) > before.sites:
            apart = ctx.budget.decided > before.decided
            apiece = opaque or (
                bool(loop.index) and index_loops.indexes_lists(loop.node, loop.index, env, ctx)
            )
            kept = isinstance(loop.node, ast.ListComp) and isinstance(loop.node.elt, ast.Subscript)
            for at in range(before.sites, len(ctx.sink)):
                site = ctx.sink[at]
                if apiece or apart:
                    site = index_loops.with_body(site, loop.over, opaque=apiece, apart=apart)
                if kept and site.node is loop.over:
                    site = site.taken_at_once()  # `[x[i] for i in range(n)]`: an `unbind`
                ctx.sink[at] = site
        if loop.over is not None and not moves_each(loop.node):
            traits = ("opaque-body",) if opaque else ()
            kept = tensor_of(loop.value) is not None and only_keeps(loop.node)
            place = ctx.demote(Cause.AT_ONCE) if kept else ctx
            unpack_reads(loop.value, "comprehension", loop.over, place, traits)


def _keep_walrus(clauses: list[ast.comprehension], inner: Env, env: Env) -> None:
    """Bind the names that ``:=`` binds inside a comprehension; its own targets end with it."""
    own = {name for clause in clauses for name in assignment.names(clause.target)}
    for name, value in inner.items():
        if name not in env and name.partition(".")[0].partition("[")[0] not in own:
            env[name] = value


def _enter(
    node: ast.expr, clauses: list[ast.comprehension], env: Env, ctx: Context
) -> tuple[Env, Context]:
    """Bind the targets of a comprehension; return the innermost environment and place."""
    for clause in clauses:
        iterated = iterable(clause.iter, evaluate(clause.iter, env, ctx), ctx)
        if isinstance(iterated, Tensor) and yields_keys(clause.target, clause.iter, node, ctx):
            iterated = UNKNOWN
        index, measured = index_loops.index_of(clause, iterated, env, ctx)
        place = LoopPlace(node, "comprehension", clause.iter, iterated, index, measured)
        ctx = ctx.within(place)
        assignment.assign(clause.target, element_of(iterated), env, ctx)
        for condition in clause.ifs:
            expressions.truth(condition, env, ctx, "filter")
            env = narrow(condition, env, ctx, True) or env
    return env, ctx
