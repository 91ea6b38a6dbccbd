"""The origin of a class: its bases, torch's kind of it, and the methods it inherits."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.knowledge.objects import DICTS, object_kind
from flake8_torchperf.program.given import OF_DATA_PACKAGES
from flake8_torchperf.syntax.docstrings import raw_docstring
from flake8_torchperf.values.named_types import TENSOR_CLASSES
from flake8_torchperf.values.values import ClassValue, Function, Instance, Value

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo

MAX_BASES = 100
LINEAGES: Cache[str, list[ClassInfo | str]] = Cache("lineages")
METHODS: Cache[tuple[str, str], Function | None] = Cache("methods")


def lineage(info: ClassInfo, analysis: Analysis) -> list[ClassInfo | str]:
    """Return the class and its bases, nearest first: classes we can read, and others by name."""
    known = LINEAGES.table(analysis)
    cached = known.get(info.key)
    if cached is not None:
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
            bases.append(_base(base, current, analysis))
        waiting = bases + waiting
    known[info.key] = found
    return found


def _base(name: str, info: ClassInfo, analysis: Analysis) -> ClassInfo | str:
    module = info.module
    prefix = f"{module.name}." if module.name else "."
    local = name.removeprefix(prefix) if name.startswith(prefix) else name
    if local in module.classes and module.classes[local] is not info:
        return module.classes[local]
    value = analysis.external(name) if "." in name else analysis.lookup(module, name)
    return value.info if isinstance(value, ClassValue) else name


def is_tensor_class(info: ClassInfo, analysis: Analysis) -> bool:
    """True if a class derives from torch's Tensor, directly or not."""
    return any(base in TENSOR_CLASSES for base in lineage(info, analysis))


def dict_kind(info: ClassInfo, analysis: Analysis) -> str:
    """Return the kind of dict that a class derives from: "dict", "output", ...; "" for none."""
    kinds = (object_kind(base) for base in lineage(info, analysis) if isinstance(base, str))
    return next((kind for kind in kinds if kind in DICTS), "")


def torch_kind(info: ClassInfo, analysis: Analysis) -> str:
    """Return the kind of the nearest torch base: "module", "optimizer", ...; "" for none."""
    for base in lineage(info, analysis):
        if isinstance(base, str):
            found = _kind_by_name(base, analysis)
            if found is not None:
                return found
            if base.rpartition(".")[2] in ("Module", "LightningModule", "PreTrainedModel"):
                return "module"
    return ""


def kind_of_instance(owner: Instance, analysis: Analysis) -> str:
    """Return the torch kind of an object's class."""
    if owner.info is not None:
        return torch_kind(owner.info, analysis)
    return _kind_by_name(owner.name, analysis) or ""


def _kind_by_name(name: str, analysis: Analysis) -> str | None:
    """Return the kind of a class of torch, or of a package's data sets; None for others."""
    found = analysis.table.klass(name)
    if found is not None:
        return found.kind
    return "dataset" if name.startswith(OF_DATA_PACKAGES) else None


def is_module(value: Value, analysis: Analysis) -> bool:
    """True for an object of a module's class."""
    return isinstance(value, Instance) and kind_of_instance(value, analysis) == "module"


def find_method(info: ClassInfo, name: str, analysis: Analysis) -> Function | None:
    """Return the method of that name, its own or inherited from a class we can read."""
    return METHODS.kept(analysis, (info.key, name), lambda: _find_method(info, name, analysis))


def _find_method(info: ClassInfo, name: str, analysis: Analysis) -> Function | None:
    for base in lineage(info, analysis):
        if not isinstance(base, str) and name in base.methods:
            method = base.methods[name]
            return Function(method, method.key)
    return None


def is_abstract(info: FunctionInfo) -> bool:
    """True for a method whose body is that of no object: it is left to the classes below."""
    if any(d.rpartition(".")[2] in ("abstractmethod", "overload") for d in info.decorators):
        return True
    node = info.node
    first, *rest = node.body
    if raw_docstring(node) and rest:
        first, *rest = rest
    match first:
        case ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name))):
            return name == "NotImplementedError"
        case ast.Expr(value=ast.Constant(value=value)):
            return value is Ellipsis and not rest
    return False
