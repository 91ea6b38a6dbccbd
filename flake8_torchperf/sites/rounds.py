"""Loops in functions of which nothing says that they run often: is a round a step?

Enters sites with the heat of their place; leaves them, colder where a round is one file, one layer
or one key of something that is gone through once. Must not know rules.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from flake8_torchperf.interpret.values import tensor_of
from flake8_torchperf.sites.model import Level, Site, SiteKind
from flake8_torchperf.sites.reads import cooled, head_of
from flake8_torchperf.sites.steps import goes_through_data, makes_steps, names_in, over_epochs
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
# Words of what a loop goes through that say it: a step has to do with all of them.
OF_A_MODEL = re.compile("param|grad", re.IGNORECASE)
# A check of this kind is made after each step, of all that a step left behind.
NON_FINITE = frozenset(("isinf", "isnan", "isfinite", "isposinf", "isneginf"))


def in_steps(site: Site) -> Site:
    """The site, cold if all that is known is that some loop repeats it, and not that steps do.

    In a function that is given tensors, or that a step calls, each loop costs in each step. In any
    other a loop is over steps or data by its head, by what it hands on from round to round, or
    because its rounds are all alike. What a loop over epochs does beside the steps of each is
    cold everywhere.
    """
    if site.heat.level is not Level.LOOP or site.kind not in WAITS:
        return site
    inner = site.loops[-1].node
    if inner is not None and over_epochs(inner):
        return cooled(site)
    if site.heat.around is not Level.COLD or _each_counts(site):
        return site
    return site if any(map(_may_be_steps, _nodes(site))) else cooled(site)


def _nodes(site: Site) -> Iterable[ast.AST]:
    return (loop.node for loop in site.loops if loop.node is not None)


def _each_counts(site: Site) -> bool:
    """Is it read element by element, of a model's parameters, or of all that a step left?"""
    tensor = tensor_of(site.operand) if site.operand is not None else None
    role, chain = ("", ()) if tensor is None else (tensor.role, tensor.chain)
    if role in ("parameter", "gradient") or not NON_FINITE.isdisjoint(chain):
        return True
    if site.kind not in VALUES:
        return False
    return role in ("element", "iterated") or any(_takes_row(loop, site) for loop in _nodes(site))


def _over_parameters(loop: ast.AST) -> bool:
    """``for p in model.parameters()``, ``for name, grad in grads.items()``."""
    head = head_of(loop)
    return head is not None and any(map(OF_A_MODEL.search, names_in(head.iter)))


def _takes_row(loop: ast.AST, site: Site) -> bool:
    """``float(x[i].sum())`` for each ``i``: one read of all rows together would do."""
    head = head_of(loop)
    if head is None or site.operand_node is None:
        return False
    counted = names_in(head.target)
    return any(
        isinstance(node, ast.Subscript) and not counted.isdisjoint(names_in(node.slice))
        for node in ast.walk(site.operand_node)
    )


def _may_be_steps(loop: ast.AST) -> bool:
    """Is it over steps, data or parameters, or does each round what the last one did?"""
    return makes_steps(loop) or goes_through_data(loop) or _over_parameters(loop) or _alike(loop)


@once
def _alike(loop: ast.AST) -> bool:
    """``for i in range(rounds)``, with no ``x[i]`` in it: does a round do what the last one did?"""
    match head_of(loop):
        case ast.For() | ast.comprehension() as head if isinstance(head.target, ast.Name):
            counter = head.target.id
            return _counts(head.iter) and not any(
                isinstance(node, ast.Subscript) and counter in names_in(node.slice)
                for node in ast.walk(loop)
            )
    return False


def _counts(iterated: ast.expr) -> bool:
    return isinstance(iterated, ast.Call) and "range" in names_in(iterated.func)
