"""The heat of a module's functions: from their own text, and from the calls that lead to them."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.evaluations import goes_over_examples, runs_model_once
from flake8_torchperf.idioms.loop_kinds import (
    STATEMENTS,
    STEPPING,
    around_steps,
    direct,
    gives_back,
    goes_backward,
    may_step,
    step_loops,
    takes_step,
    takes_training_step,
)
from flake8_torchperf.idioms.step_methods import step_methods
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.interpreter.events.option_tests import Asker, is_never_taken
from flake8_torchperf.interpreter.inference.parameters import declared_parameters, given_tensors
from flake8_torchperf.interpreter.stated_types.class_hierarchy import (
    find_method,
    lineage,
    torch_kind,
)
from flake8_torchperf.judgement.frequency.call_graph import Calls
from flake8_torchperf.judgement.frequency.own_heat import UNDECIDED, evaluates, own_heat
from flake8_torchperf.judgement.frequency.propagation import CalledHeats
from flake8_torchperf.judgement.frequency.protocols import Lineage
from flake8_torchperf.judgement.frequency.requests import Requests, rate_at, request_heat
from flake8_torchperf.judgement.heat import SAID, Heat, Level
from flake8_torchperf.program.given import UNCALLING_BASES
from flake8_torchperf.program.origins.comparisons import parts
from flake8_torchperf.program.running import Program
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo
from flake8_torchperf.syntax.names import dotted_name, is_name, named_parameters
from flake8_torchperf.syntax.traversal import walk
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.environments import path_of
from flake8_torchperf.values.values import Function, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.call_graph import CallSite
    from flake8_torchperf.judgement.frequency.own_heat import NameEvidence
    from flake8_torchperf.knowledge.conventions import Conventions
    from flake8_torchperf.project.module_index import ModuleMap


# Causes of methods that hold even if nothing makes an object of their class.
SAID_OR_TEST = SAID | {Cause.TEST}
# Causes that no server changes.
SERVES_NOBODY = SAID_OR_TEST | {Cause.TRAINING_STEP, Cause.REGISTERED, Cause.RESULT_KEPT}
# Expressions of which the program tells the objects.
HOLDING_OBJECTS = (ast.Name, ast.Attribute)
LINEAGES: Cache[str, Lineage] = Cache("lineages for heat")


# Names that objects of other libraries have as well: modules, optimizers and containers.
SHARED = frozenset((*dir(dict), *dir(list), *dir(set), *STEPPING, "train", "eval", "forward"))


class FunctionHeats:
    """Computes and caches how often functions run."""

    def __init__(self, analysis: Analysis, names: NameEvidence) -> None:
        self._analysis = analysis
        self._names = names
        self.program = Program(analysis.project)
        self._requests = Requests(analysis, self.program)
        self._own: dict[str, Heat] = {}
        self._calls: dict[str, Calls] = {}
        self._called: dict[str, CalledHeats] = {}
        self._around: dict[ast.AST, bool] = {}
        self._warmed: dict[str, Heat] = {}
        self._off: dict[CallSite, bool] = {}
        # The loops of a function, by identity: those over steps, and those of them in which it
        # calls training steps. By its node, because a module may be read twice.
        self._stepping: dict[ast.AST, frozenset[int]] = {}
        self._over_steps: dict[ast.AST, frozenset[int]] = {}
        self._over_examples: dict[ast.AST, frozenset[int]] = {}
        self._steps: dict[ast.AST, bool] = {}
        analysis.is_around_steps = self.is_around_steps
        analysis.calls_step = self.calls_step
        analysis.is_made = self.program.is_made
        analysis.values_of = self.program.values_of
        analysis.objects_of = self.program.objects_of
        analysis.leading = self.program.leading
        analysis.classes_below = self.program.classes_below

    @property
    def conventions(self) -> Conventions:
        """The table of conventions."""
        return self._names.conventions

    def forget(self) -> None:
        """Drop the references back to this object, so that it is freed without a collection."""
        for called in self._called.values():
            called.forget()
        for table in (self._own, self._calls, self._called, self._around, self._warmed, self._off,
                      self._stepping, self._over_steps, self._over_examples,
                      self._steps):  # fmt: skip
            table.clear()
        self.program.forget()

    def own(self, info: FunctionInfo) -> Heat:
        """Return the heat of a function by its name, its decorators and its parameters."""
        found = self._own.get(info.key)
        if found is None:
            given = partial(given_tensors, info, self._analysis)
            found = own_heat(info, self._names, self._lineage, given)
            if found.cause is Cause.EVALUATION and self.program.only_evaluates(info):
                names = replace(self._names, ignored=self._names.ignored | {Cause.EVALUATION})
                found = own_heat(info, names, self._lineage, given)
            if found.cause not in SERVES_NOBODY and self._requests.are_answered_by(info):
                found = request_heat(info)
            if found.cause in UNDECIDED and self._loops_over_training_steps(info):
                found = Heat(Level.COLD, Cause.OUTSIDE_STEPS, info.name, loops=False)
            if self._is_never_run(info, found):
                found = Heat(Level.COLD, Cause.NEVER_MADE, info.name, loops=False)
            self._own[info.key] = found
        return found

    def evaluates(self, info: FunctionInfo) -> bool:
        """True if a function runs a model in a loop without gradients, where a program trains."""
        if not evaluates(info, self._names):
            return False
        return not self.program.only_evaluates(info)

    def loops_over_examples(self, info: FunctionInfo) -> frozenset[int]:
        """Return the loops of a function that call one which runs a model for each example.

        None in a program that trains, where they are evaluations.
        """
        known = self._over_examples.get(info.node)
        if known is None:
            loops = info.nodes.of_any(*STATEMENTS) if goes_over_examples(info) else ()
            known = frozenset(
                id(loop)
                for loop in loops
                if any(runs_model_once(one) for _, one in self._called_in(loop, info.module))
            )
            if known and not self.program.only_evaluates(info):
                known = frozenset()
            self._over_examples[info.node] = known
        return known

    def _is_never_run(self, info: FunctionInfo, own: Heat) -> bool:
        """True for a method of a class that nothing makes, unless the settings name the method."""
        if info.owner is None or Cause.NEVER_MADE in self._names.ignored:
            return False
        return own.cause not in SAID_OR_TEST and not self.program.is_made(info.owner)

    def step_loops(self, info: FunctionInfo) -> frozenset[int]:
        """Return the loops over steps of a function, by identity; a round may call the step."""
        known = self._stepping.get(info.node)
        if known is None:
            known = step_loops(info) | self._loops_over_training_steps(info) | self._searches(info)
            known |= self.loops_over_examples(info) | _passing_on(info)
            known = self._stepping[info.node] = known - self._scheduled(info)
        return known

    def _scheduled(self, info: FunctionInfo) -> frozenset[int]:
        """Return the loops of a function around the steps in which a schedule steps as well."""
        return frozenset(
            id(loop)
            for loop in info.nodes.of_any(*STATEMENTS)
            if takes_step(loop) and self.is_around_steps(loop, info.module)
        )

    def _searches(self, info: FunctionInfo) -> frozenset[int]:
        """Return the loops of a function that search or sample by a function which runs a model."""
        return frozenset(
            id(loop)
            for loop in info.nodes.of_any(*STATEMENTS)
            if any(
                self.own(one).cause is Cause.OUTSIDE_STEPS and self._is_searched(loop, call, one)
                for call, one in self._called_in(loop, info.module)
            )
        )

    def _loops_over_training_steps(self, info: FunctionInfo) -> frozenset[int]:
        """Return the loops in a function that call a function which is a training step."""
        known = self._over_steps.get(info.node)
        if known is None:
            loops = info.nodes.of_any(*STATEMENTS)
            known = frozenset(
                id(loop)
                for loop in (loops if self._names.trains() else ())
                if self.calls_step(loop, info.module)
            )
            self._over_steps[info.node] = known
        return known

    def rate_at(self, site: CallSite) -> str:
        """Return the rate of a call in a step, in words of its own: "per request", else ""."""
        above = "" if site.caller is None or site.loops else self.called(site.caller).rate
        return rate_at(site, above)

    def repeats(self, site: CallSite) -> bool:
        """True if a loop repeats a call; a loop over epochs, around the steps, does not count."""
        if site.caller is None:
            return bool(site.loops)
        module = site.caller.module
        return any(not self.is_around_steps(loop, module) for loop in site.loops)

    def repeats_steps(self, site: CallSite) -> bool:
        """True if each round of a loop around a call is a step, or calls one.

        A round of a loop around the steps is none, though the schedule steps in it.
        """
        if site.caller is None:
            return site.steps
        module = site.caller.module
        if site.steps:
            steps = (loop for loop in site.loops if takes_step(loop))
            return not all(self.is_around_steps(loop, module) for loop in steps)
        return self._names.trains() and any(self.calls_step(loop, module) for loop in site.loops)

    def calls_step(self, loop: ast.AST, module: ModuleMap) -> bool:
        """True if each round of a loop itself calls a function which is a training step."""
        known = self._steps.get(loop)
        if known is None:
            called = self._functions_in(direct(loop), module)
            known = any(takes_training_step(one) for _, one in called)
            known = self._steps[loop] = known or self._calls_named_step(loop, module)
        return known

    def _calls_named_step(self, loop: ast.AST, module: ModuleMap) -> bool:
        """True if each round calls a method that takes training steps, of an object of any class.

        What makes an object by a name that is only known at run time shows no class.
        """
        return any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in self._step_names
            and self.function_called(node.func, module) is None
            for node in direct(loop)
        )

    @cached_property
    def _step_names(self) -> frozenset[str]:
        """The names of methods of the project that take a training step."""
        names = step_methods(self._analysis.project) - SHARED
        return frozenset(one for one in names if self._analysis.table.method(one) is None)

    def nested(self, info: FunctionInfo) -> Heat:
        """Return the heat of a nested function, from its own text alone."""
        declared = declared_parameters(info, self._analysis).values()
        given = any(isinstance(value, Tensor) for value in declared)
        return own_heat(info, self._names, self._lineage, lambda: given)

    def _lineage(self, owner: ClassInfo) -> Lineage:
        return LINEAGES.kept(self._analysis, owner.key, lambda: self._read_lineage(owner))

    def _read_lineage(self, owner: ClassInfo) -> Lineage:
        names: set[str] = set()
        whole = True
        for one in lineage(owner, self._analysis):
            if isinstance(one, str):
                last = one.rpartition(".")[2]
                known = last in UNCALLING_BASES or self._analysis.table.klass(one) is not None
                whole = whole and known
                names.add(last)
            else:
                names.add(one.name)
        return Lineage(self._kind(owner), frozenset(names), whole)

    def _kind(self, owner: ClassInfo) -> str:
        """Return the kind of a class in torch, or that of data sets if a loader is given it."""
        found = torch_kind(owner, self._analysis)
        item = owner.methods.get("__getitem__")
        if found or item is None or "__len__" not in owner.methods:
            return found
        return "dataset" if self.program.is_loaded(item) else ""

    def calls(self, module: ModuleMap) -> Calls:
        """Return the calls in a module."""
        if module.name not in self._calls:
            self._calls[module.name] = Calls(module, self.program)
        return self._calls[module.name]

    def called(self, info: FunctionInfo) -> Heat:
        """Return the heat of a function by its text and by the calls that lead to it."""
        warmed = self._warmed.get(info.key)
        return self.of_module(info.module).of(info) if warmed is None else warmed

    def warm(self, info: FunctionInfo, heat: Heat) -> None:
        """Store the heat that calls in the rest of the package give a function."""
        self._warmed[info.key] = heat

    def of_module(self, module: ModuleMap) -> CalledHeats:
        """Return the heats of a module's functions by the calls in it."""
        name = module.name
        if name not in self._called:
            calls = self.calls(module)
            self._called[name] = CalledHeats(calls, self, self._names.ignored)
        return self._called[name]

    def in_steps(self, site: CallSite) -> bool | None:
        """True if a call stands in a step; None if the callers of its caller decide."""
        if site.caller is None:
            return site.steps and not self.is_seldom(site)
        return self.of_module(site.caller.module).in_steps(site.caller, site)

    def is_seldom(self, site: CallSite) -> bool:
        """True if a call runs once in several rounds, or only where an option is switched on."""
        if site.seldom or not site.tests:
            return site.seldom
        known = self._off.get(site)
        if known is None:
            known = self._off[site] = self._is_off(site)
        return known

    def _is_off(self, site: CallSite) -> bool:
        if Cause.SWITCHED_OFF in self._names.ignored:
            return False
        asked = chain.from_iterable(parts(*one) for one in site.tests)
        if any(holds and self._is_off_by_name(test) for test, holds in asked):
            return True
        caller = site.caller
        asker = Asker(None, None, None)
        if caller is not None:
            asker = Asker(caller.module, caller.node, caller.owner)
        return is_never_taken(site.tests, asker, self._analysis)

    def _is_off_by_name(self, test: ast.expr) -> bool:
        """True for a flag, as ``self.debug``, of which a convention says that it is off."""
        flag = dotted_name(test).rpartition(".")[2]
        return self._analysis.conventions.says("flag", flag, "branch-cold")

    def is_around_steps(self, loop: ast.AST, module: ModuleMap) -> bool:
        """True if a loop contains the loop over steps, directly or in a function that it calls."""
        known = self._around.get(loop)
        if known is None:
            known = around_steps(loop) or self._calls_holder(loop, module)
            known = self._around[loop] = known or self._holds_steps(loop, module)
        return known

    def _holds_steps(self, loop: ast.AST, module: ModuleMap) -> bool:
        """True if a loop contains another whose rounds call a training step, and is itself none."""
        if not isinstance(loop, STATEMENTS) or not self._names.trains():
            return False
        inner = (one for one in walk(list(loop.body)) if isinstance(one, STATEMENTS))
        return any(self.calls_step(one, module) for one in inner) and not self.calls_step(
            loop, module
        )

    def runs_steps(self, info: FunctionInfo) -> bool:
        """True if a function calls one that holds the loop over steps, so that it is no step."""
        return self._calls_holder(info.node, info.module)

    def _calls_holder(self, code: ast.AST, module: ModuleMap) -> bool:
        body = getattr(code, "body", None)
        if not isinstance(body, list) or goes_backward(code):
            return False
        return any(
            self.own(info).cause is Cause.OUTSIDE_STEPS and not self._is_searched(code, call, info)
            for call, info in self._called_in(code, module)
        )

    def _is_searched(self, loop: ast.AST, call: ast.Call, info: FunctionInfo) -> bool:
        """True if a loop searches or samples: it gives a function that trains nothing its result.

        ``beams = grow(model, beams)`` is an example; a round of such a loop is no epoch.
        """
        if may_step(info.node) or self._loops_over_training_steps(info):
            return False
        return gives_back(loop, call)

    def _called_in(
        self, code: ast.AST, module: ModuleMap
    ) -> Iterator[tuple[ast.Call, FunctionInfo]]:
        """Yield the calls in the body of a loop or a function with the functions, where known."""
        yield from self._functions_in(walk(list(getattr(code, "body", ()))), module)

    def _functions_in(
        self, nodes: Iterable[ast.AST], module: ModuleMap
    ) -> Iterator[tuple[ast.Call, FunctionInfo]]:
        """Yield the calls among nodes with the functions, where known."""
        known: dict[str, FunctionInfo | None] = {}
        for node in nodes:
            if not isinstance(node, ast.Call):
                continue
            path = path_of(node.func)
            if path is None:
                continue
            if path not in known:
                known[path] = self.function_called(node.func, module)
            called = known[path]
            if called is not None:
                yield node, called

    def function_called(
        self, called: ast.expr, module: ModuleMap, caller: FunctionInfo | None = None
    ) -> FunctionInfo | None:
        """Return the function that a name, an imported path or a method of ``self`` refers to.

        ``caller`` is the method around it, if that is known.
        """
        if isinstance(called, ast.Name) and called.id in module.functions:
            return module.functions[called.id]
        method = self._method(called, module, caller) or self._method_of_object(called, module)
        return method or self.imported(called, module)

    def imported(self, called: ast.expr, module: ModuleMap) -> FunctionInfo | None:
        """Return the function that a path stands for which begins with an imported name."""
        head = called
        while isinstance(head, ast.Attribute):
            head = head.value
        if not isinstance(head, ast.Name) or head.id not in module.imports:
            return None
        value = self._analysis.external(module.qualify(called))
        return value.info if isinstance(value, Function) else None

    def _method(
        self, called: ast.expr, module: ModuleMap, caller: FunctionInfo | None
    ) -> FunctionInfo | None:
        """Return the method that ``self.train_epoch`` names, in the class around the call."""
        if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
            return None
        caller = caller or function_at(module, called.lineno)
        if caller is None or caller.owner is None:
            return None
        me = named_parameters(caller.tree.args)[:1]
        if not me or not is_name(called.value, me[0].arg):
            return None
        found = find_method(caller.owner, called.attr, self._analysis)
        return None if found is None else found.info

    def _method_of_object(self, called: ast.expr, module: ModuleMap) -> FunctionInfo | None:
        """Return the method that ``solver.optimize`` names, by the object that the name holds.

        For ``scaler(loss)`` it is ``__call__``. A method that tensors have is mostly one of a
        tensor, and not asked for.
        """
        if not isinstance(called, HOLDING_OBJECTS):
            return None
        found = self._of_objects(called, "__call__", module)
        if found is not None or not isinstance(called, ast.Attribute):
            return found
        is_tensors = self._analysis.table.method(called.attr) is not None
        return None if is_tensors else self._of_objects(called.value, called.attr, module)

    def _of_objects(self, node: ast.expr, method: str, module: ModuleMap) -> FunctionInfo | None:
        """Return the method of a name of the first object that an expression holds and has it."""
        if not isinstance(node, HOLDING_OBJECTS):
            return None
        for one in self._analysis.objects_of(node, module):
            if one is not None and one.is_object and isinstance(one.definition, ClassInfo):
                found = find_method(one.definition, method, self._analysis)
                if found is not None:
                    return found.info
        return None


def _passing_on(info: FunctionInfo) -> frozenset[int]:
    """Return the loops, by identity, whose rounds each ask an object for more of their result.

    ``ys = cat([ys, model.decode(memory, ys).argmax(-1)])`` is an example, where the function is
    given ``model`` or its object holds it. Which class that is of does not matter: no round can
    begin before the last one ends.
    """
    arguments = info.tree.args
    me = arguments.args[0].arg if info.owner is not None and arguments.args else ""
    given = {one.arg for one in named_parameters(arguments)} - {me}
    return frozenset(
        id(loop)
        for loop in info.nodes.of_any(*STATEMENTS)
        if any(_asks(node, given, me) and gives_back(loop, node) for node in _asked_for(loop))
    )


def _asked_for(loop: ast.AST) -> list[ast.Call]:
    """Return the calls that each round of a loop makes for their results."""
    nodes = direct(loop)
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return [node for node in nodes if isinstance(node, ast.Call) and id(node) not in alone]


def _asks(call: ast.Call, given: AbstractSet[str], me: str) -> bool:
    """True for a call of a method of a parameter, or of what an attribute of ``self`` holds."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=name)):
            return name in given
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id=name))):
            return name == me
    return False
