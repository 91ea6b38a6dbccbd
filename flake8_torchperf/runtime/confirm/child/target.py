"""In the child: makes the function under examination callable with inputs of any size.

`Subject` has the dimensions to search, and prepares calls.
"""

from __future__ import annotations

import copy
import functools
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.child.builder import Builder, seed
from flake8_torchperf.runtime.confirm.child.load import ConfirmError, Loaded, module_code, one_line
from flake8_torchperf.runtime.confirm.child.made_objects import Constructions, bare, make
from flake8_torchperf.runtime.confirm.child.search import Assignment, Dimension
from flake8_torchperf.runtime.confirm.child.traced_call import finish, gradients
from flake8_torchperf.runtime.confirm.specs.from_signatures import Choices, choices
from flake8_torchperf.runtime.confirm.specs.input_specs import (
    HOST,
    KEPT,
    PLACE,
    InputSpec,
    kept,
    simple,
)

HOW = "(called)"
OBJECT = "(self)"
GRADIENTS = "(autograd)"
OWNER = "self."
STOOD_FOR: dict[type, type] = {
    torch.nn.Module: torch.nn.Linear,
    torch.optim.Optimizer: torch.optim.SGD,
}
# Far more than the tensors of one parameter.
SEEDS_PER_PARAMETER = 1_000_003


class SubjectError(ConfirmError):
    """The function cannot be found or called; ``str`` says why in one line."""


@dataclass(frozen=True)
class Ready:
    """A call whose inputs are made: ``run`` makes the call once; ``given`` holds its arguments."""

    run: Callable[[], Any]
    given: dict[str, Any] = field(default_factory=dict)


class Subject:
    """A function, method or module body. ``dimensions`` are the choices of the search."""

    def __init__(self, job: dict[str, Any], loaded: Loaded) -> None:
        self.job, self.loaded = job, loaded
        self.objects = Constructions()
        self.guessed: tuple[str, ...] = ()
        self.without_init = ""
        self.dimensions: list[Dimension] = []
        # Assignments to try first: recorded calls, and what callers in the project pass.
        self.starts: list[Assignment] = []
        self.recorded: list[Assignment] = []
        self._last: tuple[str, Any] = ("", None)
        self._harness = _harness(job["harness"]) if job["harness"] else None
        self._owner: type | None = None
        self._code: types.CodeType | None = None
        self._options = Choices()
        if job["function"] == "<module>":
            self._code = module_code(job["path"], job.get("text"))
            return
        self._resolve(job["function"].partition(".<locals>")[0])
        self._choose(job)

    def _resolve(self, qualname: str) -> None:
        *owners, name = qualname.split(".")
        holder: Any = None
        for part in owners:
            holder = self.loaded.names.get(part) if holder is None else getattr(holder, part, None)
        if not owners:
            self._static: Any = self.loaded.names.get(name)
        elif isinstance(holder, type):
            name = _mangled(holder, name)
            self._owner = _usable(holder, name, self.loaded.names)
            self._static = inspect.getattr_static(holder, name, None)
        else:
            self._static = None
        if self._static is None:
            raise SubjectError(f"{qualname} is not there once the module is loaded")
        self._name = name

    def _choose(self, job: dict[str, Any]) -> None:
        function = self._function(unwrapped=False)
        try:
            options = choices(function, job["params"])
        except (ValueError, TypeError) as error:
            raise SubjectError(f"{job['function']} has no signature: {error}") from error
        given = dict(job["given"])
        first = next(iter(options), "") if self._bound else ""
        if first:
            options.pop(first)
            if first in given:
                given["self"] = given.pop(first)
        self._given_self = given.pop("self", None)
        fixed = {name: {"kind": "source", "text": text} for name, text in given.items()}
        for name in options:
            if name in fixed:
                options[name] = [fixed[name]]
            elif self._harness is not None and name in self._harness_names():
                options[name] = [simple("harness")]
        self._options = options
        self.guessed = tuple(name for name in options.guessed if len(options.get(name, ())) > 1)
        self.dimensions = [Dimension(name, made) for name, made in options.items()]
        self.dimensions.append(Dimension(GRADIENTS, [simple("default"), simple("no_grad")]))
        if self.job["device"] == "cuda":
            self.dimensions.append(Dimension(PLACE, [simple("default"), simple(HOST)]))
        if self._function(unwrapped=True) is not function:
            self.dimensions.append(Dimension(HOW, [simple("default"), simple("unwrapped")]))
        if first and job.get("kept"):
            self.dimensions.append(Dimension(OBJECT, [simple("default")]))
        self._plan_owner()
        self.recorded = [self._start(self._given_in(one, first)) for one in job.get("kept", ())]
        self.starts = [*self.recorded, *(self._start(one) for one in self._callers)]

    def _given_in(self, call: dict[str, Any], first: str) -> dict[str, InputSpec]:
        """Return the arguments of a recorded call by the names of dimensions."""
        given = {name: kept(call, name) for name in self._options}
        if first:
            given[OBJECT] = kept(call, first)
        if not call["autograd"]:
            given[GRADIENTS] = simple("no_grad")
        return given

    @property
    def _callers(self) -> list[dict[str, InputSpec]]:
        """The arguments that callers in the project pass, by the names of dimensions."""
        return list(self.job.get("callers", ()))

    def _start(self, passed: dict[str, InputSpec]) -> Assignment:
        """Return the assignment of what one caller passes; candidates that are new are appended."""
        picked: list[int] = []
        for index, one in enumerate(self.dimensions):
            spec = passed.get(one.name)
            if spec is None:
                picked.append(one.start)
                continue
            if spec not in one.candidates:
                one = replace(one, candidates=[*one.candidates, spec])
                self.dimensions[index] = one
            picked.append(one.candidates.index(spec))
        return tuple(picked)

    def _plan_owner(self) -> None:
        """Append the constructor's own choices last: the method's arguments matter more."""
        if self._owner is None or not self._bound or self._given_self is not None:
            return
        if self._harness is not None and "self" in self._harness_names():
            return
        called = [
            {name.removeprefix(OWNER): spec for name, spec in one.items() if name.startswith(OWNER)}
            for one in self._callers
        ]
        builder = self._builder(int(self.job["sizes"][0]))
        plan = self.objects.plan(self._owner, builder, called)
        if plan is None:
            name = self._owner.__name__
            self.without_init = f"{name}: {self.objects.problems.get(name, 'no inputs for it')}"
            return
        for dimension, start in zip(*plan, strict=True):
            self.dimensions.append(Dimension(OWNER + dimension.name, dimension.candidates, start))

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults of the function's parameters, and those of its object's constructor."""
        if self._code is not None:
            return {}
        found = _defaults_of(self._function(unwrapped=False))
        if any(one.name.startswith(OWNER) for one in self.dimensions) and self._owner is not None:
            found.update({OWNER + n: one for n, one in _defaults_of(self._owner).items()})
        return found

    @property
    def guessed_object(self) -> str:
        """The class whose object was made with guesses, "" where nothing about it was guessed."""
        planned = any(dimension.name.startswith(OWNER) for dimension in self.dimensions)
        return self._owner.__name__ if self._owner and (planned or self.without_init) else ""

    @property
    def _bound(self) -> bool:
        """True if the first parameter is the object."""
        return self._owner is not None and not isinstance(self._static, (staticmethod, classmethod))

    def _function(self, unwrapped: bool) -> Callable[..., Any]:
        found: Any = self._static
        if isinstance(found, (staticmethod, classmethod)):
            found = found.__get__(None, self._owner)
        elif isinstance(found, property):
            found = found.fget
        elif isinstance(found, functools.cached_property):
            found = found.func
        found = getattr(found, "wrapped", found)  # torch.distributions' lazy_property
        if unwrapped:
            found = inspect.unwrap(found)
        if not callable(found):
            raise SubjectError(f"{self.job['function']} cannot be called once it is loaded")
        return found  # type: ignore[no-any-return]

    def _builder(self, n: int, on_host: bool = False) -> Builder:
        device = "cpu" if on_host else self.job["device"]
        return Builder(n, device, self.loaded.names, self.objects.construct)

    def _harness_names(self) -> set[str]:
        made = self._harness(int(self.job["sizes"][0])) if self._harness is not None else {}
        return set(made)

    def prepare(self, specs: dict[str, InputSpec], n: int) -> Callable[[], None]:
        """Make the inputs at size ``n`` and return the call, which makes no further inputs.

        Raises SpecError and whatever making the inputs raises.
        """
        return self.ready(specs, self._builder(n, specs.get(PLACE) == simple(HOST))).run

    def ready(self, specs: dict[str, InputSpec], builder: Builder) -> Ready:
        """Make the inputs with a builder of the caller's; the result holds the call and its inputs.

        Raises SpecError and whatever making the inputs raises.
        """
        if self._code is not None:
            names = {**self._module_names()}
            code = self._code
            return Ready(lambda: exec(code, names), {"module": names})
        by_hand = self._harness(builder.n) if self._harness is not None else {}
        positional, named = self._arguments(specs, builder, by_hand)
        if self._bound:
            positional.insert(0, self._self(specs, builder, by_hand))
        unwrapped = specs.get(HOW, {})["kind"] == "unwrapped" if HOW in specs else False
        function = self._function(unwrapped)
        autograd = specs[GRADIENTS]["kind"] == "default"

        def call() -> Any:
            seed(0)
            with gradients(autograd):
                return finish(function(*positional, **named), self._call_inner(builder))

        return Ready(call, {"arguments": positional, **named})

    def _call_inner(self, builder: Builder) -> Callable[[Callable[..., Any]], Any] | None:
        """Return a function that calls what the outer one returned; None if it is not nested."""
        if "<locals>" not in self.job["function"]:
            return None

        def call(function: Callable[..., Any]) -> Any:
            options = choices(function, self.job["inner"])
            picked = {name: made[0] for name, made in options.items() if name != options.variadic}
            named = {k: builder.build(r) for k, r in picked.items() if r["kind"] != "default"}
            return function(**named)

        return call

    def _arguments(
        self, specs: dict[str, InputSpec], builder: Builder, by_hand: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        signature = inspect.signature(self._function(unwrapped=False))
        for name, parameter in signature.parameters.items():
            if name not in self._options:
                continue
            spec = specs[name]
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                made = by_hand[name] if name in by_hand else self._several(spec, builder)
                positional += list(made)
                continue
            in_order = parameter.kind is inspect.Parameter.POSITIONAL_ONLY or (
                bool(self._options.variadic)
                and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
            )
            if spec["kind"] == "default":
                if in_order:
                    positional.append(parameter.default)
                continue
            # Inputs that do not grow with n get the same data at every size.
            builder.made = SEEDS_PER_PARAMETER * (1 + list(self._options).index(name))
            value = by_hand[name] if name in by_hand else builder.build(spec)
            if in_order:
                positional.append(value)
            else:
                named[name] = value
        return positional, named

    def _several(self, spec: InputSpec, builder: Builder) -> list[Any]:
        """Return the arguments for ``*args``: a list's items, or one object of another spec."""
        made = builder.build(spec)
        return list(made) if spec["kind"] in ("list", "items", "source", KEPT) else [made]

    def _self(self, specs: dict[str, InputSpec], builder: Builder, by_hand: dict[str, Any]) -> Any:
        if "self" in by_hand:
            return by_hand["self"]
        if OBJECT in specs and specs[OBJECT]["kind"] == KEPT:
            return builder.build(specs[OBJECT])
        if self._given_self is not None:
            return builder.build({"kind": "source", "text": self._given_self})
        if self._owner is None:
            raise SubjectError(f"{self.job['function']} has no class")
        if self.without_init:
            return bare(self._owner, builder)
        own = {k.removeprefix(OWNER): r for k, r in specs.items() if k.startswith(OWNER)}
        if type(builder) is not Builder or not issubclass(self._owner, torch.nn.Module):
            return make(self._owner, own, builder)
        # The search makes the same module again and again: a copy is made sooner than a large one.
        key = repr((own, builder.n, builder.device))
        if key != self._last[0]:
            self._last = (key, make(self._owner, own, builder))
        try:
            return copy.deepcopy(self._last[1])
        except Exception:  # an object may refuse to be copied in any way
            return make(self._owner, own, builder)

    def _module_names(self) -> dict[str, Any]:
        return {
            "__name__": self.job["module"] or "_torchperf_module",
            "__package__": self.job["module"].rpartition(".")[0],
            "__file__": self.job["path"],
        }


def _defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    return {
        name: one.default
        for name, one in inspect.signature(function).parameters.items()
        if one.default is not inspect.Parameter.empty
    }


def _mangled(owner: type, name: str) -> str:
    """Return a method's name as the class holds it, with Python's mangling of ``__private``."""
    private = name.startswith("__") and not name.endswith("__")
    return f"_{owner.__name__.lstrip('_')}{name}" if private else name


def _usable(owner: type, method: str, names: dict[str, Any]) -> type:
    """Return the class, or for an abstract one a subclass that has the same method."""
    if owner in STOOD_FOR:  # bases without a parameter of their own
        return STOOD_FOR[owner]
    unfinished = [
        name
        for name in dir(owner)
        if inspect.isfunction(member := inspect.getattr_static(owner, name, None))
        and "NotImplementedError" in member.__code__.co_names
    ]
    if not unfinished and not inspect.isabstract(owner):
        return owner
    static = inspect.getattr_static(owner, method, None)
    for other in names.values():
        if not isinstance(other, type) or not issubclass(other, owner) or other is owner:
            continue
        inherits = inspect.getattr_static(other, method, None) is static
        finished = all(getattr(owner, n) is not getattr(other, n, None) for n in unfinished)
        if inherits and finished and not inspect.isabstract(other):
            return other
    return owner


def _harness(path: str) -> Callable[[int], dict[str, Any]]:
    """Return the user's ``inputs(n)``. Raises SubjectError where the file does not define one."""
    names: dict[str, Any] = {"__name__": "_torchperf_harness", "__file__": path}
    try:
        with open(path, "rb") as file:
            exec(compile(file.read(), path, "exec"), names)
    except Exception as error:
        raise SubjectError(f"the harness {path} raised {one_line(error)}") from error
    function = names.get("inputs")
    if not callable(function):
        raise SubjectError(f"the harness {path} defines no function inputs(n)")

    def inputs(n: int) -> dict[str, Any]:
        try:
            made = function(n)
        except Exception as error:
            raise SubjectError(f"inputs({n}) in {path} raised {one_line(error)}") from error
        if not isinstance(made, dict):
            raise SubjectError(f"inputs(n) in {path} must return a dict of parameters by name")
        return made

    return inputs
