"""The arguments of a call, evaluated: those by position, then those by keyword."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import evaluate
from flake8_torchperf.interpreter.transfer.iteration import unpack_reads
from flake8_torchperf.values.arguments import Argument, Arguments
from flake8_torchperf.values.elements import element_of
from flake8_torchperf.values.values import UNKNOWN, Mapping_, Sequence, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.values.environments import Env


def evaluate_arguments(node: ast.Call, env: Env, ctx: Context) -> Arguments:
    """Evaluate the arguments of a call: positional ones, then keywords."""
    positional: list[Argument] = []
    keywords: dict[str, Argument] = {}
    hidden = False
    counted: int | None = None
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            value = evaluate(argument.value, env, ctx)
            before = len(positional)
            if _starred(argument.value, value, positional, ctx):
                hidden = True
                counted = before + 1 if counted is None else counted
        else:
            positional.append(Argument(argument, evaluate(argument, env, ctx)))
    for keyword in node.keywords:
        value = evaluate(keyword.value, env, ctx)
        if keyword.arg is not None:
            keywords[keyword.arg] = Argument(keyword.value, value)
            continue
        # A dict that this code makes holds these keys and no others.
        whole = isinstance(value, Mapping_) and value.made and value.element is UNKNOWN
        hidden = hidden or not whole
        if isinstance(value, Mapping_):
            for key, item in value.items:
                keywords.setdefault(key, Argument(keyword.value, item))
    return Arguments(node, tuple(positional), keywords, hidden, counted)


def _starred(node: ast.expr, value: Value, positional: list[Argument], ctx: Context) -> bool:
    """Spread ``*value``; return True if the number of arguments is unknown."""
    unpack_reads(value, "star", node, ctx)
    if isinstance(value, Sequence) and value.items is not None:
        positional.extend(Argument(node, item) for item in value.items)
        return False
    positional.append(Argument(node, element_of(value)))
    return True
