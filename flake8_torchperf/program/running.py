"""The places of a project that run the functions of a linted module, and those that run these."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from flake8_torchperf.program.alone import Alone
from flake8_torchperf.program.flow import Flow
from flake8_torchperf.program.life.compiled import Compiling
from flake8_torchperf.program.life.living import Living
from flake8_torchperf.program.life.registered import Registered
from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.object_values import OF_UNKNOWN_CLASS, Itself
from flake8_torchperf.program.origins.comparisons import key_of
from flake8_torchperf.program.origins.literals import Literals
from flake8_torchperf.program.origins.placing import Placing
from flake8_torchperf.program.outlines.outline import FUNCTION
from flake8_torchperf.program.runs import Run, Runs
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.file_index import is_test_path
from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo
from flake8_torchperf.project.texts.asked_texts import COMPILING
from flake8_torchperf.project.texts.text_search import signs_train
from flake8_torchperf.project.whole_modules import noted_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flake8_torchperf.program.life.compiled import Compiled
    from flake8_torchperf.program.life.registered import Registration
    from flake8_torchperf.program.origins.comparisons import Asked, Values
    from flake8_torchperf.program.origins.placing import PlacedAt
    from flake8_torchperf.program.outlines.outline import Body
    from flake8_torchperf.project.module_index import ModuleMap
    from flake8_torchperf.project.resolver import Project
    from flake8_torchperf.project.texts.text_search import TrainingSigns


# The most bodies on the way to a function that are looked at: each takes a search for what runs it.
MAX_ON_THE_WAY = 40
# A program that imports more modules of its project than this is not read whole.
MAX_IMPORTED = 100


class Meant(NamedTuple):
    """The content of an expression: an object of a class, or a class or function itself.

    ``definition`` is the name of one that is not of the project.
    """

    definition: ClassInfo | FunctionInfo | str
    is_object: bool


class Program:
    """Says where bodies are run, for the functions of one project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._linker = Linker(project)
        self._flow = Flow(self._linker, self._search)
        self._living = Living(project, self._linker, self._search, self.runs)
        self._inside = Living(project, self._linker, self._search, self.runs, closed=True)
        self._literals = Literals(
            self._linker, self._search, self._live_runs, project, self._living.is_alive
        )
        self._placing = Placing(self._literals)
        self._registered = Registered(self._linker, self._literals.objects)
        # The numbers of names and attributes by their places: per path and word.
        self._numbers: dict[tuple[str, str], dict[tuple[int, int], int]] = {}
        self._evaluating: dict[Unit, bool] = {}
        self._training: dict[str, bool] = {}
        self._alone: dict[str, Alone] = {}
        # The objects that expressions hold, by path and number.
        self._objects: dict[tuple[str, int], list[Meant | None]] = {}

    def forget(self) -> None:
        """Drop the references back to this object, so that it is freed without a collection."""
        for one in self._alone.values():
            one.forget()
        vars(self).clear()

    def alone(self, path: str) -> Alone:
        """Return the places where a module itself runs its bodies."""
        if path not in self._alone:
            self._alone[path] = Alone(self._linker, path)
        return self._alone[path]

    def unit(self, info: FunctionInfo) -> Unit | None:
        """Return a function as a body of its module; None if the outline does not list it."""
        named = self._named(info.qualname, info)
        return next((one for one in named if self._linker.body(one).line == info.tree.lineno), None)

    def inside(self, info: FunctionInfo, name: str) -> Unit | None:
        """Return the body of a qualified name inside a function; None if there isn't just one."""
        found = self._named(name, info)
        return found[0] if len(found) == 1 else None

    def _named(self, qualname: str, info: FunctionInfo) -> list[Unit]:
        """Return the bodies of a qualified name in the module of a function."""
        path = self.path_of(info)
        return [Unit(path, one) for one in self._linker.outline(path).by_qualname.get(qualname, ())]

    def name_of(self, unit: Unit) -> str:
        """Return the name of a body."""
        return self._linker.body(unit).name

    def runs_of(self, info: FunctionInfo) -> Runs:
        """Return the places that run a function, and why there may be others."""
        unit = self.unit(info)
        return Runs((), "its module does not list it") if unit is None else self.runs(unit)

    def sure_callers(self, info: FunctionInfo) -> Iterator[tuple[FunctionInfo, Run]]:
        """Yield the functions that run a function for certain, each with a place that does."""
        for run in self.runs_of(info).outside_tests:
            if run.is_sure:
                caller = function_at(noted_module(run.path, self.project), run.line)
                if caller is not None:
                    yield caller, run

    def values_of(
        self,
        asked: Asked,
        module: ModuleMap,
        counts: Callable[[Run], bool] | None = None,
    ) -> Values:
        """Return the literal values that an expression in a module may have; None if open.

        ``counts`` tells which of the places that run the function count, if any does; all without.
        """
        if not isinstance(asked, (ast.Name, ast.Attribute)):
            return self._literals.of_item(key_of(asked))
        path = self.path_of_module(module)
        number = self._numbered(asked, path) if self.project.is_searched_whole else None
        return None if number is None else self._literals.at(path, number, counts)

    def _number(self, asked: ast.Name | ast.Attribute, path: str) -> int | None:
        """Return the number of an expression in the outline; None for one at a module level."""
        number = self._numbered(asked, path)
        in_function = number is not None and self._linker.outline(path).nodes.bodies[number] > 0
        return number if in_function else None

    def _numbered(self, asked: ast.Name | ast.Attribute, path: str) -> int | None:
        """Return the number of an expression in the outline; None for one it doesn't list."""
        word = asked.id if isinstance(asked, ast.Name) else asked.attr
        if (path, word) not in self._numbers:
            outline = self._linker.outline(path)
            nodes = outline.nodes
            self._numbers[path, word] = {
                (nodes.lines[number], nodes.columns[number]): number
                for number in reversed(outline.by_word.get(word, ()))
            }
        return self._numbers[path, word].get((asked.lineno, asked.col_offset))

    def objects_of(self, asked: ast.Name | ast.Attribute, module: ModuleMap) -> list[Meant | None]:
        """Return what an expression in a module may hold; empty if nothing shows that.

        None among them stands for what isn't known. In a project too large to be searched, its own
        module shows it.
        """
        path = self.path_of_module(module)
        number = self._number(asked, path)
        if number is None:
            return []
        if (path, number) not in self._objects:
            found = sorted(self._values(path, number), key=str)
            self._objects[path, number] = [self._held(one) for one in found]
        return self._objects[path, number]

    def placed_at(self, asked: ast.Name | ast.Attribute, module: ModuleMap) -> PlacedAt | None:
        """Return where the project puts the value of an expression on the device of its choice."""
        path = self.path_of_module(module)
        number = self._number(asked, path) if self.project.is_searched_whole else None
        return None if number is None else self._placing.at(path, number)

    def _values(self, path: str, number: int) -> set[Unit | str | Itself]:
        """Return what an expression may hold, by its own module where others leave it open."""
        if not self.project.is_searched_whole:
            return self._literals.objects.values(path, number)
        found = self._literals.passed.values(path, number)
        if OF_UNKNOWN_CLASS in found:
            near = self._literals.objects.values(path, number)
            return near if near and OF_UNKNOWN_CLASS not in near else found
        return found

    def _held(self, value: Unit | str | Itself) -> Meant | None:
        """Return a value as the definitions of its class, or of itself, that modules hold."""
        is_object = not isinstance(value, Itself)
        unit = value.unit if isinstance(value, Itself) else value
        if isinstance(unit, str):
            return None if unit == OF_UNKNOWN_CLASS else Meant(unit, is_object)
        definition = self.definition(unit)
        return None if definition is None else Meant(definition, is_object)

    def module_at(self, path: str) -> ModuleMap | None:
        """Return the map of a module of the project by its resolved path."""
        if path == self._linker.linted_path:
            return self.project.linted
        found = self.project.module(self._linker.module(path).name)
        if found is not None and found.place == path:
            return found
        return self.project.opened(path)  # its imports start in another folder

    def definition(self, unit: Unit) -> FunctionInfo | ClassInfo | None:
        """Return a function or a class as its module holds it; None if it can't be read."""
        module = self.module_at(unit.path)
        if module is None or (module.place != unit.path and module is not self.project.linted):
            return None
        if unit.is_class:
            klass = self._linker.klass(unit)
            found = module.classes.get(klass.qualname)
            return found if found is not None and found.tree.lineno == klass.line else None
        body = self._linker.body(unit)
        if body.owner < 0:
            function = module.functions.get(body.qualname)
        else:
            owner = self.definition(Unit(unit.path, body.owner, is_class=True))
            function = owner.methods.get(body.name) if isinstance(owner, ClassInfo) else None
        return function if function is not None and function.tree.lineno == body.line else None

    def classes_below(self, owner: ClassInfo, method: str = "") -> list[ClassInfo]:
        """Return the classes below a class that something makes; if given, those with a method."""
        unit = self._class_unit(owner) if self.project.is_searched_whole else None
        if unit is None:
            return []
        below = [
            self.definition(one)
            for one in self._literals.makers.below(unit)
            if (not method or method in self._linker.klass(one).methods)
            and self._living.is_alive(one)
        ]
        return [one for one in below if isinstance(one, ClassInfo)]

    def all_places(self, info: FunctionInfo) -> list[Run]:
        """Return the places that run a function, tests excepted; none if there may be others."""
        unit = self.unit(info) if self.project.is_searched_whole else None
        if unit is None:
            return []
        runs = self.runs(unit)
        elsewhere = bool(runs.open) or self._literals.makers.is_called_elsewhere(unit)
        return [] if elsewhere else runs.outside_tests

    def all_makings(self, owner: ClassInfo) -> list[Run]:
        """Return the places that make objects of a class; none if there may be others."""
        unit = None if self.is_found_by_name(owner) else self._class_unit(owner)
        if unit is None:
            return []
        found: list[Run] = []
        for path, number in self._literals.makers.constructions(unit) or ():
            node = self._linker.outline(path).nodes[number]
            found.append(Run(path, node.body, node.line, node.column, number))
        return found

    def is_found_by_name(self, owner: ClassInfo) -> bool:
        """True if objects of a class, or of one below it, may be made by their class's name."""
        unit = self._class_unit(owner) if self.project.is_searched_whole else None
        if unit is None:
            return True
        return any(map(self._linker.is_looked_up, (unit, *self._literals.makers.below(unit))))

    def takes_another(self, run: Run, info: FunctionInfo) -> bool:
        """True if a place calls an entry of a dict whose key is never that of a function."""
        unit = self.unit(info)
        return unit is not None and self._literals.takes_another(run, unit)

    def outermost(self, unit: Unit) -> Body:
        """Return the body itself, or the one around it that stands in no other function."""
        outline = self._linker.outline(unit.path)
        return outline.bodies[outline.outermost(unit.number)]

    def runs(self, unit: Unit) -> Runs:
        """Return the places that run a body, and why there may be others."""
        found = self._flow.runs(unit)
        body = self._linker.body(unit)
        private = body.owner < 0 and body.name.startswith("_")
        if found.open or private or self.project.is_searched_whole:
            return found
        return found._replace(open="the project is too large to be searched")

    def _live_runs(self, unit: Unit) -> Runs:
        """Return the places that run a body, but those in bodies that nothing runs."""
        found = self.runs(unit)
        alive = (run for run in found.places if self._living.is_alive(Unit(run.path, run.body)))
        return found._replace(places=tuple(alive))

    def is_dead(self, unit: Unit) -> bool:
        """True if nothing runs a body but tests and other bodies that nothing runs.

        Nothing runs the methods of a class that nothing makes.
        """
        return not self._living.is_alive(unit)

    def is_led_from_outside(self, unit: Unit) -> bool:
        """True if only code outside the project may run a body, though the project holds programs.

        Tests and bodies that nothing runs lead nowhere.
        """
        return self._living.is_alive(unit) and not self._inside.is_alive(unit)

    def is_run_inside(self, unit: Unit) -> bool:
        """True if the project holds programs, and code of these may run a body."""
        name = self._linker.body(unit).name
        if self.project.program_texts(name, closed=True) is None:
            return False
        return self._inside.is_alive(unit)

    def is_dead_by_class(self, unit: Unit) -> bool:
        """True if a method of a class that nothing makes leads to a dead body, or is the body."""
        return self._living.is_led_by_class(unit)

    def is_made(self, owner: ClassInfo) -> bool:
        """True if code that something runs may make objects of a class, or of one below it."""
        if self._living.may_be_used_elsewhere(owner.name):
            return True  # without an outline of its module
        unit = self._class_unit(owner)
        return unit is None or self._living.is_alive(unit)

    def _class_unit(self, owner: ClassInfo) -> Unit | None:
        """Return a class as one of its module's outline; None if that doesn't list it."""
        path = self.path_of_module(owner.module)
        outline = self._linker.outline(path)
        # The line only tells two classes of one name apart, and needs no question for the methods.
        last = outline.class_named.get((0, owner.name))
        if last is not None and outline.classes[last].line == owner.tree.lineno:
            return Unit(path, last, is_class=True)
        for number, one in enumerate(outline.classes):
            if (one.name, one.line) == (owner.name, owner.tree.lineno):
                return Unit(path, number, is_class=True)
        return None

    def only_evaluates(self, info: FunctionInfo) -> bool:
        """True if each program that runs a function takes no training steps.

        False if nothing shows which programs run it. A program is a module whose own level runs
        something, with the modules of the project that it imports through others.
        """
        unit = self.unit(info)
        if unit is None:
            return False
        if unit not in self._evaluating:
            entries = sorted(self._entries(unit))
            self._evaluating[unit] = entries != [] and not any(map(self._trains, entries))
        return self._evaluating[unit]

    def is_in_training_program(self, module: ModuleMap) -> bool:
        """True if a module, or one that it imports through others, takes training steps."""
        return self._trains(self.path_of_module(module))

    def registrations(self, info: FunctionInfo) -> Iterator[Registration]:
        """Yield the calls that decorate a function, of methods which the project doesn't define."""
        unit = self.unit(info)
        return iter(()) if unit is None else self._registered.decorating(unit)

    def given(self, info: FunctionInfo, paths: Iterable[str], slot: str) -> Iterator[str]:
        """Yield the dotted names of the calls in some modules that are given a function.

        It is their first argument, or has the keyword ``slot``.
        """
        unit = self.unit(info)
        return iter(()) if unit is None else self._registered.given(unit, paths, slot)

    def compiled(self) -> list[Compiled]:
        """Return the bodies that modules of the project compile with torch.

        Tests and bodies that nothing runs compile nothing. Empty for a project that is too large to
        be searched, or in which too many modules compile.
        """
        found = self.project.all_modules_that_say(COMPILING) or ()
        if not found or not self.project.is_searched_whole:
            return []
        compiling = Compiling(self._linker, self._values)
        known = compiling.of_modules(one for one in found if not is_test_path(one))
        return [one for one in known if not self.is_dead(one.by)]

    def imported(self, paths: Iterable[str]) -> frozenset[str]:
        """Return some modules and those of the project that they import, through others too."""
        return frozenset(one for path in paths for one in self._linker.program(path))

    def is_of_script(self, info: FunctionInfo) -> bool:
        """True for a function of a script that runs it, if nothing else of the project leads there.

        A script is a module with a main block.
        """
        unit = self.unit(info)
        is_script = unit is not None and self._linker.has_main_block(unit.path)
        return unit is not None and is_script and self._entries(unit) == {unit.path}

    def leading(self, info: FunctionInfo) -> Iterator[tuple[ModuleMap, Run]]:
        """Yield the places that run a function, and those that run their bodies, nearest first.

        Each comes with its module. Ends at `MAX_ON_THE_WAY` bodies.
        """
        start = self.unit(info)
        waiting = [] if start is None else [start]
        seen = set(waiting)
        while waiting and len(seen) <= MAX_ON_THE_WAY:
            for run in self.runs(waiting.pop(0)).outside_tests:
                module = self.module_at(run.path)
                if module is not None:
                    yield module, run
                above = Unit(run.path, run.body)
                if run.body and above not in seen:
                    seen.add(above)
                    waiting.append(above)

    def _entries(self, start: Unit) -> set[str]:
        """Return the modules whose own level runs a body, through others; none if not all show."""
        found: set[str] = set()
        seen = {start}
        waiting = [start]
        while waiting:
            runs = self.runs(waiting.pop())
            if runs.open or len(seen) > MAX_ON_THE_WAY:
                return set()
            for run in runs.outside_tests:
                above = Unit(run.path, run.body)
                if run.body == 0:
                    found.add(run.path)
                elif above not in seen:
                    seen.add(above)
                    waiting.append(above)
        return found

    def _trains(self, entry: str) -> bool:
        """True if a module, or one that it imports through others, takes training steps."""
        if entry not in self._training:
            self._training[entry] = self._take_steps(self._linker.program(entry))
        return self._training[entry]

    def _take_steps(self, paths: Iterable[str]) -> bool:
        """True if one of some modules takes training steps, all together do, or they are many."""
        signs: list[TrainingSigns] = []
        for path in paths:
            signs.append(self._linker.signs_of_training(path))
            if signs_train(signs[-1:]) or len(signs) > MAX_IMPORTED:
                return True
        return signs_train(signs)

    def calls_by_name(self, run: Run, name: str) -> bool:
        """True if a place is a call of what bears a name, and not another way to run it."""
        outline = self._linker.outline(run.path)
        called = outline.child(run.node, FUNCTION)
        return called is not None and outline.nodes[called].word == name

    def is_in_data(self, run: Run) -> bool:
        """True if a loader, or a data set of another package, is given what runs at a place."""
        if self._linker.collates(run.path, run.node):
            return True
        return self._linker.gives_to_data(run.path, run.node)

    def is_loaded(self, info: FunctionInfo) -> bool:
        """True if a loader is given an object of which it runs this method for each sample."""
        return any(self._linker.loads(run.path, run.node) for run in self.runs_of(info).places)

    def collates(self, info: FunctionInfo) -> bool:
        """True if some loader is given a function, or an object that it is the call of."""
        places = self.runs_of(info).places
        return any(self._linker.collates(run.path, run.node) for run in places)

    def nested_in(self, run: Run) -> Unit | None:
        """Return the function or lambda inside another function that holds a place, if any does."""
        unit = Unit(run.path, run.body)
        return unit if self._linker.body(unit).outer > 0 else None

    def lambda_at(self, path: str, line: int, column: int) -> Unit | None:
        """Return the lambda that begins at a place of a module; None if none is listed."""
        outline = self._linker.outline(path)
        for number in outline.lambdas:
            node = outline.nodes[number]
            if (node.line, node.column) == (line, column):
                return Unit(path, int(node.word))
        return None

    def path_of(self, info: FunctionInfo) -> str:
        """Return the resolved path of the module of a function, as `Run` spells it."""
        return self.path_of_module(info.module)

    def path_of_module(self, module: ModuleMap) -> str:
        """Return the resolved path of a module, as `Run` spells it."""
        linted = module is self.project.linted or module.path is None
        return self._linker.linted_path if linted else module.place

    def _search(
        self, word: str, path: str, *, is_attribute: bool = False
    ) -> tuple[str, ...] | None:
        """Return the modules that hold a word and may use what a module defines.

        For an attribute, these may be any modules, unless too many hold the word.
        """
        module = self.project.linted
        if path != self._linker.linted_path:
            module = self.module_at(path) or module
        found = self.project.all_modules_that_say(word) if is_attribute else None
        if found is None:
            found = self.project.modules_that_say(word, module)
        if found is None:
            return None
        here = self._linker.linted_path
        return (here, *(one for one in found if one != here))
