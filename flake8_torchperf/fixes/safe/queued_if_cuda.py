"""``torch.tensor(v, device=x.device)`` -> made on the host, its copy queued where that is CUDA.

CUDA has read pageable memory when the call returns, and what uses the copy comes behind it in the
queue. MPS promises neither, so that the flag asks for CUDA. Nothing can write to new memory.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.findings.model import Edit
from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.safe.non_blocking import queueable
from flake8_torchperf.fixes.shared.tensors import is_parameter, is_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import Place, Surroundings

_LISTS = frozenset(("builtins.list", "builtins.tuple", "builtins.sorted"))
# Methods that look at the same memory in another way, or compute on the host.
_KEPT = frozenset(("unsqueeze", "view", "reshape", "squeeze", "t", "expand", "repeat", "float",
                   "double", "half", "int", "long", "bool", "type"))  # fmt: skip


def plan(place: Place) -> Edit | None:
    """Apply to new data that goes where a tensor is."""
    found = planned(place)
    if found is None or "compiling-guard" in place.site.traits:
        return None
    call, index = found
    if index > 0 and not is_python(call.args[0], place):
        return None  # of a tensor on a device it would be a copy to the host
    flag = _flag(_device(call, index), place)
    return Edit((call,), {"device": index, "flag": flag, "names": True}) if flag else None


def is_python(data: ast.expr, place: Place) -> bool:
    """Is what `torch.tensor` is given surely Python's, and no tensor?"""
    match data:
        case ast.List() | ast.Tuple() | ast.ListComp() | ast.Attribute(attr="shape"):
            return True
        case ast.BinOp(left=left, right=right):
            return is_python(left, place) or is_python(right, place)
        case ast.Call(func=func):
            return place.around.qualified(func) in _LISTS
    return False


def _flag(device: ast.expr | None, place: Place) -> str:
    """What asks whether a device is CUDA; "" where it is not known to be a device at all."""
    around = place.around
    if device is None or not repeatable(device):
        return ""
    match device:
        case ast.Constant(value=str(text)) | ast.Call(args=[ast.Constant(value=str(text))]):
            return "True" if text.partition(":")[0] == "cuda" else ""
        case ast.Attribute(value=owner, attr="device") if is_tensor(owner, around):
            return f"{ast.unparse(owner)}.is_cuda"
    if "as-another" in place.site.traits:
        return f"{ast.unparse(device)}.is_cuda" if is_tensor(device, around) else ""
    # Whatever is declared, a caller may pass "cuda", which has no type.
    known = "device-object" in place.site.traits and not is_parameter(device, around)
    return f'{ast.unparse(device)}.type == "cuda"' if known else ""


def planned(place: Place) -> tuple[ast.Call, int] | None:
    """The call that copies data of Python's, and which argument of `torch.tensor` names the device.

    -1 where a method moves what `torch.tensor` made.
    """
    call = place.site.node
    if not isinstance(call, ast.Call) or "from-python" not in place.site.traits:
        return None
    if "scalar" in place.site.traits:
        return None  # better filled in than copied
    made = _maker(call, place.around)
    if made is not None:
        index = _named_device(made)
        return None if index is None else (made, index)
    if queueable(call) is None or not isinstance(call.func, ast.Attribute):
        return None
    return (call, -1) if _is_new(call.func.value, place.around) else None


def _maker(node: ast.expr, around: Surroundings) -> ast.Call | None:
    """The call of `torch.tensor`, which copies what it is given."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Name)):
        return None
    return node if around.qualified(node.func) == "torch.tensor" else None


def _named_device(made: ast.Call) -> int | None:
    names = [one.arg for one in made.keywords]
    if len(made.args) != 1 or "device" not in names or not {*names} <= {"device", "dtype"}:
        return None
    index = names.index("device")
    # It is asked for behind the data now, and behind the dtype.
    return 1 + index if repeatable(made.keywords[index].value) else None


def _is_new(node: ast.expr, around: Surroundings) -> bool:
    """Is it what `torch.tensor` made, seen through what stays on the host?"""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _KEPT:
            return _is_new(inner, around)
        case ast.Subscript(value=inner):
            return _is_new(inner, around)
    made = _maker(node, around)
    return made is not None and all(one.arg == "dtype" for one in made.keywords)


def _device(call: ast.Call, index: int) -> ast.expr | None:
    """What says where a tensor goes: a device, or a tensor that is there."""
    if index > 0:
        return call.keywords[index - 1].value
    named = [one.value for one in call.keywords if one.arg in ("device", "other")]
    return (*call.args, *named, None)[0]


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Make the tensor on the host, and queue its copy."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    assert isinstance(call, cst.Call)
    flag = build.keyword("non_blocking", build.expression(edit.facts["flag"]))
    index = edit.facts["device"]
    if index < 0:
        return [build.with_arguments(call, [flag])]
    device = cst.Arg(build.bare(call.args[index].value))
    if edit.facts["names"]:
        arguments = list(call.args)
        # Another device may be the default.
        arguments[index] = arguments[index].with_changes(value=cst.SimpleString('"cpu"'))
        made = call.with_changes(args=arguments, lpar=[], rpar=[])
    else:
        made = build.without_argument(call, index).with_changes(lpar=[], rpar=[])
    moved = cst.Call(cst.Attribute(made, cst.Name("to")), [device])
    return [build.in_place_of(call, build.with_arguments(moved, [flag]))]
