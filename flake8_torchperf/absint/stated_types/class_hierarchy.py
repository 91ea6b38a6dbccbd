"""Where a class comes from: its bases, torch's kind of it, and the methods it inherits.

Enters a class; leaves the classes behind it, nearest first. Must not know values of attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.absint.domain.named_types import TENSOR_CLASSES
from flake8_torchperf.absint.domain.values import ClassValue, Function, Instance

if TYPE_CHECKING:
    from flake8_torchperf.absint.engine.analysis import Machine
    from flake8_torchperf.project.module_index import ClassInfo

MAX_BASES = 100


def lineage(info: ClassInfo, machine: Machine) -> list[ClassInfo | str]:
    """The class and its bases, nearest first: classes we can read, and others by name."""
    key = ("lineage", info.key)
    cached = machine.summaries.get(key)
    if isinstance(cached, list):
        return cached
    found: list[ClassInfo | str] = []
    waiting: list[ClassInfo | str] = [info]
    while waiting and len(found) < MAX_BASES:
        current = waiting.pop(0)
        if current in found:
            continue
        found.append(current)
        if isinstance(current, str):
            continue
        bases: list[ClassInfo | str] = []
        for base in current.bases:
            bases.append(_base(base, current, machine))
        waiting = bases + waiting
    machine.summaries[key] = found
    return found


def _base(name: str, info: ClassInfo, machine: Machine) -> ClassInfo | str:
    module = info.module
    prefix = f"{module.name}." if module.name else "."
    local = name.removeprefix(prefix) if name.startswith(prefix) else name
    if local in module.classes and module.classes[local] is not info:
        return module.classes[local]
    value = machine.external(name) if "." in name else machine.lookup(module, name)
    return value.info if isinstance(value, ClassValue) else name


def is_tensor_class(info: ClassInfo, machine: Machine) -> bool:
    """Is it derived from torch's Tensor, however far up?"""
    return any(base in TENSOR_CLASSES for base in lineage(info, machine))


def torch_kind(info: ClassInfo, machine: Machine) -> str:
    """What the nearest torch base is: "module", "optimizer", ...; "" for other classes."""
    for base in lineage(info, machine):
        if isinstance(base, str):
            found = machine.table.klass(base)
            if found is not None:
                return found.kind
            if base.rpartition(".")[2] in ("Module", "LightningModule", "PreTrainedModel"):
                return "module"
    return ""


def kind_of_instance(owner: Instance, machine: Machine) -> str:
    """The torch kind of an object's class."""
    if owner.info is not None:
        return torch_kind(owner.info, machine)
    if owner.name.startswith("torchvision.datasets."):
        return "dataset"
    found = machine.table.klass(owner.name)
    return "" if found is None else found.kind


def find_method(info: ClassInfo, name: str, machine: Machine) -> Function | None:
    """The method of that name, its own or inherited from a class we can read."""
    key = ("method", info.key, name)
    return machine.kept(key, lambda: _find_method(info, name, machine))


def _find_method(info: ClassInfo, name: str, machine: Machine) -> Function | None:
    for base in lineage(info, machine):
        if not isinstance(base, str) and name in base.methods:
            method = base.methods[name]
            return Function(method, method.key)
    return None
