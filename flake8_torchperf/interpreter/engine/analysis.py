"""The state that every evaluation shares: torch's table, the modules read so far, and caches."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from flake8_torchperf.knowledge.conventions import load_conventions
from flake8_torchperf.values.named_types import builtin_name
from flake8_torchperf.values.values import (
    UNKNOWN,
    ClassValue,
    Closure,
    External,
    Function,
    Value,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Container, Iterable

    from flake8_torchperf.knowledge.conventions import Conventions
    from flake8_torchperf.knowledge.table import TorchTable
    from flake8_torchperf.program.origins.comparisons import Asked, Values
    from flake8_torchperf.program.running import Meant
    from flake8_torchperf.program.runs import Run
    from flake8_torchperf.project.module_index import (
        ClassInfo,
        FunctionInfo,
        ModuleMap,
    )
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.torch_compile.compiled_code import CompiledCode
    from flake8_torchperf.values.arguments import Arguments
    from flake8_torchperf.values.cause import Cause

# Expressions evaluated for one function and its callees before the rest counts as Unknown.
STEPS_PER_FUNCTION = 40_000
# How deep expressions may be nested, callees' included, before they count as Unknown. Each level
# takes about six Python frames; flake8 itself uses up to a hundred of the thousand frames allowed.
MAX_EXPRESSION_DEPTH = 110
# How many names of modules may lead to one another before the next counts as Unknown.
MAX_NAMES = 25
# Watches the calls of all functions instead of one.
EVERY_FUNCTION = "*"
# How deep calls are followed into the functions they name. An attribute of a class starts anew, so
# that its value is the same wherever it is asked for, unless so many are asked for within another.
MAX_CALL_DEPTH = 5
MAX_ATTRIBUTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class SeenCall:
    """A call that was seen in a function, whose qualified name is ``source``.

    ``target`` is a function of the project, or one nested in it, whose parameters get the values in
    ``given``; None if the target is unknown. ``into`` is the name of the torch function that
    ``target`` is passed to, "" if it is called directly.
    """

    source: str
    node: ast.AST
    target: Function | Closure | None
    given: dict[str, Value]
    into: str = ""


def _holds_none(loop: ast.AST, module: ModuleMap) -> bool:
    return False


def _is_any_made(owner: ClassInfo) -> bool:
    return True


def _has_any_value(asked: Asked, module: ModuleMap) -> Values:
    return None


def _holds_nothing(asked: ast.Name | ast.Attribute, module: ModuleMap) -> list[Meant | None]:
    return []


def _is_led_to(info: FunctionInfo) -> Iterable[tuple[ModuleMap, Run]]:
    return ()


def _has_none_below(owner: ClassInfo, method: str = "") -> list[ClassInfo]:
    return []


@dataclass(slots=True)
class Stack:
    """The numbers of expressions, module names and attributes whose evaluation is nested now.

    ``cut`` counts the calls so far that were too deep to follow. ``shared`` counts what was learned
    for another function, or taken from what others gave one. ``met`` is the place of the first name
    or attribute, among those whose values are being found, which was asked for again.
    """

    expressions: int = 0
    names: int = 0
    attributes: int = 0
    cut: int = 0
    shared: int = 0
    met: int = sys.maxsize


@dataclass(slots=True)
class Budget:
    """Steps left for the function being interpreted; at zero every expression is Unknown.

    ``opaque_calls`` counts the calls that are not known to work on a batch as on one sample:
    unknown ones, and those that read values or ask for sizes that depend on data. ``plain_calls``
    counts the calls of other modules and functions. ``waits`` counts, from 1, what waited for the
    device or may have, and ``decided`` the values read and the sizes asked for.
    """

    stack: Stack
    steps: int = STEPS_PER_FUNCTION
    opaque_calls: int = 0
    plain_calls: int = 0
    waits: int = 1
    decided: int = 0

    def counts(self) -> tuple[int, int, int, int]:
        """Return all counts; the steps are none."""
        return self.opaque_calls, self.plain_calls, self.waits, self.decided

    def reset(self, counts: tuple[int, int, int, int]) -> None:
        """Set all counts to those of before, for what does not run at this place."""
        self.opaque_calls, self.plain_calls, self.waits, self.decided = counts


@dataclass(slots=True, eq=False)
class Analysis:
    """Shared by all evaluations of one file: nothing in it depends on the place evaluated."""

    table: TorchTable
    project: Project
    constant: Callable[[Analysis, ModuleMap, str], Value]
    called: frozenset[str] = frozenset()
    compiled: CompiledCode | None = None
    stack: Stack = field(default_factory=Stack)
    # those of the functions that were interpreted so far
    budgets: list[Budget] = field(default_factory=list)
    _names: dict[tuple[str, str], Value] = field(default_factory=dict)
    _externals: dict[str, Value] = field(default_factory=dict)
    # names and attributes whose values are being found, which have none meanwhile, in order
    underway: dict[object, int] = field(default_factory=dict)
    # by the name of a `Cache`, which knows the types
    caches: dict[str, dict[Any, Any]] = field(default_factory=dict)
    # parameters as the calls seen so far gave them: function or closure -> name -> value
    observed: dict[object, dict[str, Value]] = field(default_factory=dict)
    # the arguments of calls of unknown values, by their module and line, then by the call
    unclear: dict[tuple[str, int], dict[ast.Call, Arguments]] = field(default_factory=dict)
    # the function whose arguments are recorded for each line, and the arguments that all its calls
    # outside set-up code share
    watched: str = ""
    agreed: dict[object, dict[str, Value]] = field(default_factory=dict)
    # parameters whose function shows no type, as calls in other modules give them
    told: dict[object, dict[str, Value]] = field(default_factory=dict)
    conventions: Conventions = field(default_factory=load_conventions)
    # the causes that are not applied, to measure what they hide
    ignored: frozenset[Cause] = frozenset()
    # the evaluated calls of modules, by identity
    models_called: set[int] = field(default_factory=set)
    # the functions of the project that each evaluated call runs: call, by identity -> key -> them
    callees: dict[int, dict[str, FunctionInfo]] = field(default_factory=dict)
    # the operators that compute on tensors of the device, by identity
    queued: dict[int, ast.AST] = field(default_factory=dict)
    # calls of `step` on an object of a known class, with True if it waits as a gradient scaler's
    # does, False if it does not, and None for a scaler's whose optimizer may be fused
    scaled_steps: dict[ast.AST, bool | None] = field(default_factory=dict)
    # the environments around nested functions, which hold these and are held by them
    enclosing: list[dict[str, Value]] = field(default_factory=list)
    # the calls that are recorded; None if they are not needed
    log: list[SeenCall] | None = None
    # true if a loop of a module contains the loop over steps, directly or in its callees
    is_around_steps: Callable[[ast.AST, ModuleMap], bool] = _holds_none
    # true if code that something runs may make objects of a class
    is_made: Callable[[ClassInfo], bool] = _is_any_made
    # true if each round of a loop of a module itself calls a training step
    calls_step: Callable[[ast.AST, ModuleMap], bool] = _holds_none
    # the literal values that a name or an attribute in a module may have; None if others may be
    values_of: Callable[[Asked, ModuleMap], Values] = _has_any_value
    # what a name or an attribute in a module holds, as its program shows; None for anything else
    objects_of: Callable[[ast.Name | ast.Attribute, ModuleMap], list[Meant | None]] = _holds_nothing
    # the places that run a function, directly or through others, each with its module
    leading: Callable[[FunctionInfo], Iterable[tuple[ModuleMap, Run]]] = _is_led_to
    # the classes below a class that something makes; given a name, those with a method of it
    classes_below: Callable[..., list[ClassInfo]] = _has_none_below

    def given(self, key: object) -> dict[str, Value]:
        """Return the arguments that the calls seen so far gave."""
        given = self.observed.get(key, {})
        self.stack.shared += bool(given)
        return given

    def shared_by_all(self, key: object) -> dict[str, Value] | None:
        """Return the arguments that all calls of a function share, if they are known."""
        shared = self.agreed.get(key)
        self.stack.shared += shared is not None
        return shared

    def watching(self, key: str) -> Analysis:
        """Return an analysis that watches the calls of a function, or of all, apart from this one.

        Both share the values of names and the results of functions, which do not depend on calls.
        """
        observed = {key: dict(given) for key, given in self.observed.items()}
        return replace(self, stack=Stack(), observed=observed, watched=key, agreed={}, unclear={})

    def forget(self) -> None:
        """Clear all results, so that their memory is freed at once despite reference cycles.

        Otherwise the garbage collector has to walk them first.
        """
        self._names.clear()
        self._externals.clear()
        self.caches.clear()
        self.observed.clear()
        self.unclear.clear()
        self.budgets.clear()
        for env in self.enclosing:
            env.clear()
        self.enclosing.clear()
        self.is_around_steps = _holds_none
        self.calls_step = _holds_none
        self.is_made = _is_any_made
        self.values_of = _has_any_value
        self.objects_of = _holds_nothing
        self.leading = _is_led_to
        self.classes_below = _has_none_below

    def begin(self) -> Budget:
        """Return a fresh budget for one function; earlier evaluations have ended or failed."""
        self.stack = Stack()
        self.underway.clear()
        self.budgets.append(Budget(self.stack))
        return self.budgets[-1]

    def least_steps(self) -> int:
        """Return the fewest steps that some function has left."""
        return min([STEPS_PER_FUNCTION, *(budget.steps for budget in self.budgets)])

    def lookup(self, module: ModuleMap, name: str) -> Value:
        """Return the value of a name at the top level of a module."""
        key = (module.name or module.place, name)
        if key in self._names:
            if key in self.underway:
                self.meet(key)
            return self._names[key]
        if self.stack.names >= MAX_NAMES:
            return UNKNOWN
        self._names[key] = UNKNOWN  # a constant defined by itself ends here
        self.stack.names += 1
        self.underway[key] = len(self.underway)
        value = self._lookup(module, name)
        del self.underway[key]
        self.stack.names -= 1
        self._names[key] = value
        return value

    def _lookup(self, module: ModuleMap, name: str) -> Value:
        if name in module.functions:
            info = module.functions[name]
            return Function(info, info.key)
        if name in module.classes:
            found = module.classes[name]
            return ClassValue(found, found.key)
        if name in module.imports:
            return self.external(module.imports[name])
        if name in module.constants or name in module.annotations:
            return self.constant(self, module, name)
        builtin = builtin_name(name)
        if builtin:
            return External(builtin)
        for source in module.stars:
            found_value = self.star(source, name)
            if found_value is not None:
                return found_value
        return UNKNOWN

    def star(self, source: str, name: str) -> Value | None:
        """Return the value that ``from source import *`` binds to ``name``, or None."""
        other = self.project.module(source)
        if other is not None:
            value = self.lookup(other, name)
            return None if value is UNKNOWN else value
        qualified = f"{source}.{name}"
        if source.startswith("torch") and self.known(qualified):
            return External(qualified)
        return None

    def known(self, qualified: str) -> bool:
        """True if this is one of torch's public functions or classes."""
        return self.table.function(qualified) is not None or self.table.klass(qualified) is not None

    def external(self, qualified: str) -> Value:
        """Return the value of an imported dotted name, from its source if the project has it."""
        found = self._externals.get(qualified)
        if found is None:
            # Names that refer to each other in a circle have no value.
            self._externals[qualified] = External(qualified)
            self.underway[qualified] = len(self.underway)
            found = self._externals[qualified] = self._external(qualified)
            del self.underway[qualified]
        elif qualified in self.underway:
            self.meet(qualified)
        return found

    def assume_underway(self, key: object) -> None:
        """Let a name of a module level, or an imported one, have no value for now."""
        self.underway[key] = len(self.underway)
        match key:
            case str():
                self._externals[key] = External(key)
            case (str() as module, str() as name):
                self._names[module, name] = UNKNOWN

    def forget_values(self, but: Container[str]) -> None:
        """Clear the values of names and all facts found so far, but for some caches."""
        self.underway.clear()
        self._names.clear()
        self._externals.clear()
        for name, table in self.caches.items():
            if name not in but:
                table.clear()

    def meet(self, key: object) -> None:
        """Note that a name or attribute whose value is being found is asked for again."""
        self.stack.met = min(self.stack.met, self.underway[key])

    def _external(self, qualified: str) -> Value:
        if self.known(qualified):
            return External(qualified)
        found = self.project.find(qualified)
        if found is None:
            return External(qualified)
        module, rest = found
        if not rest:
            return External(qualified)
        value = self.lookup(module, rest[0])
        for part in rest[1:]:
            match value:
                case ClassValue(info=info) if part in info.methods:
                    method = info.methods[part]
                    value = Function(method, method.key)
                case External(name=name):
                    value = self.external(f"{name}.{part}")
                case _:
                    return UNKNOWN
        if value is UNKNOWN and rest[-1] == "Tensor":
            return External("torch.Tensor")
        return value
