"""Copies to the host that their author wrote explicitly, and copies that become arrays."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.interpreter.engine.place import Site
    from flake8_torchperf.judgement.judged_site import JudgedSite
    from flake8_torchperf.syntax.traversal import Nodes

# The trait of a copy that becomes an array of more than one number.
AS_ARRAY = "as-array"
# The copies of a function that become arrays, by the identity of the function.
MADE_ARRAYS: Cache[int, frozenset[int]] = Cache("copies made to be arrays")


def is_asked_for(site: JudgedSite) -> bool:
    """True for a copy to the host in a function of which only the tensors it is given are known."""
    copies = site.kind is SiteKind.TRANSFER and "to-host" in site.traits
    return copies and site.heat.level is Level.HOT


def becomes_array(site: Site) -> bool:
    """True for a copy to the host that becomes an array of more than one number."""
    if site.kind is not SiteKind.TRANSFER or "to-host" not in site.traits:
        return False
    function, module = site.place.node, site.place.module
    if function is None or (isinstance(site.operand, Tensor) and site.operand.scalar is True):
        return False
    made = MADE_ARRAYS.kept(
        site.place.analysis,
        id(function),
        lambda: _made_arrays(module.nodes(function), module.qualify),
    )
    return id(site.node) in made


def _made_arrays(nodes: Nodes, qualify: Callable[[ast.expr], str]) -> frozenset[int]:
    """Return the calls that lead to an array, by identity: ``x.cpu().float().numpy()``."""
    found: set[int] = set()
    for node in nodes.of(ast.Call):
        match node:
            case ast.Call(func=ast.Attribute(attr="numpy")):
                _note_way(node, found)
            case ast.Call(func=ast.Attribute() as func, args=[made, *_]):
                if qualify(func).startswith("numpy."):
                    found.add(id(node))
                    _note_way(made, found)
    return frozenset(found)


def _note_way(node: ast.AST, found: set[int]) -> None:
    """Add to ``found`` an expression and the expressions that it takes its value from."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        found.add(id(node))
        node = node.func if isinstance(node, ast.Call) else node.value
