"""Keyword options that a fix gives to a call: planned on the ast, written with libcst."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import libcst as cst


def options_set(call: ast.AST | None, options: Mapping[str, str]) -> Edit | None:
    """Return the edit that passes ``name=value``; None for calls with ``*args`` or ``**kwargs``."""
    if not isinstance(call, ast.Call) or any(one.arg is None for one in call.keywords):
        return None
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    return Edit((call,), options)


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Change the options that are passed, and add those that are not."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    assert isinstance(call, cst.Call)
    given = {one.keyword.value: at for at, one in enumerate(call.args) if one.keyword is not None}
    changed, added = list(call.args), []
    for name, text in edit.facts.items():
        value = build.expression(text)
        if name in given:
            changed[given[name]] = changed[given[name]].with_changes(value=value)
        else:
            added.append(build.keyword(name, value))
    new = call.with_changes(args=changed)
    return [build.with_arguments(new, added) if added else new]
