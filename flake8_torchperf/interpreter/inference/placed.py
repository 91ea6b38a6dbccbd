"""Batches that a framework moves before a function has them, or of which a loop moves a part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.placed_batches import (
    kept_loaders,
    left_on_host,
    moving_loaders,
    moving_methods,
    placed_names,
)
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.program.origins.placing import TRAINER, TRAINER_STEPS
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.values.devices import OPEN
from flake8_torchperf.values.values import Reason, Tensor

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import ClassInfo, FunctionNode, ModuleMap

PLACED_NAMES: Cache[int, dict[str, str]] = Cache("places of parts of batches")
MOVING_LOADERS: Cache[str, set[str]] = Cache("attributes of loaders that move batches")
# Where the part of a batch lies, with the words for it.
WORDS = {
    "device": "part of a batch that its framework moved",
    "host": "part of a batch of which the loop moves another part",
}


def placed_in(
    node: FunctionNode, module: ModuleMap, owner: ClassInfo | None, analysis: Analysis
) -> dict[str, str]:
    """Return the places of the names in a function that hold parts of batches; cached."""
    return PLACED_NAMES.kept(analysis, id(node), lambda: _placed_in(node, module, owner, analysis))


def _placed_in(
    node: FunctionNode, module: ModuleMap, owner: ClassInfo | None, analysis: Analysis
) -> dict[str, str]:
    nodes = module.nodes(node)
    moved = _moved_in(node, module, owner, analysis)
    return {**dict.fromkeys(left_on_host(nodes), "host"), **dict.fromkeys(moved, "device")}


def _moved_in(
    node: FunctionNode, module: ModuleMap, owner: ClassInfo | None, analysis: Analysis
) -> frozenset[str]:
    """Return the names that hold batches which a framework has moved."""
    batches = [] if owner is None else _batches(node, owner, analysis)
    methods = moving_methods(module)
    if not methods:
        return placed_names(module.nodes(node), set(), batches) if batches else frozenset()
    kept = set() if owner is None else _attributes(owner, methods, analysis)
    nodes = module.nodes(node)
    return placed_names(nodes, moving_loaders(nodes, methods, kept), batches)


def _batches(node: FunctionNode, owner: ClassInfo, analysis: Analysis) -> list[str]:
    """Return the parameter that takes a batch from Lightning's trainer, if there is one."""
    if node.name not in TRAINER_STEPS:
        return []
    bases = (one for one in lineage(owner, analysis) if isinstance(one, str))
    if not any(base.rpartition(".")[2] == TRAINER for base in bases):
        return []
    return [parameter.arg for parameter in named_parameters(node.args)[1:2]]


def _attributes(owner: ClassInfo, methods: frozenset[str], analysis: Analysis) -> set[str]:
    """Return the attributes of a class, as ``self.loader``, that hold such loaders; cached."""
    return MOVING_LOADERS.kept(
        analysis,
        owner.key,
        lambda: {name for info in owner.methods.values() for name in kept_loaders(info, methods)},
    )


def as_placed(value: Tensor, name: str, placed: dict[str, str]) -> Tensor:
    """Return a tensor that the use of ``name`` shows, where the part of a batch lies."""
    place = placed.get(name)
    if place is None or value.device not in OPEN:
        return value
    reason = value.reason
    if reason.because is None:
        because = Reason(WORDS[place], strength=reason.strength)
        reason = replace(reason, because=because)
    return replace(value, device=place, reason=reason)
