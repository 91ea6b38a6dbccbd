"""Environments: the value of each name, attribute path and constant subscript at one point."""

from __future__ import annotations

import ast
from itertools import compress, filterfalse
from operator import is_not
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.record import record
from flake8_torchperf.values.values import (
    UNKNOWN,
    NDArray,
    Scalar,
    Tensor,
    Union,
    Value,
    join,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

Env: TypeAlias = dict[str, Value]


def path_of(node: ast.expr) -> str | None:
    """Return the path of a place that holds a value: ``x``, ``self.a.b``, ``pair[0]``, ``xs[i]``.

    Return None for an expression that is no chain of names, attributes and simple subscripts.
    """
    rest = ""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            rest = f".{node.attr}{rest}"
        elif isinstance(node, ast.Subscript) and (index := _index(node.slice)) is not None:
            rest = f"[{index}]{rest}"
        else:
            return None
        node = node.value
    return node.id + rest


def root_of(path: str) -> str:
    """Return ``x`` for ``x.shape``, ``x[0].y`` and the key that stores its declaration."""
    for end, character in enumerate(path):
        if character in ".[:":
            return path[:end]
    return path


def _index(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and not isinstance(node.value, NO_INDEX):
        return repr(node.value)
    return None


# Constants that name no item; neither does `xs[-1]`, whose index is an operation on a constant.
NO_INDEX = (float, complex, type(...))


def bind(env: Env, path: str, value: Value) -> None:
    """Assign to a place, and drop the values of its attributes and items."""
    forget_inside(env, path)
    if value is UNKNOWN:
        value = env.get(declaration(path), value)
    env[path] = value


def declaration(path: str) -> str:
    """Return the key under which the type of a bare annotation (``x: Tensor``) is stored."""
    return f"{path}:"


def forget(env: Env, path: str) -> None:
    """Drop a place and everything known of its attributes and items."""
    forget_inside(env, path)
    env.pop(path, None)


def forget_inside(env: Env, path: str) -> None:
    """Drop the values of a place's attributes and items."""
    inside, as_index = (path + ".", path + "["), f"[{path}]"
    together = "\n".join(env)  # one search in it shows for most names that nothing is stored
    if not (inside[0] in together or inside[1] in together or as_index in together):
        return
    stale = [key for key in env if key.startswith(inside) or as_index in key]
    for key in stale:
        del env[key]


def merge(envs: Iterable[Env | None]) -> Env | None:
    """Return the environment at a place where several paths meet; None if no path arrives."""
    result: Env | None = None
    for env in envs:
        if env is None:
            continue
        result = dict(env) if result is None else _merge_two(result, env)
    return result


def holds_same(a: Env, b: Env) -> bool:
    """True if an environment holds all values of another."""
    other = compress(b, map(is_not, b.values(), map(a.get, b)))
    return all(a.get(key) == b[key] for key in other)


def _merge_two(a: Env, b: Env) -> Env:
    """Join two environments, skipping identical values, which nearly all values are."""
    result = dict(a)
    for key in compress(a, map(is_not, a.values(), map(b.get, a))):
        other = b.get(key)
        if other is not None:
            result[key] = join(a[key], other)
        elif not _is_plain(key):  # a plain name stays: reading it on the other path would fail
            del result[key]
    for key in filterfalse(a.__contains__, b):
        if _is_plain(key):
            result[key] = b[key]
    return result


def rejoin(before: Env, after: Env) -> None:
    """Restore declared values after a test that distinguished their options.

    After `if isinstance(lr, Tensor): ...`, neither ``lr: float | Tensor`` nor ``lr: float`` counts
    as a tensor that some path gives.
    """
    for key, value in before.items():
        if isinstance(value, (Scalar, NDArray)) and _asked_for(after.get(key), value):
            after[key] = value
        if isinstance(value, Union) and not value.met:
            now = after.get(key)
            if (
                now is not value
                and isinstance(now, Union)
                and set(now.options) == set(value.options)
            ):
                after[key] = value


def _asked_for(now: Value | None, value: Value) -> bool:
    """True if ``now`` is a join of only ``value`` and tensors that a type test found."""
    return isinstance(now, Union) and all(
        option == value or (isinstance(option, Tensor) and option.reason.source is Source.TYPE_TEST)
        for option in now.options
    )


def _is_plain(key: str) -> bool:
    return "." not in key and "[" not in key


def outcome(name: str) -> str:
    """Return the key for the test whose outcome a name holds; the next assignment drops it."""
    return f"{name}.?"


@record
class Exits:
    """The environments after a statement: by falling through (None: never), break or continue."""

    env: Env | None
    breaks: tuple[Env, ...] = ()
    continues: tuple[Env, ...] = ()
