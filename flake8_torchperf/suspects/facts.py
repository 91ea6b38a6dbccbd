"""What a module says of its names, as grades: parameters, globals, attributes, results of calls.

Enters a module map; leaves grades on demand, each computed once. Must not know libcst.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from flake8_torchperf.suspects.grades import (
    ANY,
    GROUP,
    GROUPS,
    KNOWN,
    LIST,
    MAX_PARAMETERS,
    OBJECT,
    PARAMETERS,
    ROLE,
    TENSOR,
    TORCH,
    WEAK,
    element,
    holding,
    mapping,
    parameters_in,
)
from flake8_torchperf.suspects.judge import Judge
from flake8_torchperf.suspects.modulemap import ClassInfo, FunctionInfo, is_static, record_import
from flake8_torchperf.suspects.stated import documented, of_class, stated
from flake8_torchperf.suspects.words import (
    HOST_CLASSES,
    HOST_CONSTANTS,
    PROPERTIES,
    is_public,
    torch_words,
)
from flake8_torchperf.suspects.world import Unread

if TYPE_CHECKING:
    from flake8_torchperf.suspects.modulemap import FunctionNode, ModuleMap
    from flake8_torchperf.suspects.world import World

BUILTINS = frozenset(dir(builtins))
# Passes over the methods of a class before what still grows may be anything.
MAX_CLASS_PASSES = 4
# Calls followed into what they call, as `interpret/machine.py` limits them; and the length above
# which a function is not followed (`interpret/functions.py`).
MAX_CALL_DEPTH = 6
MAX_SUMMARY_LINES = 250
CONSTRUCTORS = ("__init__", "__post_init__", "__new__")
# Kinds of arguments for which a function is judged before the next one may give anything.
MAX_WAYS = 12


class ModuleFacts:
    """The facts of one module, computed when they are asked for."""

    def __init__(self, module: ModuleMap, world: World) -> None:
        self.module = module
        self.world = world
        self.top = module.name.partition(".")[0]
        # Of other files only what they declare is asked, and what constructors write.
        self.foreign = module is not world.start
        self.judged: dict[int, Judge] = {}
        self._globals: dict[str, int] = {}
        self._stated: dict[int, int | None] = {}
        self._written: dict[int, dict[str, int]] = {}
        self._settled: set[int] = set()
        self._parameters: dict[int, dict[str, int]] = {}
        self._ours: dict[str, bool] = {}

    def ours(self, top: str) -> bool:
        """May a module of this top-level package be read by the interpreter?"""
        if self.module.package:
            return top == self.top
        path = self.module.path
        if path is None:
            return False
        if top not in self._ours:
            folder = path.parent
            self._ours[top] = (folder / f"{top}.py").is_file() or (folder / top).is_dir()
        return self._ours[top]

    def stated(self, node: ast.expr | None) -> int | None:
        """What an annotation states."""
        if node is None:
            return None
        key = id(node)
        if key not in self._stated:
            self._stated[key] = None
            self._stated[key] = stated(node, self)
        return self._stated[key]

    def classes(self, node: ast.expr) -> int:
        """What an ``isinstance`` test with these classes makes of its subject."""
        if isinstance(node, ast.Tuple):
            result = 0
            for part in node.elts:
                result |= self.classes(part)
            return result
        return self.stated(node) or 0

    def imported(self, node: ast.Import | ast.ImportFrom) -> dict[str, str]:
        """What an import statement inside a function binds."""
        return record_import(node, self.module.package)[0]

    # -- names --------------------------------------------------------------------------------

    def global_name(self, name: str) -> int:
        """The grade of a name at module level."""
        known = self._globals.get(name)
        if known is None:
            self._globals[name] = 0
            known = self._globals[name] = self._global(name)
        return known

    def _global(self, name: str) -> int:
        module = self.module
        if name in module.functions:
            return OBJECT
        if name in module.classes:
            return self.world.typed(module.classes[name])
        if name in module.imports:
            return self.qualified(module.imports[name])
        if name in module.annotations or name in module.constants:
            return self.constant(name)
        target = self.starred(name)
        return 0 if target is None else self.qualified(target)

    def starred(self, name: str) -> str | None:
        """The dotted name of what a star import brings in under this name."""
        module = self.module
        if not module.stars or name in BUILTINS:
            return None
        words = torch_words()
        for star in module.stars:
            torch = star.partition(".")[0] == "torch"
            if torch and (name in words.functions.results or name in words.classes):
                return f"{star}.{name}"
        return name if self.world.resolve(name, module) is not None else None

    def constant(self, name: str) -> int:
        """What is assigned to a name at module level."""
        result = self.stated(self.module.annotations.get(name)) or 0
        judge = Judge(self, None, "")
        for value in self.module.constants.get(name, ()):
            result |= judge.grade(value) & KNOWN
        return result

    def qualified(self, name: str) -> int:
        """Something imported, not called: a function, a class, a constant."""
        top = name.partition(".")[0]
        short = name.rpartition(".")[2]
        result = 0
        if top == "torch":
            words = torch_words()
            if short in HOST_CLASSES or name in HOST_CONSTANTS:
                return 0
            if short in words.classes or short in words.functions.results:
                result = OBJECT | TORCH
            if not self.ours("torch") or (result and is_public(name)):
                return result
        found = self.world.resolve(name, self.module)
        if found is None:
            return result
        home, thing = found
        if isinstance(thing, ClassInfo):
            return result | self.world.typed(thing)
        if isinstance(thing, Unread):
            return ANY
        return result | (OBJECT if isinstance(thing, FunctionInfo) else home.global_name(short))

    # -- parameters ---------------------------------------------------------------------------

    def parameters(self, info: FunctionInfo) -> dict[str, int]:
        """The grade of each parameter by what it declares, ``self`` left out."""
        found = self._parameters.get(id(info))
        if found is None:
            method = info.owner is not None and not is_static(info.node)
            docstring = ast.get_docstring(info.node, clean=False) or ""
            if info.name == "__init__" and info.owner is not None:
                docstring += ast.get_docstring(info.owner.node, clean=False) or ""
            found = self.declared(info.node, docstring, method=method)
            if info.name == "forward" and found and info.owner is not None:
                first = next(iter(found))
                if parameters_in(found[first]):
                    found[first] |= TENSOR  # as `interpret/parameters.py` assumes
            self._parameters[id(info)] = found
        return found

    def declared(self, node: FunctionNode, docstring: str, *, method: bool) -> dict[str, int]:
        """The grade of each parameter of a function by its annotation or docstring."""
        spec = node.args
        ordinary = [*spec.posonlyargs, *spec.args][1 if method else 0 :]
        found: dict[str, int] = {}
        for position, parameter in enumerate([*ordinary, *spec.kwonlyargs]):
            said = self.stated(parameter.annotation)
            if said is None:
                said = 1 << (PARAMETERS + min(position, MAX_PARAMETERS - 2))
                if docstring and documented(docstring, parameter.arg):
                    said |= ANY
            elif not said & ~LIST and _bare(parameter.annotation):
                said |= 1 << (PARAMETERS + min(position, MAX_PARAMETERS - 2))
            found[parameter.arg] = said
        if spec.vararg is not None:
            said = self.stated(spec.vararg.annotation)
            found[spec.vararg.arg] = (
                1 << (PARAMETERS + MAX_PARAMETERS - 1) if said is None else holding(said)
            )
        if spec.kwarg is not None:
            found[spec.kwarg.arg] = mapping(self.stated(spec.kwarg.annotation) or 0)
        return found

    def bound(self, info: FunctionInfo, given: dict[str, int]) -> dict[str, int]:
        """The grades of the parameters in a call: declared, and what the caller knows."""
        found = dict(self.parameters(info))
        for name, grade in given.items():
            if name in found:
                found[name] |= grade & KNOWN
        return found

    def filled(self, info: FunctionInfo) -> dict[str, int]:
        """Parameters that say nothing of themselves take the tensors that calls give."""
        found = self.parameters(info)
        given = self.world.given.get(id(info))
        if not given:
            return found
        found = dict(found)
        for name, grade in given.items():
            if grade & (TENSOR | WEAK) and parameters_in(found.get(name, 0)):
                found[name] |= grade
        return found

    # -- results ------------------------------------------------------------------------------

    def called(self, info: FunctionInfo, given: dict[str, int]) -> int:
        """What a call of a function of this module returns."""
        said = self.stated(info.node.returns)
        if said is not None and not said & ~LIST:
            return said
        if self.foreign:
            return ANY if said is None else said | element(said)
        long = (info.node.end_lineno or 0) - info.node.lineno > MAX_SUMMARY_LINES
        if self.world.depth >= MAX_CALL_DEPTH or long:
            return said or 0
        parameters = self.bound(info, given)
        key = (id(info), tuple(parameters.values()))
        known = self.world.results.get(key)
        if known is None:
            self.world.results[key] = said or 0
            known = self.world.results[key] = self._result(info, parameters, said)
        return known

    def _result(self, info: FunctionInfo, parameters: dict[str, int], said: int | None) -> int:
        self.world.depth += 1
        judge = self._new(info)
        judge.run(info.node.body, parameters)
        self.world.depth -= 1
        result = judge.returns | (said or 0)
        if any(d.rpartition(".")[2] in ("contextmanager", "asynccontextmanager")
               for d in info.decorators):  # fmt: skip
            result |= element(result)
        return result

    def _new(self, info: FunctionInfo) -> Judge:
        return Judge(self, info.owner, self_name(info))

    def judge(self, info: FunctionInfo) -> Judge:
        """A function judged with what it declares and what calls are known to give it."""
        judge = self.judged.get(id(info))
        if judge is None:
            judge = self.judged[id(info)] = self._new(info)
            judge.start = self.filled(info)
            judge.run(info.node.body, judge.start)
            self._merge(info, judge)
        return judge

    def _merge(self, info: FunctionInfo, judge: Judge) -> None:
        """What a method writes that was judged while its class was being settled."""
        if info.owner is None or id(info.owner) not in self._settled:
            return
        written = self._written[id(info.owner)]
        for name, grade in judge.writes.items():
            before = written.get(name, 0)
            if name not in written or grade & ~before:
                written[name] = before | grade
                self.world.grown = True

    def judge_again(self, info: FunctionInfo) -> bool:
        """Judge once more where something it rests on has grown; True where it had."""
        judge = self.judge(info)
        if judge.start == self.filled(info) and not self._outdated(judge):
            return False
        del self.judged[id(info)]
        new = self.judge(info)
        new.found = new.found or judge.found
        return True

    def _outdated(self, judge: Judge) -> bool:
        owner = judge.owner
        if owner is None:
            return False
        return any(self.attribute(owner, name) & ~grade for name, grade in judge.attributes.items())

    # -- classes ------------------------------------------------------------------------------

    def made(self, info: ClassInfo, given: int) -> int:
        """``Class(...)``."""
        result = of_class(info, self)
        if any(base.rpartition(".")[2] == "NamedTuple" for base in info.bases):
            result |= holding(given & KNOWN)
        return result

    def method(self, info: ClassInfo, name: str) -> FunctionInfo | None:
        """A method of a class, its own or inherited."""
        for base in self.world.lineage(info)[0]:
            if name in base.methods:
                return base.methods[name]
        return None

    def attribute(self, info: ClassInfo, name: str) -> int:
        """``object.name`` for an object of the class."""
        lineage, torch = self.world.lineage(info)
        for base in lineage:
            method = base.methods.get(name)
            if method is not None:
                if any(d.rpartition(".")[2] in PROPERTIES for d in method.decorators):
                    return self.world.facts(base.module).called(method, {})
                return OBJECT
        for base in lineage:
            found = self.world.facts(base.module).own_attribute(base, name)
            if found is not None:
                return found
        if f"{info.name}.{name}" in info.module.classes:
            return self.world.typed(info.module.classes[f"{info.name}.{name}"])
        if self.world.unread_base(info):
            return ANY
        if torch:
            words = torch_words()
            if name in ("weight", "bias"):
                return TENSOR | ROLE
            if name == "param_groups":
                return GROUPS | holding(GROUP)
            if name in words.attributes:
                return words.attributes[name]
            return OBJECT if name in words.members else 0
        return 0

    def own_attribute(self, info: ClassInfo, name: str) -> int | None:
        """What one class says of an attribute; None where it says nothing."""
        said: int | None = None
        if name in info.annotations:
            said = self.stated(info.annotations[name])
            if said is not None and not said & (TENSOR | WEAK) and _tells(said):
                return said
        written = self.written(info)
        if name in written:
            return written[name] | (said or 0)
        if self.foreign and name in info.writers:
            return ANY
        if said is not None:
            return said
        if name in info.assigned:
            return Judge(self, None, "").grade(info.assigned[name]) & KNOWN
        return None

    def written(self, info: ClassInfo) -> dict[str, int]:
        """What the methods of one class write on ``self``, to a fixed point."""
        written = self._written.setdefault(id(info), {})
        if id(info) in self._settled:
            return written
        self._settled.add(id(info))
        methods = info.functions
        if self.foreign:
            methods = [f for f in methods if f.name in CONSTRUCTORS]
        for _ in range(MAX_CLASS_PASSES):
            news = False
            for method in methods:
                judge = self.judge(method)
                if self._outdated(judge):
                    del self.judged[id(method)]
                    judge = self.judge(method)
                for name, grade in judge.writes.items():
                    before = written.get(name, 0)
                    if name not in written or grade & ~before:
                        written[name] = before | grade
                        news = True
            if not news:
                break
        else:
            for name, grade in written.items():
                written[name] = grade | ANY if grade else grade
        return written


def _tells(said: int) -> bool:
    """An annotation with contents says all; a bare container does not."""
    return bool(said & ~LIST) or not said


def _bare(node: ast.expr | None) -> bool:
    """``grads: Sequence`` says that it is one, not of what."""
    return isinstance(node, (ast.Name, ast.Attribute))


def self_name(info: FunctionInfo) -> str:
    """The name of a method's first parameter; "" for functions and static methods."""
    if info.owner is None or is_static(info.node):
        return ""
    arguments = [*info.node.args.posonlyargs, *info.node.args.args]
    return arguments[0].arg if arguments else ""
