"""Import statements inside functions: the names that they bind.

A name is looked up only when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.project.module_index import record_import

if TYPE_CHECKING:
    import ast


def bound(node: ast.Import | ast.ImportFrom, package: str) -> dict[str, str]:
    """Return the names that a statement binds, each with its dotted name.

    ``import a.b`` binds ``a``; ``from a import b as c`` binds ``c`` to ``a.b``.
    """
    return record_import(node, package)[0]
