"""``y = x.to("cpu", non_blocking=True)``, read at once -> ``y = x.to("cpu")``, which waits.

A number that was read too early is the only thing that changes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.shared.tensors import only_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace


def plan(place: FixPlace) -> Edit | None:
    """Apply to a copy, or the only value of a name, that is read before anything waits for it."""
    read: ast.AST | None = place.site.operand_node
    if isinstance(read, ast.Name):
        read = only_value(read, place.around)
    match read:
        case ast.Call(func=ast.Attribute(attr="to"), keywords=keywords):
            for number, one in enumerate(keywords):
                flag = isinstance(one.value, ast.Constant) and one.value.value is True
                if one.arg == "non_blocking" and flag:
                    return Edit((read,), {"at": len(read.args) + number})
    return None


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Remove the flag."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    assert isinstance(call, cst.Call)
    return [build.without_argument(call, edit.facts["at"])]
