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


def definition_at(module: ModuleMap, line: int) -> ClassInfo | FunctionInfo | None:
    """Return the function or class at module level of an outline whose lines hold a line.

    None for a line outside definitions, for one of a definition that another of its name replaces,
    and in a module that is no outline.
    """
    span = _span_at(module, line)
    if span is None:
        return None
    found = (module.classes if span.is_class else module.functions).get(span.name)
    if found is None:
        return None
    return found if span.line <= found.tree.lineno < span.end else None


def code_at(module: ModuleMap, line: int) -> ast.stmt | ast.Module | None:
    """Return the definition at module level that holds a line, or the code outside definitions.

    That is all code in a module that is no outline. None where it has to be read whole.
    """
    around = definition_at(module, line)
    if around is not None:
        return around.tree
    if module.parsed is not None:
        return module.parsed
    return module.level if _span_at(module, line) is None else None


def _span_at(module: ModuleMap, line: int) -> Span | None:
    at = bisect_right(module.spans, line, key=lambda span: span.line) - 1
    return module.spans[at] if at >= 0 and line < module.spans[at].end else None


def function_at(module: ModuleMap, line: int) -> FunctionInfo | None:
    """Return the function or method whose lines, without decorators, hold a line.

    A function in a function is not listed by its module; the outer one is returned. Its body is not
    queried by that.
    """
    if module.parsed is not None or _span_at(module, line) is None:
        return _holding(_outside_spans(module), line)
    around = definition_at(module, line)
    if around is None or isinstance(around, FunctionInfo):
        return None if around is None else _holding([around], line)
    return _holding(around.by_line, line)


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
