"""``torch.tensor(v).to(x.device)`` -> the copy is queued where the device is CUDA.

CUDA has read pageable memory when the call returns, and operations that use the copy are queued
after it. MPS promises neither, so the flag tests for CUDA. Nothing can write to new memory.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.safe.non_blocking import queueable
from flake8_torchperf.fixes.shared.tensors import (
    has_one_value,
    is_parameter,
    is_tensor_for_all,
    only_value,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace, Surroundings

# Methods that look at the same memory in another way, or compute on the host.
_KEPT = frozenset(("unsqueeze", "view", "reshape", "squeeze", "t", "expand", "repeat", "float",
                   "double", "half", "int", "long", "bool", "type"))  # fmt: skip


def plan(place: FixPlace) -> Edit | None:
    """Apply to new data that is copied to the device of a tensor."""
    call = _moved(place)
    if call is None or "compiling-guard" in place.site.traits:
        return None
    named = [one.value for one in call.keywords if one.arg in ("device", "other")]
    flag = _flag((*call.args, *named, None)[0], place)
    return Edit((call,), {"flag": flag}) if flag else None


def _flag(device: ast.expr | None, place: FixPlace) -> str:
    """Return the test for a CUDA device; "" if nothing shows that this is a device."""
    around = place.around
    if device is None or not repeatable(device):
        return ""
    match device:
        case ast.Constant(value=str(text)) | ast.Call(args=[ast.Constant(value=str(text))]):
            return "True" if text.partition(":")[0] == "cuda" else ""
        # A caller may pass an array, which has a device too, despite the annotation.
        case ast.Attribute(value=owner, attr="device") if not _is_own(owner):
            return f"{ast.unparse(owner)}.is_cuda" if is_tensor_for_all(owner, around) else ""
    if "as-another" in place.site.traits:
        return f"{ast.unparse(device)}.is_cuda" if is_tensor_for_all(device, around) else ""
    # Despite the annotation, a caller may pass "cuda", which has no `type`.
    known = "device-object" in place.site.traits and not is_parameter(device, around)
    value = only_value(device, around) if isinstance(device, ast.Name) else None
    if isinstance(value, ast.Attribute) and value.attr == "device":
        owner = value.value
        known = known and is_tensor_for_all(owner, around)
        if known and isinstance(owner, ast.Name) and has_one_value(owner, around):
            return f"{owner.id}.is_cuda"
    return f'{ast.unparse(device)}.type == "cuda"' if known else ""


def _is_own(owner: ast.expr) -> bool:
    """True for ``self``."""
    return isinstance(owner, ast.Name) and owner.id == "self"


def _moved(place: FixPlace) -> ast.Call | None:
    """Return the call that moves the result of `torch.tensor` with Python data.

    For ``torch.tensor(v, device=d)``, no shorter code queues the copy.
    """
    call = place.site.node
    if not isinstance(call, ast.Call) or "from-python" not in place.site.traits:
        return None
    if "scalar" in place.site.traits:
        return None  # better filled in than copied
    if queueable(call) is None or not isinstance(call.func, ast.Attribute):
        return None
    return call if _is_new(call.func.value, place.around) else None


def _is_new(node: ast.expr, around: Surroundings) -> bool:
    """True for the result of `torch.tensor`, also after methods whose result lies on the host."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _KEPT:
            return _is_new(inner, around)
        case ast.Subscript(value=inner):
            return _is_new(inner, around)
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
        return False
    if around.qualified(node.func) != "torch.tensor":
        return False
    return all(one.arg == "dtype" for one in node.keywords)


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Queue the copy."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    assert isinstance(call, cst.Call)
    flag = build.keyword("non_blocking", build.expression(edit.facts["flag"]))
    return [build.with_arguments(call, [flag])]
