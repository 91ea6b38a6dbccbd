"""The calls in a whole package that lead, or may lead, to a function.

The package's modules are searched for the function's name. Modules that contain it are parsed,
never imported. That takes time, so the search is made only if there is something to report.
"""

from __future__ import annotations

import ast
import os
import sys
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.idioms.host_modules import COLLATORS, collators
from flake8_torchperf.idioms.module_roles import is_test_file, is_test_name
from flake8_torchperf.interpreter.stated_types.class_hierarchy import (
    PLAIN_BASES,
    find_method,
    lineage,
)
from flake8_torchperf.judgement.frequency.call_graph import Calls, CallSite, calls_in, site_at
from flake8_torchperf.judgement.review.call_forms import (
    CONTAINER_METHODS,
    calls_of_name,
    files_of,
    fits,
    fits_container,
    hands_on,
)
from flake8_torchperf.project.answers import record
from flake8_torchperf.project.files import read_bytes, stamp
from flake8_torchperf.project.module_index import read_module
from flake8_torchperf.project.resolver import NO_PYTHON, decoded
from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.values.cause import Cause
from flake8_torchperf.values.values import ClassValue, External, Function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.judgement.frequency.function_heat import FunctionHeats
    from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo, ModuleMap

# The most functions of one linted file whose callers are searched for.
MAX_ASKED = 60
# The most modules that are read to find the calls of a function; the nearest are read first.
MOST_CALLING = 2
# The most modules that are read to find the calls of a method, if they name its class.
MOST_NAMING = 3
# How many parsed modules, with their calls, stay cached from one linted file to the next.
KEPT_MODULES = 16
CONSTRUCTOR = "__init__"
# Methods that store a function for later calls.
STORING_CALLS = frozenset(("register", "append", "add", "setdefault", "route"))
# Bases that call none of the private methods that a derived class adds.
CALLING_NOTHING = PLAIN_BASES | {"Module"}


class PackageCallers:
    """Finds the callers of functions of the linted module, and their callers in turn."""

    def __init__(self, analysis: Analysis, heats: FunctionHeats) -> None:
        self._analysis = analysis
        self._heats = heats
        self._here: str | None = None
        self._modules: dict[str, tuple[ModuleMap, Calls]] = {}
        self._known: dict[str, list[CallSite]] = {}
        # The collators of each module, and its functions by their names; by the module's identity.
        self._collators: dict[int, frozenset[str]] = {}
        self._defined: dict[int, dict[str, list[FunctionInfo]]] = {}
        self._leading: dict[str, list[CallSite]] = {}

    def of(self, info: FunctionInfo) -> list[CallSite]:
        """Return the calls that lead to a function; none if there may be others."""
        found = self._known.get(info.key)
        if found is None:
            found = []
            if len(self._known) < MAX_ASKED:
                found = self._find(info)
            self._known[info.key] = found
        return found

    def _find(self, info: FunctionInfo) -> list[CallSite]:
        """Search the package for the calls of a function; a constructor is called by its class.

        Other special methods are called without their name, so none of their calls are found.
        """
        constructs = info.name == CONSTRUCTOR and info.owner is not None
        name = info.owner.name if constructs and info.owner is not None else info.name
        if name.startswith("__") and name.endswith("__"):
            return []
        method = info.owner is not None and not constructs
        public = method or not info.name.startswith("_")
        if public and not self._analysis.project.is_searched_whole:
            return []  # modules of a large package that were not searched may call it
        paths = self._analysis.project.modules_that_say(f".{name}" if method else name, info.module)
        if paths is None:
            return []
        found: list[CallSite] = []
        elsewhere = False
        for module, calls in self._with_linted(paths):
            if is_test_file(module) and not is_test_file(info.module):
                continue
            known = len(found)
            found += calls_of_name(info, module, calls) if method else calls.of(info)
            found += self._outward(info, module, calls, by_name=True)
            elsewhere = elsewhere or (module is not info.module and len(found) > known)
            if not constructs and hands_on(info, module, calls):
                return []
        if not info.module.package and not elsewhere:
            return [] if public else found  # programs outside the project may use a script
        return found

    def possible(self, info: FunctionInfo) -> list[CallSite] | None:
        """Return every call in the package that may lead to a function, by its name alone.

        A name in many modules counts in those that also name the function's class or module. None
        if the function may be called in ways that are not seen: it is handed over as a value or
        registered, or Python calls it without its name.
        """
        name, method = info.name, info.owner is not None
        if name == CONSTRUCTOR and info.owner is not None:
            name, method = info.owner.name, False
        registers = partial(self._registers, module=info.module)
        if name.startswith("__") or any(map(registers, info.node.decorator_list)):
            return None
        if not self._analysis.project.is_searched_whole:
            return None
        paths = self._naming(info, name)
        if paths is None:
            return None
        found: list[CallSite] = []
        for module, calls in self._with_linted(paths):
            if is_test_file(module):
                continue
            if name in (calls.attributes if method else calls.values):
                return None
            found += [site for one in self._named(name, module) for site in calls.of(one)]
            found += self._outward(info, module, calls, by_name=True)
        if not found and info.owner is not None and self._has_foreign_base(info.owner):
            return None
        return found

    def site_at(self, path: str, line: int, column: int) -> CallSite:
        """Return a place in a file of the project, or in the linted text, as the site of a call."""
        here = self._linted_path()
        module = self._analysis.project.linted if path == here else self._read(path)[0]
        return site_at(module, line, column)

    def _named(self, name: str, module: ModuleMap) -> list[FunctionInfo]:
        """Return the functions and methods of a name that a module defines."""
        known = self._defined.get(id(module))
        if known is None:
            known = self._defined[id(module)] = {}
            for one in module.defined:
                known.setdefault(one.name, []).append(one)
        return known.get(name, [])

    def are_collated(self, info: FunctionInfo) -> bool:
        """True if a function, or an object of its class or of one below, makes batches."""
        names = [] if info.name.startswith("__") else [info.name]
        names += [] if info.owner is None else [info.owner.name, *self._subclasses(info.owner)]
        search = self._analysis.project.modules_that_say
        said = [search(word, info.module) for word in COLLATORS]
        making = None if None in said else {path for paths in said for path in paths or ()}
        return any(
            name in self._collators_of(module)
            for name in dict.fromkeys(names)
            for module, _ in self._with_linted(
                tuple(
                    path
                    for path in search(name, info.module) or ()
                    if making is None or path in making
                )
            )
        )

    def _subclasses(self, owner: ClassInfo) -> list[str]:
        """Return the names of the classes in the project that derive directly from a class."""
        paths = self._analysis.project.modules_that_say(owner.name, owner.module) or ()
        return [
            one.name
            for module, _ in self._with_linted(paths)
            for one in module.classes.values()
            if any(base.rpartition(".")[2] == owner.name for base in one.bases)
        ]

    def _collators_of(self, module: ModuleMap) -> frozenset[str]:
        """Return the names that a module gives to loaders to make batches; cached."""
        known = self._collators.get(id(module))
        if known is None:
            known = collators(module) if any(map(module.says, COLLATORS)) else frozenset()
            self._collators[id(module)] = known
        return known

    def is_used(self, info: FunctionInfo) -> bool:
        """True if the project may run a function: it calls it, hands it on or registers it."""
        name = info.name
        registers = partial(self._registers, module=info.module)
        if name.startswith("__") or any(map(registers, info.node.decorator_list)):
            return True
        paths = self._naming(info, name)
        return paths is None or any(
            hands_on(info, module, calls)
            or bool(calls_of_name(info, module, calls) if info.owner else calls.of(info))
            or any(True for _ in self._outward(info, module, calls, by_name=True))
            for module, calls in self._with_linted(paths)
            if not is_test_file(module)
        )

    def _registers(self, decorator: ast.expr, module: ModuleMap) -> bool:
        """True if a decorator may register the function.

        It is called with arguments, or is a function of the project that stores something.
        """
        if isinstance(decorator, ast.Call):
            last = dotted_name(decorator.func).rpartition(".")[2]
            return bool(decorator.args or decorator.keywords) or last in STORING_CALLS
        match self._analysis.external(module.qualify(decorator)):
            case Function(info=found):
                return any(
                    isinstance(node.ctx, ast.Store) for node in found.nodes.of(ast.Subscript)
                ) or not found.nodes.words().isdisjoint(STORING_CALLS)
        return False

    def _naming(self, info: FunctionInfo, name: str) -> tuple[str, ...] | None:
        """Return the modules that may call a function by its name; None if that may be any.

        A name in too many modules is looked for where the class of the method, or a class above it,
        stands or is named, and for the entry of a program in its own module.
        """
        project = self._analysis.project
        found = project.modules_that_say(name)
        if found is not None:
            return found
        if info.owner is None:
            entry = any(site.caller is None for site in self._heats.calls(info.module).of(info))
            return files_of(info.module) if entry else None
        if self._has_foreign_base(info.owner):
            return None
        said = project.modules_that_say(info.owner.name)
        if said is None:
            return None
        above = [one for one in lineage(info.owner, self._analysis) if not isinstance(one, str)]
        own = [path for one in above for path in files_of(one.module)]
        return tuple(dict.fromkeys((*own, *said)))

    def leading(self, info: FunctionInfo) -> list[CallSite]:
        """Return calls that lead to a function; there may be others.

        A method is recognised by the class of the object it is called on, by its name if only one
        module of the package defines it, or by the calls of the method that it overrides.
        """
        if info.key not in self._leading:
            found = []
            if len(self._leading) < MAX_ASKED and not info.name.startswith("__"):
                found = list(self._seen(info))
            self._leading[info.key] = found
        return self._leading[info.key]

    def _seen(self, info: FunctionInfo) -> Iterator[CallSite]:
        name = info.name
        project = self._analysis.project
        yield from self._by_bases(info)
        own = info.module
        by_name = True
        if info.owner is None:
            paths, most = project.modules_that_call(name, own), MOST_CALLING
        else:
            calling = project.modules_that_call(f".{name}", own)
            said = project.modules_that_say(info.owner.name, own) or ()
            paths, most = tuple(path for path in calling if path in said), MOST_NAMING
            by_name = len(project.package_modules_that_say(f"def {name}", own) or ()) == 1
            if by_name:
                # Modules that only fill lists and dicts of their own come before, too.
                paths, most = calling, MOST_NAMING if name in CONTAINER_METHODS else MOST_CALLING
                if len(project.modules_that_say(f"def {name}", own) or ()) != 1:
                    paths = tuple(path for path in paths if project.is_in_package(path, own))
        near = self._nearest(paths)[:most]
        for module, calls in self._with_linted(tuple(near)):
            if is_test_file(module):
                continue
            yield from calls.of(info)
            yield from self._outward(info, module, calls, by_name=by_name)

    def around(self, info: FunctionInfo) -> Iterator[CallSite]:
        """Yield the calls in other modules that may lead to a function, if they name its class."""
        method, name = info.owner is not None, info.name
        if name.startswith("__"):
            return
        project = self._analysis.project
        if info.owner is not None:
            paths = project.modules_that_say(info.owner.name, info.module) or ()
        else:
            paths = project.modules_that_call(name, info.module)
        near = self._nearest(paths)
        for path in near[: MOST_CALLING if not method else MOST_NAMING]:
            module, calls = self._read(path)
            if is_test_file(module):
                continue
            yield from self._outward(info, module, calls, by_name=True)

    def naming(self, info: FunctionInfo) -> list[FunctionInfo]:
        """Return the functions of other modules that use a function's name as a value."""
        if info.owner is not None or info.name.startswith("__"):
            return []
        paths = self._analysis.project.modules_that_say(info.name, info.module) or ()
        found: list[FunctionInfo] = []
        for path in self._nearest(paths)[:MOST_CALLING]:
            module, calls = self._read(path)
            if info.name in calls.values and not is_test_file(module):
                found += [one for one in module.defined if info.name in one.nodes.words()]
        return found

    def _by_bases(self, info: FunctionInfo) -> Iterator[CallSite]:
        """Yield the calls, as ``self._update(...)``, in base classes of other modules."""
        if info.owner is None or self._heats.called(info).cause is Cause.SET_UP_ROOT:
            return  # the framework calls it once, even if a base class calls it in each step
        for base in lineage(info.owner, self._analysis)[1:]:
            if isinstance(base, str) or base.module is info.module or info.name not in base.methods:
                continue
            path = base.module.path
            if path is not None:
                whole, calls = self._read(str(path.resolve()))
                if base.name in whole.classes:
                    yield from calls.of(whole.classes[base.name].methods[info.name])

    def _nearest(self, paths: Iterable[str]) -> list[str]:
        """Return the files other than the linted one, those near to it first and tests last."""
        here = self._linted_path()
        return sorted((path for path in paths if path != here), key=self._distance)

    def _distance(self, path: str) -> int:
        """Return 0 for a file in the linted one's folder, 1 in its package, 2 elsewhere, 3 a test.

        Tests in the package rank as its other modules.
        """
        if os.path.dirname(path) == os.path.dirname(self._linted_path()):
            return 0
        project = self._analysis.project
        if project.is_in_package(path, project.linted):
            return 1
        return 3 if is_test_name(Path(path).stem) else 2

    def _has_foreign_base(self, owner: ClassInfo) -> bool:
        bases = [base for base in lineage(owner, self._analysis) if isinstance(base, str)]
        return any(
            base.rpartition(".")[2] not in CALLING_NOTHING
            and base.partition(".")[0] not in sys.stdlib_module_names
            for base in bases
        )

    def _with_linted(self, paths: tuple[str, ...]) -> Iterator[tuple[ModuleMap, Calls]]:
        """Yield the linted module, whose text may differ from its file, and those of ``paths``."""
        linted = self._analysis.project.linted
        yield linted, self._heats.calls(linted)
        here = self._linted_path()
        yield from (self._read(path) for path in paths if path != here)

    def _linted_path(self) -> str:
        """Return the linted file's resolved path, as `modules_that_say` spells it, or ""."""
        if self._here is None:
            path = self._analysis.project.linted.path
            self._here = "" if path is None else str(path.resolve())
        return self._here

    def _read(self, path: str) -> tuple[ModuleMap, Calls]:
        known = self._modules.get(path)
        if known is None:
            self._analysis.project.note_whole(path)
            known = self._modules[path] = _read(path, *stamp(path))
            record(known[0].checked)
            project = self._analysis.project
            if not project.is_in_package(path, project.linted):
                project.adopt(known[0])
            self._heats.keep(*known)
        return known

    def _outward(
        self, info: FunctionInfo, module: ModuleMap, calls: Calls, *, by_name: bool
    ) -> Iterator[CallSite]:
        """Yield the calls that lead out of a module and may run a function.

        A call on an object whose class the module does not show counts only ``by_name``, and if the
        object can't be a list, a dict or a set.
        """
        constructs = info.name == CONSTRUCTOR and info.owner is not None
        name = info.owner.name if constructs and info.owner is not None else info.name
        for called, site in calls.outward.get(name, ()):
            if not self._leads(called, info, module):
                continue
            made = [] if info.owner is None or constructs else calls.made_by(called, site)
            if any(self._has(klass, info) for klass in made) or (
                by_name
                and not made
                and not fits_container(name, site)
                and (info.owner is None or constructs or fits(info, site))
            ):
                yield site

    def _has(self, klass: str, info: FunctionInfo) -> bool:
        """True if objects of a class, named with its module, or of one below it have the method."""
        match self._analysis.external(klass):
            case ClassValue(info=found) if info.owner is not None:
                method = find_method(found, info.name, self._analysis)
                below = any(one is found for one in lineage(info.owner, self._analysis)[1:])
                return below or (method is not None and method.info.key == info.key)
        return False

    def _leads(self, called: ast.expr, info: FunctionInfo, module: ModuleMap) -> bool:
        """True if the called expression may be this function; a method, on any object."""
        if info.owner is not None and info.name != CONSTRUCTOR:
            return isinstance(called, ast.Attribute)
        head = called
        while isinstance(head, ast.Attribute):
            head = head.value
        if not isinstance(head, ast.Name):
            return False
        if head.id not in module.imports:
            # An import inside a function or a star import may bind the name.
            return isinstance(called, ast.Name)
        if not self._analysis.project.imports_alike(module, module.imports[head.id]):
            return False
        match self._analysis.external(module.qualify(called)):
            case Function(info=found):
                return found.key == info.key
            case ClassValue(info=found_class):
                owner = info.owner
                return owner is not None and found_class.key == owner.key
            case External(name=name):
                return name.partition(".")[0] == self._analysis.project.top
        return False


@lru_cache(maxsize=KEPT_MODULES)
def _read(path: str, modified: int, size: int) -> tuple[ModuleMap, Calls]:
    """Return a whole module with its calls; an empty one if the file is not Python."""
    data = read_bytes(path)
    text = ""
    tree = ast.Module([], [])
    try:
        text = decoded(data if isinstance(data, bytes) else b"")
        tree = ast.parse(text)
    except NO_PYTHON:
        pass  # flake8 reports the error when it lints that file
    module = read_module(tree, (text,), Path(path))
    return module, calls_in(module)
