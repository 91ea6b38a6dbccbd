"""Comprehensions and generator expressions: loops inside an expression.

Enters a comprehension node; leaves a sequence or mapping value. Must not know statements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from flake8_torchperf.interpret import expressions, targets
from flake8_torchperf.interpret.iteration import element_of, unpack_reads
from flake8_torchperf.interpret.machine import LoopPlace
from flake8_torchperf.interpret.narrowing import narrow
from flake8_torchperf.interpret.values import Mapping_, Sequence, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpret.environment import Env
    from flake8_torchperf.interpret.machine import Context

KINDS = {cst.ListComp: "list", cst.SetComp: "set", cst.GeneratorExp: "iterator"}


def comprehension(
    node: cst.ListComp | cst.SetComp | cst.GeneratorExp, env: Env, ctx: Context
) -> Value:
    """``[elt for target in iter if test]`` and its kin."""
    before = ctx.budget.opaque_calls
    inner, place = enter(node, node.for_in, dict(env), ctx)
    element = expressions.evaluate(node.elt, inner, place)
    _iterated(place, len(ctx.loops), ctx, ctx.budget.opaque_calls > before)
    _keep_walrus(node.for_in, inner, env)
    return Sequence(KINDS[type(node)], element)


def dict_comprehension(node: cst.DictComp, env: Env, ctx: Context) -> Value:
    """``{key: value for target in iter if test}``."""
    before = ctx.budget.opaque_calls
    inner, place = enter(node, node.for_in, dict(env), ctx)
    key = expressions.evaluate(node.key, inner, place)
    value = expressions.evaluate(node.value, inner, place)
    _iterated(place, len(ctx.loops), ctx, ctx.budget.opaque_calls > before)
    _keep_walrus(node.for_in, inner, env)
    return Mapping_(key, value)


def _iterated(place: Context, outer: int, ctx: Context, opaque: bool) -> None:
    """The tensors that the clauses of a comprehension iterate."""
    for loop in place.loops[outer:]:
        if loop.over is not None:
            traits = ("opaque-body",) if opaque else ()
            unpack_reads(loop.value, "comprehension", loop.over, ctx, traits)


def _keep_walrus(clause: cst.CompFor | None, inner: Env, env: Env) -> None:
    """Names bound by ``:=`` inside outlive the comprehension, its own targets do not."""
    own: set[str] = set()
    while clause is not None:
        own |= targets.names(clause.target)
        clause = clause.inner_for_in
    for name, value in inner.items():
        if name not in env and name.partition(".")[0].partition("[")[0] not in own:
            env[name] = value


def enter(node: cst.CSTNode, clause: cst.CompFor, env: Env, ctx: Context) -> tuple[Env, Context]:
    """Bind the targets of a comprehension's clauses; the innermost environment and place."""
    iterated = expressions.evaluate(clause.iter, env, ctx)
    place = ctx.within(LoopPlace(node, "comprehension", clause.iter, iterated))
    targets.assign(clause.target, element_of(iterated), env, place)
    for condition in clause.ifs:
        expressions.truth(condition.test, env, place, "filter")
        env = narrow(condition.test, env, place, True) or env
    if clause.inner_for_in is not None:
        return enter(node, clause.inner_for_in, env, place)
    return env, place
