"""The frequency of a function, by its own text, its class's protocol and the conventions.

The calls that lead to it are judged in `propagation`, which also orders all the evidence.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.evaluations import runs_without_gradients
from flake8_torchperf.idioms.loop_kinds import holds_steps, takes_training_step
from flake8_torchperf.idioms.module_roles import is_test_file, row_of_module
from flake8_torchperf.judgement.frequency.protocols import root_of
from flake8_torchperf.judgement.heat import Heat, Level
from flake8_torchperf.knowledge.names import names_of
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.judgement.frequency.protocols import Lineage
    from flake8_torchperf.knowledge.conventions import Convention, Conventions
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap

MODULE_HEAT = Heat(Level.COLD, Cause.MODULE_LEVEL)
# Calls that compile the function they decorate.
COMPILING_DECORATORS = ("torch.compile", "torch.jit.script")
# Causes that the callers of a function do not change, and that make its loops cold too.
SET_UP = frozenset((
    Cause.SET_UP_ROOT, Cause.TEST, Cause.DATA_WORKER, Cause.CONVERSION, Cause.REGISTERED,
    Cause.RESULT_KEPT, Cause.CONVENTION, Cause.SET_UP_CALLS, Cause.SELDOM_CALLS, Cause.EVALUATION,
    Cause.PICKLING,
))  # fmt: skip
# With these causes (a setting, a test, a tracer, a dead class), not even loops over elements or
# steps are reported.
FINAL = frozenset((Cause.NAMED_COLD, Cause.TEST, Cause.REGISTERED, Cause.NEVER_MADE))
# Causes of functions whose own text does not show how often they run.
UNDECIDED = frozenset((Cause.NOTHING, Cause.GIVEN_TENSORS))


def _unknown() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class NameEvidence:
    """The evidence that names give: the user's globs, and the table of conventions.

    ``ignored`` holds causes that are not applied, to measure what they hide. ``trains`` returns
    True if the package takes training steps.
    """

    conventions: Conventions
    hot: tuple[str, ...] = ()
    cold: tuple[str, ...] = ()
    ignored: frozenset[Cause] = frozenset()
    trains: Callable[[], bool] = _unknown
    _of_modules: dict[str, Convention | None] = field(default_factory=dict)

    def of_module(self, module: ModuleMap) -> Convention | None:
        """Return the convention for all functions of a module, by its name or by its imports."""
        if module.place not in self._of_modules:
            by_import = self.conventions.has_rows("import")  # only a team's own
            imported = (*module.imports.values(), module.name) if by_import else ()
            self._of_modules[module.place] = row_of_module(
                module, self.conventions
            ) or self.conventions.first("import", imported)
        return self._of_modules[module.place]


def named_in(info: FunctionInfo, globs: tuple[str, ...]) -> bool:
    """True if the settings name a function: ``execute_model``, ``Engine.decode_*``.

    A glob with a dot matches the qualified name: the class, a dot, the method.
    """
    return any(matches_glob(info.name, info.qualname, glob) for glob in globs)


def matches_glob(name: str, qualname: str, glob: str) -> bool:
    """True if a glob of the settings matches a function."""
    return fnmatchcase(qualname if "." in glob else name, glob)


def own_heat(
    info: FunctionInfo,
    names: NameEvidence,
    lineage: Callable[[ClassInfo], Lineage],
    given_tensors: Callable[[], bool],
) -> Heat:
    """Return the heat of a function without its callers, by the strongest evidence available.

    ``given_tensors`` is called last, because it has to read everything that the parameters declare.
    """
    if named_in(info, names.hot):
        return Heat(Level.STEP, Cause.NAMED_HOT, info.name, around=Level.STEP)
    if named_in(info, names.cold):
        return Heat(Level.COLD, Cause.NAMED_COLD, info.name, loops=False)
    if any(one in COMPILING_DECORATORS for one in info.decorators):
        return Heat(Level.STEP, Cause.COMPILED, info.name, around=Level.STEP)
    root = root_of(info, lineage)
    root = None if root in names.ignored else root
    if root is Cause.TEST:
        return Heat(Level.COLD, root, info.name, loops=False)
    if takes_training_step(info):
        return Heat(Level.STEP, Cause.TRAINING_STEP, info.name, around=Level.STEP)
    if Cause.OUTSIDE_STEPS not in names.ignored and holds_steps(
        info, own_model=root is not Cause.STEP_ROOT
    ):
        return Heat(Level.COLD, Cause.OUTSIDE_STEPS, info.name, loops=False)
    if root is Cause.STEP_ROOT and not is_test_file(info.module):
        return Heat(Level.STEP, root, info.name, around=Level.STEP)
    if root is not None:
        return Heat(Level.COLD, root, info.name, loops=False)
    if evaluates(info, names):
        return Heat(Level.COLD, Cause.EVALUATION, info.name, loops=False)
    if Cause.PICKLING not in names.ignored and _pickles(info):
        return Heat(Level.COLD, Cause.PICKLING, info.name, loops=False)
    return _by_convention(info, names) or _by_default(info, names, given_tensors)


def _pickles(info: FunctionInfo) -> bool:
    """True if a function pickles objects or reads pickled ones."""
    if info.nodes.words().isdisjoint(_pickling_words()):
        return False
    known = names_of("pickling")
    return any(info.module.qualify(call.func) in known for call in info.nodes.of(ast.Call))


@cache
def _pickling_words() -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in names_of("pickling"))


def evaluates(info: FunctionInfo, names: NameEvidence) -> bool:
    """True if a function of a program that trains runs a model in a loop, without gradients."""
    if Cause.EVALUATION in names.ignored or not runs_without_gradients(info):
        return False
    return names.trains()


def _by_convention(info: FunctionInfo, names: NameEvidence) -> Heat | None:
    """Return the heat that a convention gives a function by its name, decorators or module."""
    row = _speaking_row(info, names)
    if row is None:
        return None
    if row.effect == "hot":
        if is_test_file(info.module):
            return None
        return Heat(Level.STEP, Cause.CONVENTION, row.id, around=Level.STEP)
    around = Level.HOT if row.effect == "cold-outside-loops" else Level.COLD
    loops = row.effect == "cold-outside-loops"
    return Heat(Level.COLD, Cause.CONVENTION, row.id, loops=loops, around=around)


def _speaking_row(info: FunctionInfo, names: NameEvidence) -> Convention | None:
    """Return the convention that applies to a function; the most specific name decides."""
    conventions = names.conventions
    found = conventions.row("function", info.name)
    if found is None:
        found = conventions.first("decorator", _last_parts(info.decorators))
    if found is None and info.owner is not None:
        found = conventions.first("class", (info.owner.name, *_last_parts(info.owner.bases)))
    return found or names.of_module(info.module)


def _last_parts(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.rpartition(".")[2] for name in names)


def _by_default(info: FunctionInfo, names: NameEvidence, given_tensors: Callable[[], bool]) -> Heat:
    if Cause.NOTHING in names.ignored:
        return Heat(Level.HOT, Cause.GIVEN_TENSORS, info.name)
    if not is_test_file(info.module) and given_tensors():
        return Heat(Level.HOT, Cause.GIVEN_TENSORS, info.name)
    return Heat(Level.COLD, Cause.NOTHING, info.name)
