"""Patterns of a match statement: what they bind, and whether they compare.

Enters a libcst pattern and the subject's value; leaves the environment changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from flake8_torchperf.interpret import expressions
from flake8_torchperf.interpret.environment import Env, path_of
from flake8_torchperf.interpret.iteration import values_of
from flake8_torchperf.interpret.narrowing import instance_value
from flake8_torchperf.interpret.values import UNKNOWN, Mapping_, Reason, Value
from flake8_torchperf.parse.snippet import literal_of

if TYPE_CHECKING:
    from flake8_torchperf.interpret.machine import Context


def bind_pattern(pattern: cst.MatchPattern, subject: Value, env: Env, ctx: Context) -> None:
    """Bind the names of a pattern to the parts of the subject."""
    match pattern:
        case cst.MatchAs(pattern=inner, name=name):
            matched = subject
            if inner is not None:
                bind_pattern(inner, subject, env, ctx)
                matched = _as_class(inner, subject, env, ctx)
            if name is not None:
                env[name.value] = matched
        case cst.MatchOr(patterns=options):
            for option in options:
                bind_pattern(option.pattern, subject, env, ctx)
        case cst.MatchList(patterns=parts) | cst.MatchTuple(patterns=parts):
            values = values_of(subject, len(parts))
            for part, value in zip(parts, values, strict=False):
                if isinstance(part, cst.MatchSequenceElement):
                    bind_pattern(part.value, value, env, ctx)
                elif isinstance(part, cst.MatchStar) and part.name is not None:
                    env[part.name.value] = UNKNOWN
        case cst.MatchClass(patterns=parts_, kwds=keywords):
            for positional in parts_:
                bind_pattern(positional.value, UNKNOWN, env, ctx)
            for keyword in keywords:
                bind_pattern(keyword.pattern, UNKNOWN, env, ctx)
        case cst.MatchMapping(elements=elements):
            for element in elements:
                bind_pattern(element.pattern, _item(element.key, subject), env, ctx)


def _item(key: cst.BaseExpression, subject: Value) -> Value:
    """What a dict holds under the key of a mapping pattern."""
    if not isinstance(subject, Mapping_):
        return UNKNOWN
    text = literal_of(key.value) if isinstance(key, cst.SimpleString) else None
    if isinstance(text, str):
        return dict(subject.items).get(text, subject.element)
    return subject.element


def narrow_subject(
    pattern: cst.MatchPattern, node: cst.BaseExpression, env: Env, ctx: Context
) -> None:
    """``match x: case torch.Tensor():`` makes ``x`` a tensor in that case."""
    path = path_of(node)
    if path is not None and isinstance(pattern, cst.MatchClass):
        before = expressions.evaluate(node, env, ctx.silent())
        env[path] = _as_class(pattern, before, env, ctx)


def _as_class(pattern: cst.MatchPattern, subject: Value, env: Env, ctx: Context) -> Value:
    """``case torch.Tensor() as t``: the class says what ``t`` is."""
    if not isinstance(pattern, cst.MatchClass):
        return subject
    kind = expressions.evaluate(pattern.cls, env, ctx.silent())
    found = instance_value(kind, Reason("class pattern of a match", pattern))
    return subject if found == UNKNOWN else found


def compares(pattern: cst.MatchPattern) -> bool:
    """Does the pattern compare the subject with ``==``?"""
    match pattern:
        case cst.MatchValue():
            return True
        case cst.MatchOr(patterns=options):
            return any(compares(option.pattern) for option in options)
        case cst.MatchAs(pattern=inner):
            return inner is not None and compares(inner)
    return False


def matches_all(pattern: cst.MatchPattern) -> bool:
    """``case _`` and ``case name``."""
    return isinstance(pattern, cst.MatchAs) and pattern.pattern is None
