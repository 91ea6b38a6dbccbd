"""In the child: builds objects from specs, at one probe size.

Data is finite, non-zero and from a fixed seed. Objects of the user's classes are constructed with
inputs made like any other; where that fails they are made without `__init__`.
"""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.child.kept_arguments import arguments_of
from flake8_torchperf.runtime.confirm.child.load import ConfirmError
from flake8_torchperf.runtime.confirm.specs.from_names import by_name
from flake8_torchperf.runtime.confirm.specs.input_specs import KEPT, WIDTH, InputSpec

SEED = 20220726


def seed(number: int) -> None:
    """Seed torch's generators as `torch.manual_seed`, those of devices only where there are any.

    Without one, it keeps a call and the text of the stack for each type of device
    (torch/cuda/__init__.py: `_lazy_call`), which takes longer than most calls that are tried.
    """
    if torch.accelerator.is_available():
        torch.manual_seed(number)
    else:
        torch.default_generator.manual_seed(number)


class SpecError(ConfirmError):
    """A spec that cannot be followed: an unknown class, an expression that raises."""


@dataclass
class Builder:
    """Builds at size ``n`` on ``device``; ``names`` are the loaded module's own names.

    ``construct`` makes an object of a class the user wrote (it searches for inputs of its own).
    ``kept`` holds the arguments of recorded calls that were loaded, by file.
    """

    n: int
    device: str
    names: dict[str, Any]
    construct: Callable[[type, Builder], Any]
    made: int = field(default=0)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32

    def has_gradient(self, index: int) -> bool:
        """True if the parameter at this place of its module or list has a ``.grad``."""
        return True

    def build(self, spec: InputSpec) -> Any:
        """Return the object that a spec describes. Raises SpecError."""
        maker = _MAKERS.get(spec["kind"])
        if maker is None:
            raise SpecError(f"nothing can be made from {spec['kind']!r}")
        return maker(self, spec)

    def attribute(self, name: str) -> Any:
        """Return a value for an attribute of which only the name is known."""
        suggested = by_name(name)
        return self.build(suggested[0]) if suggested else UnknownObject(self)

    def size(self, dimension: int | str) -> int:
        """Return a dimension as a number."""
        return self.n if dimension == "n" else int(dimension)

    def tensor(self, shape: tuple[int, ...], dtype: str, data: str) -> torch.Tensor:
        """Return a tensor with data by role. The same call gives the same numbers in every run."""
        self.made += 1
        generator = torch.Generator().manual_seed(SEED + self.made)
        if dtype == "int":
            count = math.prod(shape)
            if count == 1:
                return torch.ones(shape, dtype=torch.int64, device=self.device)
            flat = torch.arange(count, device=self.device) % max(1, min(WIDTH, self.n))
            return flat.reshape(shape)
        if dtype == "bool":
            flat = torch.arange(math.prod(shape), device=self.device)
            return (flat % 2 == 0).reshape(shape)
        made = torch.rand(shape, generator=generator) * 0.8 + 0.1
        if data == "normal":
            sign = torch.randint(0, 2, shape, generator=generator) * 2 - 1
            made = made * 2 * sign
        if dtype == "complex":
            return torch.complex(made, made).to(self.device)
        return made.to(self.device)


def _tensor(builder: Builder, spec: InputSpec) -> Any:
    shape = tuple(builder.size(one) for one in spec["shape"])
    made = builder.tensor(shape, spec["dtype"], spec["data"])
    if spec.get("array"):
        return made.cpu().numpy()
    if spec.get("parameter") and made.is_floating_point():
        parameter = torch.nn.Parameter(made)
        number = builder.made
        gradient = builder.tensor(shape, spec["dtype"], "normal").detach()
        parameter.grad = gradient if builder.has_gradient(number) else None
        return parameter
    return made


def _list(builder: Builder, spec: InputSpec) -> Any:
    items = [builder.build(spec["item"]) for _ in range(builder.size(spec["length"]))]
    return _formed(items, spec["form"])


def _items(builder: Builder, spec: InputSpec) -> Any:
    return _formed([builder.build(one) for one in spec["items"]], spec["form"])


def _formed(items: list[Any], form: str) -> Any:
    match form:
        case "tuple":
            return tuple(items)
        case "iterator":
            return iter(items)
        case "set":
            return set(items)
    return items


def _dict(builder: Builder, spec: InputSpec) -> Any:
    return {key: builder.build(one) for key, one in spec["items"].items()}


def _value(builder: Builder, spec: InputSpec) -> Any:
    return spec["value"]


def _source(builder: Builder, spec: InputSpec) -> Any:
    """Return the value of the user's own expression; its torch functions use the probe's device."""
    names = {**builder.names, "torch": torch, "math": math, "n": builder.n}
    try:
        code = compile(spec["text"], "--inputs", "eval")
        for name in {"np", "numpy"}.intersection(code.co_names).difference(names):
            names[name] = importlib.import_module("numpy")
        with torch.device(builder.device):
            return eval(code, names)
    except Exception as error:
        raise SpecError(f"--inputs {spec['text']}: {type(error).__name__}: {error}") from error


def _module(builder: Builder, spec: InputSpec) -> torch.nn.Module:
    if spec.get("empty"):
        return torch.nn.Identity()
    seed(SEED)
    made = torch.nn.Linear(WIDTH, WIDTH).to(builder.device)
    give_gradients(list(made.parameters()), builder)
    return made


def _parameters(builder: Builder, spec: InputSpec) -> Iterator[torch.nn.Parameter]:
    return iter([] if spec.get("empty") else _some_parameters(builder))


def _some_parameters(builder: Builder) -> list[torch.nn.Parameter]:
    made = [torch.nn.Parameter(builder.tensor((WIDTH,), "float", "normal")) for _ in range(2)]
    give_gradients(made, builder)
    return made


def give_gradients(parameters: list[torch.nn.Parameter], builder: Builder) -> None:
    """Give every parameter a finite, non-zero ``.grad``, as after a backward pass.

    None to those for which the builder says so, as to parameters that a loss does not reach.
    """
    for index, one in enumerate(parameters):
        if one.is_floating_point():
            made = builder.tensor(tuple(one.shape), "float", "normal")
            gradient = made.detach().to(device=one.device, dtype=one.dtype)
            one.grad = gradient if builder.has_gradient(index) else None


def _optimizer(builder: Builder, spec: InputSpec) -> torch.optim.Optimizer:
    count = range(builder.n)
    parameters = [torch.nn.Parameter(builder.tensor((WIDTH,), "float", "unit")) for _ in count]
    give_gradients(parameters, builder)
    made = torch.optim.SGD(parameters, lr=0.1)
    if spec.get("empty"):
        made.param_groups[0]["params"].clear()  # the constructor refuses an empty list
    return made


def _loader(builder: Builder, spec: InputSpec) -> Any:
    count = 0 if spec.get("empty") else builder.n * 2
    data = builder.tensor((count, WIDTH), "float", "unit")
    labels = torch.arange(count) % 2
    dataset = torch.utils.data.TensorDataset(data.cpu(), labels)
    return torch.utils.data.DataLoader(dataset, batch_size=2)


def _callable(builder: Builder, spec: InputSpec) -> Callable[..., Any]:
    result = spec.get("result")

    def stand_in(*arguments: Any, **named: Any) -> Any:
        if result is not None:
            return builder.build(result)
        for one in arguments:
            if isinstance(one, torch.Tensor) and one.is_floating_point():
                return one * 0.5
        return builder.tensor((), "float", "unit").requires_grad_()

    return stand_in


class AutogradContext:
    """A stand-in for the context that `torch.autograd.Function` passes to its methods."""

    def __init__(self, builder: Builder) -> None:
        made = builder.tensor((builder.n, WIDTH), "float", "unit")
        self.saved_tensors: tuple[torch.Tensor, ...] = (made, made, made)
        self.needs_input_grad = (True,) * 8

    def save_for_backward(self, *tensors: torch.Tensor) -> None:
        """Store the tensors for `saved_tensors`."""
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors: torch.Tensor) -> None:
        """Ignored: no graph is built."""

    def mark_dirty(self, *tensors: torch.Tensor) -> None:
        """Ignored: no graph is built."""

    def set_materialize_grads(self, wanted: bool) -> None:
        """Ignored: no graph is built."""


class UnknownObject:
    """An object of an unknown class: it makes an attribute, by its name, when it is first read."""

    def __init__(self, builder: Builder) -> None:
        self._torchperf = builder

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self._torchperf.attribute(name)
        setattr(self, name, made)
        return made

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return a tensor."""
        return _callable(self._torchperf, {"kind": "callable"})(*arguments, **named)


def _stand_in(builder: Builder, spec: InputSpec) -> UnknownObject:
    return UnknownObject(builder)


def _device(builder: Builder, spec: InputSpec) -> torch.device:
    return torch.device(builder.device)


def _instance(builder: Builder, spec: InputSpec) -> Any:
    found = find_class(spec["name"], builder.names)
    if "named" not in spec:
        return builder.construct(found, builder)
    named = {name: builder.build(one) for name, one in spec["named"].items()}
    made = found(*[builder.build(one) for one in spec["arguments"]], **named)
    if isinstance(made, torch.nn.Module):
        made.to(builder.device, builder.dtype)
        give_gradients(list(made.parameters()), builder)
    return made


def find_class(name: str, names: dict[str, Any]) -> type:
    """Return a class by its name, of the loaded module or importable. Raises SpecError.

    The name is dotted, or the linter's: the module, the class and its line, with colons between.
    """
    named = [part for part in name.split(":") if not part.isdigit()]
    if len(named) == 2:
        module, shown = named
        for one in (shown, f"{module}.{shown}"):
            with contextlib.suppress(SpecError):
                return find_class(one, names)
        raise SpecError(f"the class {shown} cannot be found in {module}: pass --inputs")
    parts = named[-1].split(".")
    for start in range(len(parts)):
        found: Any = names.get(parts[start])
        for part in parts[start + 1 :]:
            found = getattr(found, part, None)
        if isinstance(found, type):
            return found
    for end in range(len(parts) - 1, 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except Exception:
            continue  # a shorter prefix may still be a module; the last word is SpecError's
        for part in parts[end:]:
            found = getattr(found, part, None)
        if isinstance(found, type):
            return found
    raise SpecError(f"the class {named[-1]} cannot be found: pass --inputs")


def _kept(builder: Builder, spec: InputSpec) -> Any:
    """Return one of the arguments of a recorded call, which are loaded together."""
    file = spec["call"]["file"]
    if file not in builder.kept:
        builder.kept[file] = arguments_of(spec["call"], builder.names, builder.device)
    arguments = builder.kept[file]
    if spec["name"] not in arguments:
        raise SpecError(f"the recorded call has no argument {spec['name']}")
    return arguments[spec["name"]]


_MAKERS: dict[str, Callable[[Builder, InputSpec], Any]] = {
    "tensor": _tensor,
    "list": _list,
    "items": _items,
    "dict": _dict,
    "value": _value,
    "source": _source,
    "module": _module,
    "parameters": _parameters,
    "optimizer": _optimizer,
    "loader": _loader,
    "callable": _callable,
    "context": lambda builder, spec: AutogradContext(builder),
    "stand-in": _stand_in,
    "device": _device,
    "dtype": lambda builder, spec: torch.float32,
    "generator": lambda builder, spec: torch.Generator(builder.device).manual_seed(SEED),
    "size": lambda builder, spec: torch.Size((builder.n, WIDTH)),
    "instance": _instance,
    KEPT: _kept,
}
