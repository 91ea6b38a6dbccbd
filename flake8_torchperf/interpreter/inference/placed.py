"""Batches that a framework moves to its device before a function has them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.placed_batches import moving_loaders, moving_methods, placed_names
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.program.origins.placing import TRAINER, TRAINER_STEPS
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.values.devices import OPEN
from flake8_torchperf.values.values import Reason, Tensor

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import ClassInfo, FunctionNode, ModuleMap

PLACED_NAMES: Cache[int, frozenset[str]] = Cache("names of moved batches")
MOVING_LOADERS: Cache[str, set[str]] = Cache("attributes of loaders that move batches")
WORDS = "part of a batch that its framework moved"


def placed_in(
    node: FunctionNode, module: ModuleMap, owner: ClassInfo | None, analysis: Analysis
) -> frozenset[str]:
    """Return the names in a function that hold moved batches or parts of them; cached."""
    return PLACED_NAMES.kept(analysis, id(node), lambda: _placed_in(node, module, owner, analysis))


def _placed_in(
    node: FunctionNode, module: ModuleMap, owner: ClassInfo | None, analysis: Analysis
) -> frozenset[str]:
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
        lambda: {
            name
            for info in owner.methods.values()
            for name in moving_loaders(info.nodes, methods)
            if "." in name
        },
    )


def as_placed(value: Tensor, name: str, placed: frozenset[str]) -> Tensor:
    """Return a tensor that the use of ``name`` shows, on the device if it is part of a batch."""
    if name not in placed or value.device not in OPEN:
        return value
    reason = value.reason
    if reason.because is None:
        reason = replace(reason, because=Reason(WORDS, strength=reason.strength))
    return replace(value, device="device", reason=reason)
