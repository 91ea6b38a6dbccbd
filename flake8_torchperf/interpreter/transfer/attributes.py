"""Attribute access: on tensors, modules, classes of the project and imported names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import attribute_of, evaluate
from flake8_torchperf.interpreter.inference.objects_of_program import of_objects
from flake8_torchperf.values.environments import Env, path_of
from flake8_torchperf.values.values import UNKNOWN

if TYPE_CHECKING:
    import ast

    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.values import (
        Value,
    )


def attribute(node: ast.Attribute, env: Env, ctx: Context) -> Value:
    """Return the value of ``owner.name``, by the path if it has a value, else by the owner."""
    found, owner = with_owner(node, env, ctx)
    if found is UNKNOWN and owner is UNKNOWN:
        return of_objects(node.value, lambda one: attribute_of(one, node.attr, node, ctx), ctx)
    return found


def with_owner(node: ast.Attribute, env: Env, ctx: Context) -> tuple[Value, Value | None]:
    """Return ``owner.name``, and the owner if it had to be evaluated."""
    path = path_of(node)
    if path is not None and path in env:
        return env[path], None
    owner = evaluate(node.value, env, ctx)
    return attribute_of(owner, node.attr, node, ctx), owner
