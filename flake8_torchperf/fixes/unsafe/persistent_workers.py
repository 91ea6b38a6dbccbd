"""A loader whose workers start again in each epoch -> one that keeps its workers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.shared.keyword_options import options_set, rewrite
from flake8_torchperf.knowledge.objects import object_kind
from flake8_torchperf.syntax.traversal import below

if TYPE_CHECKING:
    from flake8_torchperf.findings.finding import Edit
    from flake8_torchperf.fixes.engine.surroundings import FixPlace

__all__ = ["plan", "rewrite"]


def plan(place: FixPlace) -> Edit | None:
    """Apply to a loader that is made once in the function, or in the module around it."""
    loader = place.site.node
    if place.site.operation != "new-workers" or not isinstance(loader, ast.Name):
        return None
    scope = place.around.function(loader) or place.around.tree
    made = [
        place.around.parent(node)
        for node in below(scope)
        if isinstance(node, ast.Name)
        and node.id == loader.id
        and not isinstance(node.ctx, ast.Load)
    ]
    match made:
        case [ast.Assign(targets=[ast.Name()], value=ast.Call() as call)]:
            if object_kind(place.around.qualified(call.func)) == "loader":
                return options_set(call, {"persistent_workers": "True"})
    return None
