"""The elements of tensors that a site reads as numbers, on the ast.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.fixes.engine.surroundings import Surroundings
    from flake8_torchperf.judgement.judged_site import JudgedSite

READS = (SiteKind.HOST_READ, SiteKind.NUMBER_USE)
CASTS = ("int", "float", "bool")
# Operators that give the same for whole numbers as for a tensor of them.
_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_SAME_VALUE = frozenset(("detach", "cpu", "clone"))


@dataclass(frozen=True, slots=True)
class ElementRead:
    """An expression that reads one element, and the element: ``x[i].item()`` and ``x[i]``."""

    node: ast.expr
    element: ast.expr


def elements_read(site: JudgedSite) -> Iterator[ElementRead]:
    """Yield the elements and names that the code of a site reads as numbers."""
    if site.kind in READS and isinstance(site.node, ast.expr):
        operand = site.operand
        if not isinstance(operand, Tensor) or operand.dtype != "complex":
            yield from _inside(site.node)


@dataclass(frozen=True, slots=True)
class NumberReads:
    """The elements that the reported sites of a module read, in the order of the sites.

    ``by_element`` has the read of each element, by its identity, and ``by_owner`` the reads of the
    items of each expression, by its dump. ``of_tensors`` are the elements known to be a tensor's.
    """

    by_element: dict[int, ast.expr]
    by_owner: dict[str, list[ElementRead]]
    of_tensors: frozenset[int]


def number_reads(around: Surroundings) -> NumberReads:
    """Return the elements that are read as numbers in a module."""
    by_element: dict[int, ast.expr] = {}
    by_owner: dict[str, list[ElementRead]] = {}
    of_tensors: set[int] = set()
    for site in around.reported(*READS):
        reads = list(elements_read(site))
        for one in reads:
            by_element[id(one.element)] = one.node
            if isinstance(one.element, ast.Subscript):
                by_owner.setdefault(ast.dump(one.element.value), []).append(one)
        operand = site.operand
        items = isinstance(operand, Tensor) and operand.role in ("element", "iterated")
        if items and len(reads) == 1:
            of_tensors.add(id(reads[0].element))
    return NumberReads(by_element, by_owner, frozenset(of_tensors))


def _inside(node: ast.expr) -> Iterator[ElementRead]:
    match node:
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in CASTS:
            yield from _inside(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[], keywords=[]) if (
            name in methods_of("reads")
        ):
            yield ElementRead(node, _plain(inner))
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _WHOLE):
            yield from _inside(left)
            yield from _inside(right)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield from _inside(operand)
        case ast.Name() | ast.Subscript() | ast.Attribute() | ast.Call():
            yield ElementRead(node, _plain(node))


def _plain(node: ast.expr) -> ast.expr:
    """Return the ``x[i]`` of ``x[i].data`` and ``x[i].detach()``."""
    match node:
        case ast.Attribute(value=inner, attr="data"):
            return _plain(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[], keywords=[]) if (
            name in _SAME_VALUE
        ):
            return _plain(inner)
    return node
