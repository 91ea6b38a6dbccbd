"""The parts that feed a training loop and update the model: data loaders and optimizers."""

from __future__ import annotations

import ast
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.module_roles import compares_options
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.events.training import repeated_data
from flake8_torchperf.interpreter.events.training.trained_loaders import uses_of
from flake8_torchperf.interpreter.stated_types.class_hierarchy import kind_of_instance
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.values.arguments import Argument
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.host_data import PAGEABLE, PINNED
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    UNKNOWN,
    Instance,
    NoneValue,
    Scalar,
    Sequence,
    Tensor,
    Union,
    Value,
    tensor_of,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap
    from flake8_torchperf.values.arguments import Arguments

# A loader without workers whose batches are those of training steps.
FEEDS_STEPS = "feeds-steps"
# A loader whose workers end with each pass over it.
TRANSIENT = "transient"
# Data sets that hold tensors: a batch is a slice of them, which workers would only copy.
IN_MEMORY = ("torch.utils.data.TensorDataset",)
PINNING_DEVICES = ("cuda", "xpu", "mps", "hpu", "npu")


def loader(made: Instance, arguments: Arguments, ctx: Context) -> Instance:
    """Return a ``DataLoader`` with the memory of its batches; report one that may starve a device.

    The loader is reported only if its data is a data set; other data may be numbers in a list.
    """
    workers, pins = _workers(arguments), _flag(arguments, "pin_memory")
    facts: set[str] = set()
    if pins is not None:
        facts.add(PINNED if pins else PAGEABLE)
    if workers and _flag(arguments, "persistent_workers") is False and not ctx.loops:
        facts.add(TRANSIENT)
    lacks = [name for name, lacking in (("no-workers", workers == 0), ("no-pin", pins is False))
             if lacking]  # fmt: skip
    without = ctx.demoted is Cause.NO_DEVICE or _in_memory(arguments)
    loads = _loads_data_set(arguments, ctx)
    if ctx.sink is not None and lacks and loads and not without and _in_a_step(ctx):
        operation = lacks[0] if len(lacks) == 1 else "DataLoader"
        # Unpinned memory only makes a copy slower, which mostly stands behind another wait.
        trains = "no-workers" in lacks and bool(uses_of(arguments.node, ctx).trained)
        traits = [*lacks, FEEDS_STEPS] if trains else lacks
        emit(ctx, SiteKind.DATA_LOADER, operation, arguments.node, traits=traits)
    if loads:
        repeated_data.note_loader(arguments, ctx)
    return Instance(made.name, made.info, frozenset(facts))


# Options of a loader that somebody who loads a list of numbers would not pass.
OF_DATA_SETS = ((3, "sampler"), (4, "batch_sampler"), (5, "num_workers"), (6, "collate_fn"))


def _loads_data_set(arguments: Arguments, ctx: Context) -> bool:
    """True if a loader loads a data set: by its class, or unknown data with options for one."""
    data = arguments.value(0, "dataset")
    objects = data.options if isinstance(data, Union) else (data,)
    found = (one for one in objects if isinstance(one, Instance))
    if any(kind_of_instance(one, ctx.analysis) == "dataset" for one in found):
        return True
    given = (arguments.get(position, name) for position, name in OF_DATA_SETS)
    return data is UNKNOWN and any(one is not None for one in given)


def loader_iterated(value: Value, node: ast.expr, ctx: Context) -> None:
    """Report ``for batch in loader`` inside another loop, whose rounds restart the workers."""
    transient = isinstance(value, Instance) and TRANSIENT in value.facts
    if transient and ctx.loops and _in_a_step(ctx):
        emit(ctx, SiteKind.DATA_LOADER, "new-workers", node)


def _workers(arguments: Arguments) -> int | None:
    """Return the number of workers: 0 if the call sets none, None if it is not known."""
    given = arguments.get(5, "num_workers")
    if given is None:
        return None if arguments.open else 0
    match given.value:
        case Scalar(kind="int", value=int(count)):
            return count
    return None


def _flag(arguments: Arguments, name: str) -> bool | None:
    """Return the value of an option: False if it is left out, None if it is not known."""
    given = arguments.keywords.get(name)
    if given is None:
        return None if arguments.open or len(arguments.positional) > MAX_POSITIONAL else False
    match given.value:
        case Scalar(kind="bool", value=bool(flag)):
            return flag
        case NoneValue():
            return False
    return None


# If a loader has more arguments by position than this, its options are not known.
MAX_POSITIONAL = 6


def _in_memory(arguments: Arguments) -> bool:
    data = arguments.value(0, "dataset")
    return isinstance(data, Instance) and data.name in IN_MEMORY


def _in_a_step(ctx: Context) -> bool:
    """True if the module is part of a program that computes on an accelerator."""
    if compares_options(ctx.module, ctx.analysis.conventions):
        return False
    return uses_accelerator(ctx.module) or _feeds_accelerator(ctx)


def _feeds_accelerator(ctx: Context) -> bool:
    """True if a module of code that leads to the current function brings data to a device."""
    info, analysis = ctx.frame.info, ctx.analysis
    if info is None:
        return False
    return FEEDING.kept(analysis, info.key, lambda: _is_led_from_accelerator(info, analysis))


def _is_led_from_accelerator(info: FunctionInfo, analysis: Analysis) -> bool:
    leading = {module.place: module for module, _ in analysis.leading(info)}
    return any(
        uses_accelerator(module)
        for module in islice(leading.values(), MOST_LEADING)
        if not compares_options(module, analysis.conventions)
    )


# The most modules that are read to find the device that a loader feeds.
MOST_LEADING = 8
FEEDING: Cache[str, bool] = Cache("functions whose loaders feed a device")


@once_per_module
def uses_accelerator(module: ModuleMap) -> bool:
    """True if the module brings anything to an accelerator."""
    return any(_brings_to_device(node) for node in ast.walk(module.tree))


def _brings_to_device(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name in PINNING_DEVICES:
            return True
        case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name in PINNING_DEVICES:
            return True
        case ast.Constant(value=str(text)):
            return text.partition(":")[0] in PINNING_DEVICES
    return False


def optimizer(made: Value, arguments: Arguments, ctx: Context) -> Value:
    """Return an optimizer; report options that make a step slower: ``foreach=False``."""
    if not compares_options(ctx.module, ctx.analysis.conventions):
        _report_options(arguments, ctx)
    if not isinstance(made, Instance):
        return made
    fused = arguments.open or "fused" in arguments.keywords
    if made.name in FUSED and not (fused and _switched(arguments, "fused") is not False):
        made = replace(made, facts=made.facts | {NOT_FUSED})
    if made.name not in CAPTURABLE:
        return made
    given = arguments.open or "capturable" in arguments.keywords
    if given and _switched(arguments, "capturable") is not False:
        return made
    return Instance(made.name, made.info, made.facts | {NOT_CAPTURABLE})


# Optimizers that refuse to step while a graph is captured, unless they are made for it:
# torch/optim/optimizer.py, `_cuda_graph_capture_health_check`, with a parameter `capturable`.
CAPTURABLE = frozenset(
    f"torch.optim.{name}"
    for name in (
        "ASGD",
        "Adadelta",
        "Adam",
        "AdamW",
        "Adamax",
        "NAdam",
        "RAdam",
        "RMSprop",
        "Rprop",
    )
)
NOT_CAPTURABLE = "not capturable"
# Optimizers with a fused kernel, which torch uses only where it is asked for, beside a loss scaler:
# torch/optim/adam.py, `_step_supports_amp_scaling`.
FUSED = frozenset(f"torch.optim.{name}" for name in ("Adagrad", "Adam", "AdamW", "SGD"))
NOT_FUSED = "not fused"


def step(owner: Instance, arguments: Arguments, ctx: Context) -> None:
    """Record the step of an optimizer that was not made for captured graphs."""
    if NOT_CAPTURABLE in owner.facts:
        emit(ctx, SiteKind.OPTIMIZER_OPTION, "step", arguments.node)


def _report_options(arguments: Arguments, ctx: Context) -> None:
    hooked = _mentions(ctx, "register_post_accumulate_grad_hook")
    chosen = {name: _switched(arguments, name) for name in ("foreach", "fused")}
    if True not in chosen.values() and not hooked:
        for name, value in chosen.items():
            if value is False:
                emit(ctx, SiteKind.OPTIMIZER_OPTION, name, arguments.node, traits=("option",))
                return
    rate = arguments.value(1, "lr")
    chosen["capturable"] = _switched(arguments, "capturable")
    if isinstance(rate, Tensor) and rate.device == "device" and True not in chosen.values():
        # torch/optim/_functional and its callers read it: optimizer.py, `_get_value`, `_to_scalar`
        emit(ctx, SiteKind.OPTIMIZER_OPTION, "tensor-lr", arguments.node)
    if ctx.loops and not hooked and _steps_one(arguments.get(0, "params"), ctx):
        emit(ctx, SiteKind.OPTIMIZER_OPTION, "per-parameter", arguments.node)


def _steps_one(given: Argument | None, ctx: Context) -> bool:
    """True for ``SGD([p])``, where a loop over parameters binds ``p``."""
    match given:
        case Argument(node=ast.List(elts=[ast.Name(id=name)]), value=Sequence(items=(item,))):
            held = tensor_of(item)
            parameter = held is not None and held.role == "parameter"
            return parameter and name in _given_by(ctx.loops[-1].node)
    return False


def _given_by(loop: ast.AST) -> set[str]:
    """Return the names that a loop or a comprehension binds in each round."""
    targets = [n.target for n in ast.walk(loop) if isinstance(n, ast.comprehension)]
    if isinstance(loop, (ast.For, ast.AsyncFor)):
        targets = [loop.target]
    return {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}


def zero_grad(arguments: Arguments, ctx: Context) -> None:
    """Report ``optimizer.zero_grad(set_to_none=False)``."""
    given = arguments.get(0, "set_to_none")
    if given is None or not isinstance(given.value, Scalar) or given.value.value is not False:
        return
    if not _captures(ctx):
        emit(ctx, SiteKind.OPTIMIZER_OPTION, "zero_grad", arguments.node)


def _switched(arguments: Arguments, name: str) -> bool | None:
    """Return an option written as True or False; None for anything else."""
    given = arguments.keywords.get(name)
    match None if given is None else given.value:
        case Scalar(kind="bool", value=bool(flag)):
            return flag
    return None


def _mentions(ctx: Context, name: str) -> bool:
    """True if the module mentions ``name``, whose use makes the slow form the right one."""
    return ctx.module.says(name)


# Words for graphs that are captured and replayed: gradients in them keep their place in memory.
CAPTURED = ("cudagraph", "cuda_graph", "cuda.graph", "make_graphed_callables")


def _captures(ctx: Context) -> bool:
    """True if the module captures a step in a graph, or passes one to a function that does."""
    return any(word in line for line in map(str.lower, ctx.module.lines) for word in CAPTURED)
