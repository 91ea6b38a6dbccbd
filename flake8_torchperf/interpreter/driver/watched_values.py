"""The values of the expressions in one line of a module, as the interpreter last saw them."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from flake8_torchperf.interpreter.driver.function_analysis import (
    interpret_function,
    interpret_module,
)
from flake8_torchperf.interpreter.engine.dispatch import EXPRESSIONS
from flake8_torchperf.interpreter.events.recording import emit
from flake8_torchperf.interpreter.stated_types.class_hierarchy import find_method
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.values.site import SiteKind
from flake8_torchperf.values.values import UNKNOWN, ClassValue, Function, Instance, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis, Budget
    from flake8_torchperf.interpreter.engine.dispatch import Expression
    from flake8_torchperf.interpreter.engine.place import Context, Interpreted
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# The operation of the sites that are recorded for the watched expressions.
WATCHED_SITE = "watched"


class Watched:
    """The values of the expressions that begin on one line, by expression.

    ``met`` holds a site for each of them, and another for a tensor, as if it were read there: so a
    line without a site can be judged as those with one are.
    """

    met: Interpreted

    def __init__(self, module: ModuleMap, line: int) -> None:
        self._module = module
        self._line = line
        self._values: dict[int, tuple[ast.expr, Value]] = {}
        self._budgets: dict[int, Budget] = {}
        self._is_closed = False

    def note(self, node: ast.expr, value: Value, ctx: Context) -> None:
        """Store a value; a known one is not replaced if a later round knows less."""
        if ctx.module is not self._module:
            return
        if not self._is_closed:
            self._budgets[id(ctx.budget)] = ctx.budget
        if node.lineno != self._line:
            return
        _record(node, value, ctx)
        if self._is_closed:
            return
        if value is not UNKNOWN or id(node) not in self._values:
            self._values[id(node)] = (node, value)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the sites again in what is interpreted within; the values stay as they are."""
        self._is_closed = True
        with _watching(self):
            yield

    def called(self, analysis: Analysis) -> list[FunctionInfo]:
        """Return the functions of the project that the calls in the line run, each once."""
        found: dict[str, FunctionInfo] = {}
        for node, _ in self.values():
            info = self._callee(node, analysis) if isinstance(node, ast.Call) else None
            if info is not None:
                found.setdefault(info.key, info)
        return list(found.values())

    def _callee(self, call: ast.Call, analysis: Analysis) -> FunctionInfo | None:
        _, value = self._values.get(id(call.func), (None, UNKNOWN))
        owner, names = value, ["forward", "__call__"]
        if isinstance(value, Function):
            return value.info
        if isinstance(value, ClassValue):
            names = ["__init__"]
        elif isinstance(call.func, ast.Attribute):
            _, owner = self._values.get(id(call.func.value), (None, UNKNOWN))
            names = [call.func.attr]
        if not isinstance(owner, (ClassValue, Instance)) or owner.info is None:
            return None
        methods = (find_method(owner.info, name, analysis) for name in names)
        return next((method.info for method in methods if method is not None), None)

    @property
    def is_spent(self) -> bool:
        """True if the steps that the analysis of one function may take did not suffice."""
        return any(budget.steps < 0 for budget in self._budgets.values())

    def values(self) -> list[tuple[ast.expr, Value]]:
        """Return the expressions with their values, in the order of the text, longest first."""
        return sorted(
            self._values.values(),
            key=lambda one: (one[0].col_offset, -(one[0].end_col_offset or 0)),
        )


def _record(node: ast.expr, value: Value, ctx: Context) -> None:
    emit(ctx, SiteKind.CALL, WATCHED_SITE, node)
    if isinstance(value, Tensor):
        emit(ctx, SiteKind.HOST_READ, WATCHED_SITE, node, value)


@contextmanager
def _watching(watched: Watched) -> Iterator[None]:
    """Report each expression that is evaluated within to ``watched``."""
    before = dict(EXPRESSIONS)
    EXPRESSIONS.update({kind: _noted(handler, watched) for kind, handler in before.items()})
    try:
        yield
    finally:
        EXPRESSIONS.update(before)


def _noted(handler: Expression, watched: Watched) -> Expression:
    def evaluated(node: ast.expr, env: dict[str, Value], ctx: Context) -> Value:
        value = handler(node, env, ctx)
        watched.note(node, value, ctx)
        return value

    return evaluated


def values_in_line(
    module: ModuleMap, line: int, analysis: Analysis
) -> tuple[FunctionInfo | None, Watched]:
    """Return the function around a line, None at module level, and the values in the line."""
    around = function_at(module, line)
    watched = Watched(module, line)
    with _watching(watched):
        if around is None:
            met = interpret_module(module, analysis)
        else:
            met = interpret_function(around, analysis)
    watched.met = replace(
        met, sites=tuple(one for one in met.sites if one.operation == WATCHED_SITE)
    )
    return around, watched
