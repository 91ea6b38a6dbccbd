"""Where the values lie that a function reads, by what it combines them with, and by the program.

A function's own text seldom says where its arguments lie. Its callers move them to a device, or
compute them with a module's parameters, or their callers do. Then it is sure that a read waits.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.inference.combined import places_of
from flake8_torchperf.interpreter.inference.parameters import declared_parameters
from flake8_torchperf.judgement.review.given_values import sites_given, waits_on_device
from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.values.devices import BESIDE_HOST, CHOSEN
from flake8_torchperf.values.values import Tensor, Value, tensor_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.judgement.judged_site import Judged, JudgedSite
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.values.site import SiteKind

# The most names of one expression that are followed.
MAX_SOURCES = 8
SHOWN_PLACES = ("device", CHOSEN, BESIDE_HOST)


class PlacedValues:
    """Finds where the values lie that the functions of one module read."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats) -> None:
        self._analysis = analysis
        self._heats = heats

    def reviewed(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites of a function, with the places of values that are shown elsewhere."""
        if not any(map(_is_unplaced, result.sites)):
            return result
        combined = self._combined(result, info)
        return combined.having(self._by_program(site, info.module) for site in combined.sites)

    def _by_program(self, site: JudgedSite, module: ModuleMap) -> JudgedSite:
        """Return a site, on the device that the program chooses if it puts the value there."""
        if not _is_unplaced(site) or not isinstance(site.operand, Tensor):
            return site
        asked = islice(_sources(site.operand_node or site.node), MAX_SOURCES)
        found = (self._heats.program.placed_at(one, module) for one in asked)
        place = next(filter(None, found), None)
        if place is None:
            return site
        operand = replace(site.operand, device=CHOSEN)
        return replace(site, operand=operand, placed_at=place)

    def _combined(self, result: Judged, info: FunctionInfo) -> Judged:
        """Return the sites as they are if parameters lie where what they are combined with lies."""
        places = places_of(info.node, self._analysis)
        declared = declared_parameters(info, self._analysis) if places else {}
        given: dict[str, Value] = {
            name: replace(tensor, device=places[name])
            for name, value in declared.items()
            if name in places and (tensor := tensor_of(value)) is not None
        }
        there = {
            site.key: site
            for site in sites_given(info, given, self._analysis, self._heats) or ()
            if site.tensor is not None and site.tensor.device in SHOWN_PLACES
        }
        return result.having(_as_there(site, there) for site in result.sites)


def _is_unplaced(site: JudgedSite) -> bool:
    """True if a site may be reported, and nothing shows where the value that it reads lies."""
    tensor = site.tensor
    return tensor is not None and tensor.device == "unknown" and waits_on_device(site)


def _as_there(site: JudgedSite, there: dict[tuple[int, SiteKind], JudgedSite]) -> JudgedSite:
    """Return a site with its value where another run of the function has it."""
    found = there.get(site.key) if _is_unplaced(site) else None
    tensor = None if found is None else found.tensor
    if found is None or tensor is None or not isinstance(site.operand, Tensor):
        return site
    placed = replace(site, operand=replace(site.operand, device=tensor.device))
    return replace(placed, heat=found.heat) if tensor.device == BESIDE_HOST else placed


def _sources(node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """Yield the names and the attributes of `self` that an expression takes its value from."""
    for one in walk([node]):
        match one:
            case ast.Name(id=name) if name not in ("self", "cls"):
                yield one
            case ast.Attribute(value=ast.Name(id="self")):
                yield one
