"""Loops in functions of which nothing says that they run often: is a round a step?

Enters sites with the heat of their place; leaves them, colder where a round is one file, one layer
or one key of something that is gone through once. Must not know rules.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpret.values import tensor_of
from flake8_torchperf.sites.model import Level, Site, SiteKind
from flake8_torchperf.sites.reads import COMPREHENSIONS
from flake8_torchperf.sites.steps import goes_through_data, makes_steps, over_epochs
from flake8_torchperf.suspects.walk import once

if TYPE_CHECKING:
    from collections.abc import Iterable

# What a single wait is; a loop over a tensor's elements or a model's parameters costs by itself.
WAITS = (
    SiteKind.HOST_READ, SiteKind.TRANSFER, SiteKind.HOST_REDUCTION, SiteKind.FORMAT,
    SiteKind.HOST_COMPARISON, SiteKind.SYNCHRONIZE, SiteKind.NUMBER_USE, SiteKind.BRANCH,
    SiteKind.DYNAMIC_SHAPE, SiteKind.MASK_INDEX, SiteKind.LIST_INDEX,
)  # fmt: skip
# Those that read values: of the rows of one tensor they could be read together.
VALUES = (SiteKind.HOST_READ, SiteKind.FORMAT, SiteKind.NUMBER_USE, SiteKind.BRANCH)
# What a tensor is one of many of: the loop over them is what is wrong, wherever it stands.
ONE_BY_ONE = frozenset(("parameter", "gradient", "element", "iterated"))
# A check of this kind is made after each step, of all that a step left behind.
NON_FINITE = frozenset(("isinf", "isnan", "isfinite", "isposinf", "isneginf"))


def in_steps(site: Site) -> Site:
    """The site, cold if all that is known is that some loop repeats it, and not that steps do.

    In a function that is given tensors, or that a step calls, each loop costs in each step. In any
    other a loop is over steps or data by its head, by what it hands on from round to round, or
    because its rounds are all alike. What a loop over epochs does beside the steps of each is
    cold everywhere.
    """
    heat = site.heat
    inner = site.loops[-1].node if heat.level is Level.LOOP else None
    if site.kind in WAITS and inner is not None and over_epochs(inner):
        return replace(site, heat=replace(heat, level=Level.COLD))
    if heat.level is not Level.LOOP or heat.around is not Level.COLD or site.kind not in WAITS:
        return site
    if _each_counts(site) or any(map(_may_be_steps, _nodes(site))):
        return site
    return replace(site, heat=replace(heat, level=Level.COLD))


def _nodes(site: Site) -> Iterable[ast.AST]:
    return (loop.node for loop in site.loops if loop.node is not None)


def _each_counts(site: Site) -> bool:
    """Is it read element by element, of a model's parameters, or of all that a step left?"""
    if site.kind in VALUES and any(_takes_row(loop, site) for loop in _nodes(site)):
        return True
    tensor = tensor_of(site.operand) if site.operand is not None else None
    if tensor is None:
        return False
    return tensor.role in ONE_BY_ONE or not NON_FINITE.isdisjoint(tensor.chain)


def _takes_row(loop: ast.AST, site: Site) -> bool:
    """``float(x[i].sum())`` for each ``i``: one read of all rows together would do."""
    target = loop.generators[0].target if isinstance(loop, COMPREHENSIONS) else None
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        target = loop.target
    if target is None or site.operand_node is None:
        return False
    counted = _names(target)
    return any(
        isinstance(node, ast.Subscript) and not counted.isdisjoint(_names(node.slice))
        for node in ast.walk(site.operand_node)
    )


def _names(node: ast.expr) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _may_be_steps(loop: ast.AST) -> bool:
    return makes_steps(loop) or goes_through_data(loop) or _alike(loop)


@once
def _alike(loop: ast.AST) -> bool:
    """``for i in range(rounds)``, with no ``x[i]`` in it: does a round do what the last one did?"""
    match loop:
        case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"))):
            return not any(
                isinstance(node, ast.Subscript) and counter in _names(node.slice)
                for node in ast.walk(loop)
            )
    return False
