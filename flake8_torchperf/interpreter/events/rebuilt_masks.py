"""Masks that every ``forward`` makes anew from sizes alone: ``torch.triu(torch.ones(n, n))``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.stated_types.class_hierarchy import torch_kind
from flake8_torchperf.suspects.nominate import makes_triangle
from flake8_torchperf.suspects.words import TRIANGLES
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context


def note_mask(node: ast.Call, made: Value, ctx: Context) -> None:
    """Record a triangular mask that the ``forward`` of a layer makes."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name not in TRIANGLES or ctx.node is None or ctx.node.name != "forward":
        return
    if ctx.owner is None or torch_kind(ctx.owner, ctx.analysis) != "module":
        return
    if makes_triangle(node):
        emit(ctx, SiteKind.ALLOCATION, name, node, made)
