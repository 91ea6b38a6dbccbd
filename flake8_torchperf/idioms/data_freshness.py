"""Host data that may differ from call to call: it depends on a parameter, or on a loop's round."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.bindings import bound_in
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.syntax.traversal import plain_names

if TYPE_CHECKING:
    from flake8_torchperf.project.module_index import FunctionNode
    from flake8_torchperf.syntax.traversal import Nodes


class DataFreshness:
    """The sources of the data that one function makes tensors of, by its syntax alone."""

    def __init__(self, node: FunctionNode, nodes: Nodes, own: str) -> None:
        spec = node.args
        rest = [parameter for parameter in (spec.vararg, spec.kwarg) if parameter is not None]
        self._parameters = {one.arg for one in (*named_parameters(spec), *rest)} - {own}
        self._calls = {id(call) for call in nodes.of(ast.Call)}
        self._varying: set[str] | None = None
        self._bound: dict[str, list[ast.expr]] = {}
        for assign in nodes.of(ast.Assign):
            for target in assign.targets:
                self._bind(target, assign.value)
        for annotated in nodes.of(ast.AnnAssign):
            if annotated.value is not None:
                self._bind(annotated.target, annotated.value)
        self._entries: set[str] = set()
        for loop in nodes.of_any(ast.For, ast.comprehension):
            self._entries |= bound_in(loop.target)
            self._bind(loop.target, loop.iter)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        for name in bound_in(target):
            self._bound.setdefault(name, []).append(value)

    def holds(self, call: ast.Call) -> bool:
        """True if the call stands in this function."""
        return id(call) in self._calls

    def varies(self, data: ast.expr) -> bool:
        """True if the data may differ in the next step: it depends on a parameter or on a loop."""
        if self._varying is None:
            self._varying = self._depending()
        return not self._varying.isdisjoint(plain_names(data))

    def _depending(self) -> set[str]:
        """Return the names whose values depend on parameters or loop targets, directly or not."""
        users: dict[str, list[str]] = {}
        for name, values in self._bound.items():
            for used in {used for value in values for used in plain_names(value)}:
                users.setdefault(used, []).append(name)
        found = self._parameters | self._entries
        waiting = list(found)
        while waiting:
            new = [name for name in users.get(waiting.pop(), ()) if name not in found]
            found.update(new)
            waiting += new
        return found
