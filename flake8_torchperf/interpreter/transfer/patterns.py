"""Patterns of a match statement: the names that they bind, and the comparisons that they make."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import attribute_of, evaluate
from flake8_torchperf.interpreter.stated_types.annotations import record_fields
from flake8_torchperf.interpreter.transfer.narrowing import instance_value
from flake8_torchperf.values.elements import values_of
from flake8_torchperf.values.environments import Env, path_of
from flake8_torchperf.values.values import (
    UNKNOWN,
    Instance,
    Mapping_,
    Reason,
    Scalar,
    Sequence,
    Union,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context


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
            for part, value in zip(parts, _places(parts, subject), strict=True):
                bind_pattern(part, value, env, ctx)
        case ast.MatchStar(name=str(name)):
            env[name] = subject
        case ast.MatchClass():
            matched = _as_class(pattern, subject, env, ctx)
            for part, value in _attributes(pattern, matched, ctx):
                bind_pattern(part, value, env, ctx)
        case ast.MatchMapping(keys=keys, patterns=parts, rest=rest):
            for key, part in zip(keys, parts, strict=True):
                bind_pattern(part, _item(key, subject), env, ctx)
            if rest is not None:
                env[rest] = subject if isinstance(subject, Mapping_) else UNKNOWN


def _places(parts: list[ast.pattern], subject: Value) -> list[Value]:
    """Return the value of each part of a sequence pattern; a starred part gets a list."""
    stars = [at for at, part in enumerate(parts) if isinstance(part, ast.MatchStar)]
    items = subject.items if isinstance(subject, Sequence) else None
    if not stars or items is None or len(items) < len(parts) - 1:
        found = values_of(subject, len(parts))
    else:
        after = len(items) - (len(parts) - stars[0] - 1)
        middle = items[stars[0] : after]
        found = [*items[: stars[0]], join_all(middle), *items[after:]]
    for at in stars:
        found[at] = Sequence("list", found[at])
    return found


def _attributes(
    pattern: ast.MatchClass, matched: Value, ctx: Context
) -> list[tuple[ast.pattern, Value]]:
    """Return the parts of a class pattern, each with its attribute of the subject."""
    names: list[str] = []
    match matched:
        case Sequence(names=fields):
            names = list(fields)
        case Instance(info=info) if info is not None:
            names = list(record_fields(info, ctx.analysis))
        case Scalar() if len(pattern.patterns) == 1:
            return [(pattern.patterns[0], matched)]  # `case int(n)` gives the number itself
    names += [""] * (len(pattern.patterns) - len(names))
    wanted = [
        *zip(pattern.patterns, names, strict=False),
        *zip(pattern.kwd_patterns, pattern.kwd_attrs, strict=True),
    ]
    held = attribute_of
    return [(p, held(matched, name, None, ctx) if name else UNKNOWN) for p, name in wanted]


def _item(key: ast.expr, subject: Value) -> Value:
    """Return the value that a dict holds under the key of a mapping pattern."""
    if not isinstance(subject, Mapping_):
        return UNKNOWN
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return dict(subject.items).get(key.value, subject.element)
    return subject.element


def narrow_subject(pattern: ast.pattern, node: ast.expr, env: Env, ctx: Context) -> None:
    """Narrow ``x`` to a tensor in ``match x: case torch.Tensor():``."""
    path = path_of(node)
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    if path is not None and isinstance(pattern, ast.MatchClass):
        before = evaluate(node, env, ctx.silent())
        env[path] = _as_class(pattern, before, env, ctx)


def _as_class(pattern: ast.pattern, subject: Value, env: Env, ctx: Context) -> Value:
    """Return the value of ``t`` in ``case torch.Tensor() as t``, by the class."""
    if not isinstance(pattern, ast.MatchClass):
        return subject
    kind = evaluate(pattern.cls, env, ctx.silent())
    found = instance_value(kind, Reason("class pattern of a match", pattern))
    if found is UNKNOWN or type(found) is type(subject):
        return subject
    options = subject.options if isinstance(subject, Union) else ()
    return next((option for option in options if type(option) is type(found)), found)


def compares(pattern: ast.pattern) -> bool:
    """True if the pattern compares the subject with ``==``."""
    match pattern:
        case ast.MatchValue():
            return True
        case ast.MatchOr(patterns=options):
            return any(compares(option) for option in options)
        case ast.MatchAs(pattern=inner):
            return inner is not None and compares(inner)
    return False


def matches_all(pattern: ast.pattern) -> bool:
    """True for ``case _`` and ``case name``."""
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None
