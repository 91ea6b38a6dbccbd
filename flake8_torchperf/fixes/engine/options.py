"""Keyword options that a fix gives to a call: planned on the ast, written with libcst."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst


def option_set(call: ast.AST | None, name: str, value: str) -> Edit | None:
    """Pass ``name=value``, in the place of what is passed there; None where that is not known."""
    if not isinstance(call, ast.Call) or any(one.arg is None for one in call.keywords):
        return None
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    return Edit((call,), {"option": name, "value": value})


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Change the option where it is passed, and add it where it is not."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    assert isinstance(call, cst.Call)
    name, value = edit.facts["option"], build.expression(edit.facts["value"])
    arguments = list(call.args)
    for index, one in enumerate(arguments):
        if one.keyword is not None and one.keyword.value == name:
            arguments[index] = one.with_changes(value=value)
            return [call.with_changes(args=arguments)]
    return [build.with_arguments(call, [build.keyword(name, value)])]
