"""Environments: what each name, attribute path and constant subscript is worth at one point.

Enters names and values; leaves plain dicts that are copied where paths part and joined where they
meet. Must not know expressions' meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import libcst as cst

from flake8_torchperf.interpret.values import UNKNOWN, Value, join

if TYPE_CHECKING:
    from collections.abc import Iterable

Env: TypeAlias = dict[str, Value]


def path_of(node: cst.BaseExpression) -> str | None:
    """``x``, ``self.a.b``, ``batch["ids"]``, ``pair[0]``, ``xs[i]``: a place that can hold a value.

    None for any expression that is no chain of names, attributes and simple subscripts.
    """
    match node:
        case cst.Name(value=name):
            return name
        case cst.Attribute(value=base, attr=cst.Name(value=attr)):
            head = path_of(base)
            return None if head is None else f"{head}.{attr}"
        case cst.Subscript(
            value=base,
            slice=[
                cst.SubscriptElement(
                    slice=cst.Index(
                        value=(cst.SimpleString() | cst.Integer() | cst.Name()) as index
                    )
                )
            ],
        ):
            head = path_of(base)
            return None if head is None else f"{head}[{index.value}]"
    return None


def bind(env: Env, path: str, value: Value) -> None:
    """Assign to a place: what was known of its attributes and items no longer holds."""
    forget_inside(env, path)
    if value == UNKNOWN:
        value = env.get(declaration(path), value)
    env[path] = value


def declaration(path: str) -> str:
    """The key under which the type of a bare annotation (``x: Tensor``) is kept."""
    return f"{path}:"


def forget(env: Env, path: str) -> None:
    """Drop a place and everything known of its attributes and items."""
    forget_inside(env, path)
    env.pop(path, None)


def forget_inside(env: Env, path: str) -> None:
    """Drop what is known of a place's attributes and items."""
    inside, as_index = (path + ".", path + "["), f"[{path}]"
    stale = [key for key in env if key.startswith(inside) or as_index in key]
    for key in stale:
        del env[key]


def merge(envs: Iterable[Env | None]) -> Env | None:
    """The environment where several paths meet; None where no path arrives."""
    result: Env | None = None
    for env in envs:
        if env is None:
            continue
        result = dict(env) if result is None else _merge_two(result, env)
    return result


def _merge_two(a: Env, b: Env) -> Env:
    result: Env = {}
    for key, value in a.items():
        other = b.get(key)
        if other is not None:
            result[key] = value if other is value else join(value, other)
        elif _is_plain(key):
            result[key] = value  # bound on one path only: read on another, it would be an error
    for key, value in b.items():
        if key not in a and _is_plain(key):
            result[key] = value
    return result


def _is_plain(key: str) -> bool:
    return "." not in key and "[" not in key
