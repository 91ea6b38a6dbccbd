"""The definitions around a line of a module; of an outline, no other is read."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from flake8_torchperf.project.module_index import FunctionInfo
from flake8_torchperf.project.stores.module_facts import once_per_module

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from flake8_torchperf.project.module_index import ClassInfo, ModuleMap, Span


def code_at(module: ModuleMap, line: int) -> ast.stmt | ast.Module | None:
    """Return the definition at module level that holds a line, or the code outside definitions.

    That is all code in a module that is no outline. None for a definition that another of its name
    replaces: the module has to be read whole for it.
    """
    span = _span_at(module, line)
    if span is None:
        return module.level
    around = _defined_in(module, span)
    return None if around is None else around.tree


def function_at(module: ModuleMap, line: int) -> FunctionInfo | None:
    """Return the function or method whose lines, without decorators, hold a line.

    A function in a function is not listed by its module; the outer one is returned. Its body is not
    queried by that.
    """
    span = _span_at(module, line)
    if span is None:
        return _holding(_outside_spans(module), line)
    around = _defined_in(module, span)
    if around is None or isinstance(around, FunctionInfo):
        return None if around is None else _holding([around], line)
    return _holding(around.by_line, line)


def _span_at(module: ModuleMap, line: int) -> Span | None:
    """Return the lines of the definition around a line; None in a module that is no outline."""
    at = bisect_right(module.spans, line, key=lambda span: span.line) - 1
    return module.spans[at] if at >= 0 and line < module.spans[at].end else None


def _defined_in(module: ModuleMap, span: Span) -> ClassInfo | FunctionInfo | None:
    """Return the function or class in some lines; None if another of its name replaces it."""
    found = (module.classes if span.is_class else module.functions).get(span.name)
    return found if found is not None and span.line <= found.tree.lineno < span.end else None


@once_per_module
def _outside_spans(module: ModuleMap) -> list[FunctionInfo]:
    """Return the functions of a module by their lines; of an outline, those in branches."""
    found = (one for one in module.defined if _span_at(module, _first_line(one)) is None)
    return sorted(found, key=_first_line)


def _holding(functions: Sequence[FunctionInfo], line: int) -> FunctionInfo | None:
    """Return that of some functions, by their lines, which holds a line."""
    at = bisect_right(functions, line, key=_first_line) - 1
    if at < 0 or line > (functions[at].tree.end_lineno or line):
        return None
    return functions[at]


def _first_line(info: FunctionInfo) -> int:
    return info.tree.lineno
