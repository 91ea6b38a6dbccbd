"""Adds the imports that new text needs, each once, among those of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def with_imports(module: cst.Module, names: Iterable[str]) -> cst.Module:
    """Return the module with ``import NAME`` for each name, after the first import of its package.

    Without such an import, they follow the last import at the top of the file, or the docstring.
    """
    for name in dict.fromkeys(names):
        if not any(_imports(statement, name) for statement in module.body):
            at = _place(module.body, name)
            body = [*module.body]
            body.insert(at, _statement(name))
            module = module.with_changes(body=body)
    return module


def _statement(name: str) -> cst.SimpleStatementLine:
    parsed = cst.parse_statement(f"import {name}\n")
    assert isinstance(parsed, cst.SimpleStatementLine)
    return parsed


def _imports(statement: cst.CSTNode, name: str) -> bool:
    """True if a statement imports ``name`` without another name for it."""
    for small in _small(statement):
        if isinstance(small, cst.Import):
            return any(one.asname is None and one.evaluated_name == name for one in small.names)
    return False


def _place(body: Sequence[cst.CSTNode], name: str) -> int:
    package = name.partition(".")[0]
    last = 0
    for index, statement in enumerate(body):
        small = _small(statement)
        if any(_package(one) == package for one in small):
            return index + 1
        if any(isinstance(one, (cst.Import, cst.ImportFrom)) for one in small) or (
            index == 0 and any(_is_text(one) for one in small)
        ):
            last = index + 1
    return last


def _small(statement: cst.CSTNode) -> Sequence[cst.BaseSmallStatement]:
    return statement.body if isinstance(statement, cst.SimpleStatementLine) else ()


def _is_text(statement: cst.BaseSmallStatement) -> bool:
    return isinstance(statement, cst.Expr) and isinstance(
        statement.value, (cst.SimpleString, cst.ConcatenatedString)
    )


def _package(statement: cst.BaseSmallStatement) -> str:
    """Return the package of an import; "" for a relative import and for other statements."""
    if isinstance(statement, cst.Import):
        return statement.names[0].evaluated_name.partition(".")[0]
    if isinstance(statement, cst.ImportFrom) and statement.module and not statement.relative:
        full = statement.module
        while isinstance(full, cst.Attribute):
            full = full.value  # type: ignore[assignment]
        return full.value if isinstance(full, cst.Name) else ""
    return ""
