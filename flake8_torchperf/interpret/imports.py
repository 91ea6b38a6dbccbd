"""Import statements inside functions: which names they bind to what.

Enters a libcst import and the package it stands in; leaves dotted names by the names they are
bound to. Nothing is looked up before it is used.
"""

from __future__ import annotations

import libcst as cst

from flake8_torchperf.interpret.annotations import dotted_name


def bound(node: cst.Import | cst.ImportFrom, package: str) -> dict[str, str]:
    """``import a.b`` binds ``a``; ``from a import b as c`` binds ``c`` to ``a.b``."""
    if isinstance(node.names, cst.ImportStar):
        return {}
    source = "" if isinstance(node, cst.Import) else _source(node, package)
    found: dict[str, str] = {}
    for alias in node.names:
        name = dotted_name(alias.name)
        given = alias.asname.name if alias.asname is not None else None
        if isinstance(given, cst.Name):
            found[given.value] = f"{source}.{name}" if source else name
        elif isinstance(node, cst.Import):
            head = name.partition(".")[0]
            found[head] = head
        else:
            found[name] = f"{source}.{name}" if source else name
    return found


def _source(node: cst.ImportFrom, package: str) -> str:
    """The module that names are imported from, relative dots resolved."""
    module = "" if node.module is None else dotted_name(node.module)
    if not node.relative:
        return module
    base = package.split(".") if package else []
    base = base[: len(base) - (len(node.relative) - 1)]
    return ".".join([*base, module] if module else base)
