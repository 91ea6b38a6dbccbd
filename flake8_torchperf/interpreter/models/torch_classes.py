"""torch's own classes: their construction, and their attributes, calls and methods."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.engine.dispatch import apply
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.events.training import input_pipeline
from flake8_torchperf.interpreter.inference import combined
from flake8_torchperf.interpreter.inference.modules_by_use import BY_USE
from flake8_torchperf.interpreter.inference.parameters import parameters_of
from flake8_torchperf.interpreter.models import torch_call_waits, torch_containers, wrappers
from flake8_torchperf.knowledge.returns import TensorReturn
from flake8_torchperf.project.noted_writes import REGISTERING
from flake8_torchperf.values.arguments import Arguments, kinds
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.devices import BESIDE_HOST, CHOSEN
from flake8_torchperf.values.elements import DATA_LOADER
from flake8_torchperf.values.from_signature import value_of_return
from flake8_torchperf.values.named_types import MODULE_WRAPPERS, instance_of
from flake8_torchperf.values.provenance import Source
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import (
    BOOL,
    NONE,
    UNKNOWN,
    BoundMethod,
    Instance,
    Mapping_,
    Reason,
    Scalar,
    Sequence,
    Strength,
    Tensor,
    Value,
    tensor_of,
    union,
)

if TYPE_CHECKING:
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.knowledge.table import TorchClass


def attribute_of_class(torch_class: str, name: str, ctx: Context) -> Value:
    """Return the value of an attribute of one of torch's classes."""
    found = ctx.analysis.table.klass(torch_class)
    kind = "" if found is None else found.kind
    if kind == "module" and name == "training":
        return BOOL
    if kind == "optimizer" and name == "param_groups":
        return optimizer_groups(None)
    if kind == "module" and name in wrappers.INSIDE:
        return Instance("torch.nn.Module")
    layer = kind == "module" and torch_class not in MODULES_WITHOUT_LAYERS
    returned = None if found is None else found.attribute(name)
    flag = returned is not None and not isinstance(returned, TensorReturn)  # `bias` of a GRU
    if (layer and name in ("weight", "bias") and not flag) or kind == "parameter":
        return Tensor(Reason(f"`{name}` of a {torch_class}"), "float", role="parameter")
    if found is None:
        return UNKNOWN
    if (torch_class.rpartition(".")[2], name) in HOST_MEMBERS:
        return Tensor(Reason(f"`{name}` of a {torch_class}"), "int", "host", False)
    if returned is not None:
        return value_of_return(returned, Reason(f"`{name}` of a {torch_class}"), [])
    if found.method(name) is not None or name in KNOWN_METHODS:
        return BoundMethod(Instance(torch_class), name)
    return UNKNOWN


# torch/nn/utils/rnn.py, Note [ device and dtype of a PackedSequence ]; device_mesh.py, `__init__`
HOST_MEMBERS = {("PackedSequence", "batch_sizes"), ("DeviceMesh", "mesh")}


def construct_torch(name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return the result of calling one of torch's classes; UNKNOWN for anything else."""
    found = ctx.analysis.table.klass(name)
    if found is None:
        return UNKNOWN
    reason = Reason(f"`{name}` makes it", arguments.node)
    if found.kind in ("tensor", "parameter"):
        return instance_of(found.qualified, reason)
    if found.qualified in torch_containers.HOLDERS:
        return torch_containers.module_holder(found.qualified, arguments)
    made = instance_of(found.qualified, reason)
    if found.qualified == DATA_LOADER and isinstance(made, Instance):
        return input_pipeline.loader(made, arguments, ctx)
    if isinstance(made, Instance):
        made = torch_call_waits.told(made, arguments, ctx)
    if found.kind == "distribution":
        return torch_containers.distribution(made, arguments)
    if found.kind == "optimizer":
        return input_pipeline.optimizer(made, arguments, ctx)
    if isinstance(made, Instance) and _is_asked(arguments, "return_indices"):
        return replace(made, facts=made.facts | {"return_indices"})
    return made


def _is_asked(arguments: Arguments, option: str) -> bool:
    """True if an option is given and not known to be off."""
    given = arguments.keywords.get(option)
    return given is not None and not (
        isinstance(given.value, Scalar) and given.value.value is False
    )


def forward(callee: Instance, arguments: Arguments, ctx: Context) -> Value:
    """Return the result of calling one of torch's own modules."""
    found = ctx.analysis.table.klass(callee.name)
    op = None if found is None else found.method("forward")
    tensors = arguments.tensors()
    reason = Reason(f"`{callee.name}` returns it", arguments.node)
    device = _with_parameters(found, tensors)
    if device == CHOSEN:
        combined.note(((one.node, one.value) for one in arguments.all()), ctx, CHOSEN)
    if callee.parts is not None and isinstance(callee.parts.element, Instance):
        # The result is that of the last module, whatever its argument is.
        last = callee.parts.items[-1] if callee.parts.items else callee.parts.element
        given = Arguments(arguments.node, (), {}, open=True)
        value = apply(last, given, {}, ctx) if isinstance(last, Instance) else UNKNOWN
        if value is not UNKNOWN:
            return value
    if callee.name == SEQUENTIAL and len(tensors) == 1:
        # In practice, modules in a row make one tensor of one tensor.
        inferred = Reason("a Sequential returns it", arguments.node, None, Strength.INFERRED)
        return Tensor(inferred, device=CHOSEN)
    if callee.name == "torch.nn.Module" or callee.name in MODULE_WRAPPERS:
        # Most modules return a tensor; some return a tuple, a dict or an object of their own.
        fact = OUTPUT_BY_USE if BY_USE in callee.facts else OUTPUT
        why = Reason(fact, arguments.node, None, Strength.ASSUMED, Source.MODULE_OUTPUT)
        return Tensor(why, device=CHOSEN)
    if op is None or callee.name in MODULES_WITHOUT_LAYERS:
        return UNKNOWN
    if "return_indices" in callee.facts:  # torch/nn/modules/pooling.py: also returns positions
        pair = (Tensor(reason, "float"), Tensor(reason, "int"))
        return Sequence("tuple", Tensor(reason), pair)
    positional, keywords = kinds(arguments)
    value = value_of_return(op.resolve(positional, keywords), reason, tensors, device)
    if value is UNKNOWN and op.overloads:
        value = value_of_return(op.overloads[0].returns, reason, tensors, device)
    return value


def shown_by_use(output: Tensor, use: str) -> Tensor:
    """Return the output of a module as a tensor that its use shows; others as they are."""
    reason = output.reason
    if reason.source is not Source.MODULE_OUTPUT or reason.strength is not Strength.ASSUMED:
        return output
    fact = f"{reason.fact}, {use}"
    return replace(output, reason=Reason(fact, reason.node, None, Strength.INFERRED))


def _with_parameters(layer: TorchClass | None, tensors: list[Tensor]) -> str:
    """Return where a layer's result lies: with its parameters, if it has some.

    A layer without any is given what lies anywhere, and works there.
    """
    found = {tensor.device for tensor in tensors}
    if not found.isdisjoint(("host", BESIDE_HOST)):
        return "unknown"
    if layer is not None and layer.method("reset_parameters") is not None:
        return CHOSEN
    return CHOSEN if found and found <= {CHOSEN, "device"} else "unknown"


def is_layer(module: Instance) -> bool:
    """True for one of torch's own layers, or a container of nothing else.

    Layers process a batch as they process a sample.
    """
    if module.parts is not None:
        return all(
            isinstance(p, Instance) and is_layer(p) for p in module.parts.items or (UNKNOWN,)
        )
    name = module.name  # mypyc takes no starred names in `in (...)`
    known = name in MODULES_WITHOUT_LAYERS or name in MODULE_WRAPPERS or name == SEQUENTIAL
    return module.info is None and not known


SEQUENTIAL = "torch.nn.Sequential"
# The reason that the result of a module of unknown class is assumed to be a tensor.
OUTPUT = "output of a module"
OUTPUT_BY_USE = f"{OUTPUT}, as what is called is moved or put into a mode"


MODULES_WITHOUT_LAYERS = {"torch.nn.Module", "torch.nn.ModuleList", "torch.nn.ModuleDict"}


MODULE_ITERATIONS = {"parameters", "named_parameters", "buffers", "named_buffers", "state_dict"}


# Methods whose results are given here and not by the table.
KNOWN_METHODS = {*MODULE_ITERATIONS, *REGISTERING, "forward", "synchronize", "expand", "step"}


def call_torch_method(owner: Instance, name: str, arguments: Arguments, ctx: Context) -> Value:
    """Return the result of a method of one of torch's classes."""
    if name in MODULE_ITERATIONS:
        return module_iteration(name, arguments.node)
    if name in REGISTERING:
        _register(name, arguments, ctx)
        return NONE
    found = ctx.analysis.table.klass(owner.name)
    if name == "zero_grad":
        input_pipeline.zero_grad(arguments, ctx)
        return NONE
    if name == "step":
        input_pipeline.step(owner, arguments, ctx)
        torch_call_waits.note_scaled_step(owner, arguments, ctx)
    if name == "synchronize" and found is not None:
        _synchronized(owner, name, arguments, ctx)
        return NONE
    if name == "forward":
        return forward(owner, arguments, ctx)
    op = None if found is None else found.method(name)
    if op is None:
        return owner if name == "expand" else UNKNOWN  # the distribution in another shape
    reason = Reason(f"`{owner.name}.{name}` returns it", arguments.node)
    if owner.name == "torch.Generator" and name == "get_state":
        return Tensor(reason, "int", "host", False)  # a ByteTensor, for any generator's device
    positional, keywords = kinds(arguments)
    value = value_of_return(op.resolve(positional, keywords), reason, arguments.tensors())
    if isinstance(value, Instance) and value.name == owner.name:
        return owner if owner.info is None else replace(owner, name=owner.info.key)
    return torch_containers.given_by(owner, value)


def module_iteration(name: str, node: ast.AST) -> Value:
    """Return the tensors of a module: ``parameters()``, ``named_buffers()``, ``state_dict()``."""
    role = "parameter" if "parameters" in name else "state" if name == "state_dict" else ""
    strength = Strength.STATED
    tensor = Tensor(
        Reason(f"`{name}()` of a module yields tensors", node, None, strength),
        "float" if role == "parameter" else "unknown",
        CHOSEN,
        role=role,
    )
    if name == "state_dict":
        return Mapping_(Scalar("str"), tensor)
    if name.startswith("named_"):
        pair = (Scalar("str"), tensor)
        return Sequence("iterator", Sequence("tuple", UNKNOWN, pair))
    return Sequence("iterator", tensor)


# The name of the method's second argument, by the last word of the method's name.
REGISTERED = {"buffer": "tensor", "parameter": "param", "module": "module"}


def _register(name: str, arguments: Arguments, ctx: Context) -> None:
    """Store the tensor of ``self.register_buffer("x", t)``, which moves with its module."""
    if ctx.writes is None:
        return
    attr = arguments.value(0, "name")
    given = arguments.value(1, REGISTERED[name.rpartition("_")[2]])
    tensor = tensor_of(given)
    if not isinstance(attr, Scalar) or not isinstance(attr.value, str):
        return
    role = "parameter" if name == "register_parameter" else ""
    if tensor is not None:
        value: Value = replace(tensor, device=CHOSEN, role=role)
    elif given is UNKNOWN and not name.endswith("module"):
        reason = Reason(f"`{name}` takes a tensor", arguments.node)
        value = Tensor(reason, device=CHOSEN, role=role)
    else:
        value = given
    before = ctx.writes.get(attr.value)
    ctx.writes[attr.value] = value if before is None else union((before, value))


def optimizer_groups(reason_node: ast.AST | None) -> Value:
    """Return ``optimizer.param_groups``: dicts of options, with the parameters under "params"."""
    reason = Reason(
        "parameter of an optimizer's `param_groups`", reason_node, None, Strength.STATED
    )
    parameters = Sequence("list", Tensor(reason, "float", role="parameter"))
    group = Mapping_(Scalar("str"), UNKNOWN, (("params", parameters),))
    return Sequence("list", group)


def _synchronized(owner: Instance, name: str, arguments: Arguments, ctx: Context) -> None:
    """Record the wait of ``stream.synchronize()`` or ``event.synchronize()``."""
    kind = "event" if "Event" in owner.name else "stream"
    if kind == "event" and _kept(arguments.node, ctx):
        # The event was recorded in an earlier step, so it has passed or its copy is needed now.
        ctx = ctx.demote(Cause.MEASURING)
    emit(ctx, SiteKind.SYNCHRONIZE, f"{kind}.{name}", arguments.node)


def _kept(node: ast.Call, ctx: Context) -> bool:
    """True if the event has a name that this function neither records nor has as a parameter."""
    if ctx.node is None or not isinstance(node.func, ast.Attribute):
        return False
    event = node.func.value
    if not isinstance(event, (ast.Name, ast.Attribute)):
        return False
    if isinstance(event, ast.Name) and event.id in {a.arg for a, _ in parameters_of(ctx.node.args)}:
        return False
    recorded = f"{ast.unparse(event)}.record"
    return not any(
        isinstance(inner, ast.Attribute)
        and inner.attr == "record"
        and ast.unparse(inner) == recorded
        for inner in ast.walk(ctx.node)
    )
