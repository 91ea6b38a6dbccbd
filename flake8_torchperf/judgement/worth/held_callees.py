"""The functions that a call of a variable or an attribute may run.

They are asked for where a call would else count as one of a model: by what the project assigns to
the name, keeps in the attribute or gives the parameter.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method, is_abstract
from flake8_torchperf.project.module_index import ClassInfo, FunctionInfo

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.program.running import Meant, Program
    from flake8_torchperf.project.module_index import ModuleMap

# The methods that a call of an object runs; torch's modules run the first that there is.
_RUN_BY_CALLS = ("__call__", "forward")
# The attribute of torch's modules that compute a loss, which is a few operations.
_OF_LOSSES = "reduction"


class HeldCallees:
    """The functions of the project that calls run by what the program shows an expression to hold.

    Such a function comes as itself, a loss of torch as None.
    """

    def __init__(self, analysis: Analysis, program: Program) -> None:
        self._analysis = analysis
        self._program = program

    def of(self, func: ast.expr, module: ModuleMap) -> list[FunctionInfo | None]:
        """Return what a call of an expression may run; empty unless all of it is known."""
        found = self._called(func, module)
        if found or not isinstance(func, ast.Attribute):
            return found
        if self._analysis.table.method(func.attr) is not None:
            return []  # mostly one of a tensor
        return self._all(self._meant(func.value, module), (func.attr,))

    def _called(self, func: ast.expr, module: ModuleMap) -> list[FunctionInfo | None]:
        return self._all(self._meant(func, module), _RUN_BY_CALLS)

    def _meant(self, node: ast.expr, module: ModuleMap) -> list[Meant | None]:
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return []
        return self._program.objects_of(node, module)

    def _all(
        self, meant: Iterable[Meant | None], names: tuple[str, ...]
    ) -> list[FunctionInfo | None]:
        """Return what calls of all values run, by the names of methods; empty if one is unknown."""
        found: list[FunctionInfo | None] = []
        for one in meant:
            if one is None:
                return []
            match one.definition:
                case FunctionInfo() as function if names is _RUN_BY_CALLS:
                    found.append(function)
                case ClassInfo() as owner if one.is_object:
                    methods = self._methods(owner, names)
                    if not methods:
                        return []
                    found += methods
                case str() as name if one.is_object and self._is_loss(name, names):
                    found.append(None)
                case _:
                    return []
        return found

    def _methods(self, owner: ClassInfo, names: tuple[str, ...]) -> list[FunctionInfo]:
        """Return the method that an object of a class runs, and those of the classes below it."""
        found: list[FunctionInfo] = []
        for name in names:
            method = find_method(owner, name, self._analysis)
            if method is not None:
                found = [method.info]
                below = self._program.classes_below(owner, name)
                found += [one.methods[name] for one in below]
                break
        return [one for one in found if not is_abstract(one)]

    def _is_loss(self, name: str, names: tuple[str, ...]) -> bool:
        klass = self._analysis.table.klass(name)
        is_module = klass is not None and klass.kind == "module" and names is _RUN_BY_CALLS
        return klass is not None and is_module and klass.attribute(_OF_LOSSES) is not None
