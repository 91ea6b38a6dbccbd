"""The public modules, functions and classes of torch, each by one chosen name."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

# Modules whose functions and classes the table describes, the preferred name of an object first.
MODULES = (
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.prune",
    "torch.nn.utils.stateless",
    "torch.nn.utils.clip_grad",
    "torch.nn.utils.convert_parameters",
    "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm",
    "torch.nn.utils.fusion",
    "torch.nn.utils.memory_format",
    "torch.nn.utils.init",
    "torch.nn.parallel",
    "torch.nn.parameter",
    "torch.nn.attention",
    "torch.nn.attention.bias",
    "torch.nn.attention.flex_attention",
    "torch.optim",
    "torch.optim.optimizer",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.distributions",
    "torch.distributions.kl",
    "torch.distributions.utils",
    "torch.distributions.constraints",
    "torch.distributions.transforms",
    "torch.utils",
    "torch.utils.data",
    "torch.utils.data.dataloader",
    "torch.utils.data.dataset",
    "torch.utils.data.distributed",
    "torch.utils.checkpoint",
    "torch.utils.dlpack",
    "torch.utils.hooks",
    "torch.utils.model_zoo",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.cuda.comm",
    "torch.cuda.graphs",
    "torch.cuda.memory",
    "torch.cuda.nvtx",
    "torch.cuda.random",
    "torch.cuda.streams",
    "torch.cuda.nccl",
    "torch.cpu",
    "torch.cpu.amp",
    "torch.mps",
    "torch.mps.event",
    "torch.xpu",
    "torch.mtia",
    "torch.accelerator",
    "torch.amp",
    "torch.amp.autocast_mode",
    "torch.amp.grad_scaler",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.autograd.forward_ad",
    "torch.autograd.graph",
    "torch.autograd.profiler",
    "torch.autograd.grad_mode",
    "torch.func",
    "torch.random",
    "torch.functional",
    "torch.compiler",
    "torch.jit",
    "torch.sparse",
    "torch.nested",
    "torch.masked",
    "torch.overrides",
    "torch.hub",
    "torch.futures",
    "torch.profiler",
    "torch.testing",
    "torch.serialization",
    "torch.types",
    "torch.library",
    "torch.export",
    "torch.backends",
    "torch.backends.cuda",
    "torch.backends.cudnn",
    "torch.backends.mps",
    "torch.backends.mkl",
    "torch.backends.mkldnn",
    "torch.backends.openmp",
    "torch.backends.opt_einsum",
    "torch.distributed",
    "torch.distributed.distributed_c10d",
    "torch.distributed.device_mesh",
    "torch.distributed.nn.functional",
    "torch.distributed.tensor",
    "torch.distributed.fsdp",
    "torch.signal.windows",
    "torch.return_types",
    "torch.nn.modules",
    "torch.nn.modules.loss",
    "torch.nn.modules.module",
    "torch.nn.modules.linear",
    "torch.nn.modules.conv",
    "torch.nn.modules.batchnorm",
    "torch.nn.modules.utils",
    "torch.nn.modules.activation",
    "torch.nn.modules.container",
    "torch.nn.modules.rnn",
    "torch.nn.modules.transformer",
    "torch.nn.modules.pooling",
    "torch.nn.modules.normalization",
    "torch.nn.modules.dropout",
    "torch.nn.modules.sparse",
    "torch.nn.modules.upsampling",
    "torch.nn.modules.padding",
)
# Names that typing and the standard library lend to torch's modules do not count as torch's.
_FOREIGN = ("typing", "builtins", "collections", "functools", "contextlib", "numpy", "abc", "enum")


@dataclass
class Catalogue:
    """Public functions and classes by chosen qualified name, and all other names of the same
    objects.
    """

    functions: dict[str, Any] = field(default_factory=dict)
    classes: dict[str, type] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def class_names(self) -> dict[type, str]:
        """Return the chosen qualified name of every class."""
        return {value: name for name, value in self.classes.items()}

    def annotation_names(self) -> dict[str, str]:
        """Map the names of classes in annotations, bare and dotted, to the chosen names.

        Ambiguous bare names are left out.
        """
        bare: dict[str, set[str]] = {}
        for name in self.classes:
            bare.setdefault(name.rpartition(".")[2], set()).add(name)
        names = {short: next(iter(full)) for short, full in bare.items() if len(full) == 1}
        names.update({name: name for name in self.classes})
        names.update({alias: name for alias, name in self.aliases.items() if name in self.classes})
        return names


def catalogue(modules: Iterable[str] = MODULES, private: Iterable[str] = ()) -> Catalogue:
    """Return all that is public in those modules, except modules that this build of torch lacks.

    ``private`` names functions of torch that count as well, though they begin with an underscore.
    """
    kept = {("torch", name) for name in private}
    found = Catalogue()
    chosen: dict[int, str] = {}
    for module_name in modules:
        module = _import(module_name)
        if module is None:
            continue
        for name in sorted(vars(module)):
            value = vars(module)[name]
            if name.startswith("_") and (module_name, name) not in kept:
                continue
            if not _is_torchs(value):
                continue
            qualified = f"{module_name}.{name}"
            first = chosen.setdefault(_identity(value), qualified)
            if first != qualified:
                found.aliases[qualified] = first
            elif isinstance(value, type):
                found.classes[qualified] = value
            else:
                found.functions[qualified] = value
    names = {*chosen.values()}
    for qualified, value in (*found.classes.items(), *found.functions.items()):
        defined = _where_defined(value)
        if defined and defined not in names:
            found.aliases.setdefault(defined, qualified)
    return found


def _where_defined(value: Any) -> str:
    """Return the dotted name by which the module that defines a value shows it; "" if none does.

    Code imports `torch.optim.adam.Adam` as well as `torch.optim.Adam`.
    """
    module, name = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
    parts = [*module.split("."), name]
    if parts[0] != "torch" or any(part.startswith("_") for part in parts):
        return ""
    shown = getattr(sys.modules.get(module), name, None)
    return f"{module}.{name}" if shown is value else ""


def _identity(value: Any) -> int:
    return id(value)


def _import(name: str) -> types.ModuleType | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError:
            return None


def _is_torchs(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    if isinstance(value, type):
        return module.partition(".")[0] == "torch"
    if inspect.isfunction(value):
        return module.partition(".")[0] == "torch"
    return inspect.isbuiltin(value) and module.partition(".")[0] not in _FOREIGN
