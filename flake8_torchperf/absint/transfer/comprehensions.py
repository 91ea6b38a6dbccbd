"""Comprehensions and generator expressions: loops inside an expression."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.elements import element_of
from flake8_torchperf.absint.domain.heat import Cause
from flake8_torchperf.absint.domain.values import Mapping_, Sequence, Value, tensor_of
from flake8_torchperf.absint.engine.analysis import LoopPlace
from flake8_torchperf.absint.engine.dispatch import evaluate
from flake8_torchperf.absint.transfer import assignment, expressions
from flake8_torchperf.absint.transfer.iteration import unpack_reads
from flake8_torchperf.absint.transfer.narrowing import narrow
from flake8_torchperf.intent.row_storage import moves_each, only_keeps

if TYPE_CHECKING:
    from flake8_torchperf.absint.domain.store import Env
    from flake8_torchperf.absint.engine.analysis import Context

KINDS = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "iterator"}


def comprehension(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp, env: Env, ctx: Context
) -> Value:
    """``[elt for target in iter if test]`` and its kin."""
    before = ctx.budget.opaque_calls
    inner, place = _enter(node, node.generators, dict(env), ctx)
    element = evaluate(node.elt, inner, place)
    _iterated(place, len(ctx.loops), ctx, ctx.budget.opaque_calls > before)
    _keep_walrus(node.generators, inner, env)
    return Sequence(KINDS[type(node)], element)


def dict_comprehension(node: ast.DictComp, env: Env, ctx: Context) -> Value:
    """``{key: value for target in iter if test}``."""
    before = ctx.budget.opaque_calls
    inner, place = _enter(node, node.generators, dict(env), ctx)
    key = evaluate(node.key, inner, place)
    value = evaluate(node.value, inner, place)
    _iterated(place, len(ctx.loops), ctx, ctx.budget.opaque_calls > before)
    _keep_walrus(node.generators, inner, env)
    return Mapping_(key, value)


def _iterated(inner: Context, outer: int, ctx: Context, opaque: bool) -> None:
    """The tensors that the clauses of a comprehension iterate."""
    for loop in inner.loops[outer:]:
        if loop.over is not None and not moves_each(loop.node):
            traits = ("opaque-body",) if opaque else ()
            kept = tensor_of(loop.value) is not None and only_keeps(loop.node)
            place = ctx.demote(Cause.AT_ONCE) if kept else ctx
            unpack_reads(loop.value, "comprehension", loop.over, place, traits)


def _keep_walrus(clauses: list[ast.comprehension], inner: Env, env: Env) -> None:
    """Names bound by ``:=`` inside outlive the comprehension, its own targets do not."""
    own = {name for clause in clauses for name in assignment.names(clause.target)}
    for name, value in inner.items():
        if name not in env and name.partition(".")[0].partition("[")[0] not in own:
            env[name] = value


def _enter(
    node: ast.expr, clauses: list[ast.comprehension], env: Env, ctx: Context
) -> tuple[Env, Context]:
    """Bind the targets of a comprehension's clauses; the innermost environment and place."""
    for clause in clauses:
        iterated = evaluate(clause.iter, env, ctx)
        ctx = ctx.within(LoopPlace(node, "comprehension", clause.iter, iterated))
        assignment.assign(clause.target, element_of(iterated), env, ctx)
        for condition in clause.ifs:
            expressions.truth(condition, env, ctx, "filter")
            env = narrow(condition, env, ctx, True) or env
    return env, ctx
