"""Patterns of a match statement: what they bind, and whether they compare.

Enters a pattern and the subject's value; leaves the environment changed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpret import expressions
from flake8_torchperf.interpret.environment import Env, path_of
from flake8_torchperf.interpret.iteration import values_of
from flake8_torchperf.interpret.narrowing import instance_value
from flake8_torchperf.interpret.values import UNKNOWN, Mapping_, Reason, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpret.machine import Context


def bind_pattern(pattern: ast.pattern, subject: Value, env: Env, ctx: Context) -> None:
    """Bind the names of a pattern to the parts of the subject."""
    match pattern:
        case ast.MatchAs(pattern=inner, name=name):
            matched = subject
            if inner is not None:
                bind_pattern(inner, subject, env, ctx)
                matched = _as_class(inner, subject, env, ctx)
            if name is not None:
                env[name] = matched
        case ast.MatchOr(patterns=options):
            for option in options:
                bind_pattern(option, subject, env, ctx)
        case ast.MatchSequence(patterns=parts):
            for part, value in zip(parts, values_of(subject, len(parts)), strict=False):
                bind_pattern(part, value, env, ctx)
        case ast.MatchStar(name=str(name)):
            env[name] = UNKNOWN
        case ast.MatchClass(patterns=positional, kwd_patterns=by_keyword):
            for part in (*positional, *by_keyword):
                bind_pattern(part, UNKNOWN, env, ctx)
        case ast.MatchMapping(keys=keys, patterns=parts):
            for key, part in zip(keys, parts, strict=True):
                bind_pattern(part, _item(key, subject), env, ctx)


def _item(key: ast.expr, subject: Value) -> Value:
    """What a dict holds under the key of a mapping pattern."""
    if not isinstance(subject, Mapping_):
        return UNKNOWN
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return dict(subject.items).get(key.value, subject.element)
    return subject.element


def narrow_subject(pattern: ast.pattern, node: ast.expr, env: Env, ctx: Context) -> None:
    """``match x: case torch.Tensor():`` makes ``x`` a tensor in that case."""
    path = path_of(node)
    if path is not None and isinstance(pattern, ast.MatchClass):
        before = expressions.evaluate(node, env, ctx.silent())
        env[path] = _as_class(pattern, before, env, ctx)


def _as_class(pattern: ast.pattern, subject: Value, env: Env, ctx: Context) -> Value:
    """``case torch.Tensor() as t``: the class says what ``t`` is."""
    if not isinstance(pattern, ast.MatchClass):
        return subject
    kind = expressions.evaluate(pattern.cls, env, ctx.silent())
    found = instance_value(kind, Reason("class pattern of a match", pattern))
    return subject if found == UNKNOWN else found


def compares(pattern: ast.pattern) -> bool:
    """Does the pattern compare the subject with ``==``?"""
    match pattern:
        case ast.MatchValue():
            return True
        case ast.MatchOr(patterns=options):
            return any(compares(option) for option in options)
        case ast.MatchAs(pattern=inner):
            return inner is not None and compares(inner)
    return False


def matches_all(pattern: ast.pattern) -> bool:
    """``case _`` and ``case name``."""
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None
