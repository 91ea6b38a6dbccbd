"""In the child: makes objects of the user's classes, constructed or, where that fails, bare.

Constructor inputs are searched for like a function's. A bare object never ran `__init__` and makes
its attributes by name when they are read.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from flake8_torchperf.runtime.confirm.child.builder import Builder, SpecError, give_gradients, seed
from flake8_torchperf.runtime.confirm.child.search import AssignmentSearch, Dimension, Score, chosen
from flake8_torchperf.runtime.confirm.child.traced_call import TooLate, time_limit, traced
from flake8_torchperf.runtime.confirm.specs.from_signatures import choices
from flake8_torchperf.runtime.confirm.specs.input_specs import InputSpec, unique

# Constructing objects may not use up the function's own time.
CONSTRUCTION_SECONDS = 6.0
ONE_CONSTRUCTION_SECONDS = 4.0
CONSTRUCTION_ATTEMPTS = 150
# Marks the classes of objects whose attributes are made on first access.
BARE = "_torchperf_bare"


class Constructions:
    """Remembers how each class was constructed, so that the search runs once."""

    def __init__(self) -> None:
        self._known: dict[type, tuple[list[Dimension], tuple[int, ...]] | None] = {}
        self.problems: dict[str, str] = {}

    def construct(self, wanted: type, builder: Builder) -> Any:
        """Return an object of ``wanted`` made with inputs that worked, or else a bare one."""
        plan = self.plan(wanted, builder)
        if plan is None:
            return bare(wanted, builder)
        return make(wanted, dict(chosen(*plan)), builder)

    def plan(
        self, wanted: type, builder: Builder, callers: Sequence[Mapping[str, InputSpec]] = ()
    ) -> tuple[list[Dimension], tuple[int, ...]] | None:
        """Return the constructor's dimensions and an assignment that works; None if none does.

        ``callers`` are arguments that the project's own calls of the constructor pass.
        """
        if wanted not in self._known:
            self._known[wanted] = None  # a class that needs one of itself ends here
            self._known[wanted] = self._find(wanted, builder, callers)
        return self._known[wanted]

    def _find(
        self, wanted: type, builder: Builder, callers: Sequence[Mapping[str, InputSpec]]
    ) -> tuple[list[Dimension], tuple[int, ...]] | None:
        wanted = concrete(wanted)
        try:
            options = choices(wanted, {})
        except (ValueError, TypeError) as error:
            self.problems[wanted.__name__] = f"its constructor has no signature ({error})"
            return None
        dimensions = [
            Dimension(name, unique([*candidates, *(c[name] for c in callers if name in c)]))
            for name, candidates in options.items()
            if name != options.variadic
        ]
        starts = [
            tuple(one.candidates.index(c[one.name]) if one.name in c else 0 for one in dimensions)
            for c in callers
        ]
        path = _file_of(wanted)
        if issubclass(wanted, torch.optim.Optimizer):
            importlib.import_module("torch._dynamo")  # a limit within would leave half of it

        def evaluate(assignment: tuple[int, ...]) -> Score:
            lines: Counter[int] = Counter()
            try:
                with time_limit(ONE_CONSTRUCTION_SECONDS), traced(path, lines):
                    make(wanted, dict(chosen(dimensions, assignment)), builder)
            except (Exception, SystemExit, TooLate) as error:
                self.problems[wanted.__name__] = (
                    f"making it takes more than {ONE_CONSTRUCTION_SECONDS:.3g} s"
                    if isinstance(error, TooLate)
                    else f"{type(error).__name__}: {error}"
                )
                return (0, False, 0, len(lines))
            return (1, True, 0, 0)

        search = AssignmentSearch(
            dimensions,
            evaluate,
            lambda score: score[1],
            CONSTRUCTION_SECONDS,
            CONSTRUCTION_ATTEMPTS,
            starts=starts,
        )
        best = search.run()
        return (dimensions, best) if search.seen[best][1] else None


def _file_of(wanted: type) -> str:
    """Return the file that a class was read from; "" if there is none.

    A class that was extracted, because its module does not import, has no module.
    """
    if getattr(sys.modules.get(wanted.__module__), "__file__", None):
        return inspect.getsourcefile(wanted) or ""
    code = getattr(inspect.unwrap(wanted.__init__), "__code__", None)  # type: ignore[misc]
    return str(getattr(code, "co_filename", ""))


def make(wanted: type, specs: dict[str, Any], builder: Builder) -> Any:
    """Call the constructor with the objects of the specs. Raises what it raises."""
    named = {name: builder.build(spec) for name, spec in specs.items() if spec["kind"] != "default"}
    seed(0)
    made = concrete(wanted)(**named)
    if isinstance(made, torch.nn.Module):
        made.to(builder.device, builder.dtype)
        give_gradients(list(made.parameters()), builder)
    return made


def concrete(wanted: type) -> type:
    """Return the class itself, or for an abstract class a subclass that can be made."""
    if not inspect.isabstract(wanted):
        return wanted
    made: Any = type(wanted)(wanted.__name__, (wanted,), {})
    made.__abstractmethods__ = frozenset()
    return made  # type: ignore[no-any-return]


def bare(wanted: type, builder: Builder) -> Any:
    """Return an object whose `__init__` never ran. Raises SpecError where the class allows none."""

    def missing(self: Any, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if isinstance(self, torch.nn.Module):
            for table in ("_parameters", "_buffers", "_modules"):
                found = self.__dict__.get(table, {})
                if name in found:
                    return found[name]
        made = builder.attribute(name)
        self.__dict__[name] = made
        return made

    try:
        made_class: Any = type(wanted)(wanted.__name__, (wanted,), {"__getattr__": missing})
        made_class.__abstractmethods__ = frozenset()
        setattr(made_class, BARE, True)
        made = object.__new__(made_class)
    except TypeError as error:
        raise SpecError(f"no object of {wanted.__name__} can be made: {error}") from error
    if isinstance(made, torch.nn.Module):
        torch.nn.Module.__init__(made)
    return made
