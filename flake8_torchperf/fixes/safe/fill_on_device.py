"""``torch.tensor(0.5, device=d)`` -> ``torch.full((), 0.5, device=d)``: filled by the device.

Zeros and ones are made by ``torch.zeros`` and ``torch.ones``.

For one number that is written there or proved to be whole, and for lists that repeat one:
`torch.full` and `torch.tensor` then give the same bits and raise the same errors, in every dtype.
"""

from __future__ import annotations

import ast
import math
import re
from typing import TYPE_CHECKING

from flake8_torchperf.findings.finding import Edit
from flake8_torchperf.fixes.safe.device_argument import where_to
from flake8_torchperf.fixes.shared.code import argument_text
from flake8_torchperf.fixes.shared.factories import spelt_dtype
from flake8_torchperf.fixes.shared.numbers import is_real, is_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import libcst as cst

    from flake8_torchperf.fixes.engine.surroundings import FixPlace

# Who imports these handles fake tensors, or is called with them.
_OF_FAKES = ("torch._subclasses", "torch._dynamo", "torch._inductor", "torch._functorch",
             "torch.fx", "torch.export", "torch._export")  # fmt: skip
_MAKERS = frozenset(("torch.tensor", "torch.as_tensor"))
# Constructors of data on the host, by the dtype that they give it.
_TYPED = {
    "torch.LongTensor": "torch.int64",
    "torch.IntTensor": "torch.int32",
    "torch.FloatTensor": "torch.float32",
    "torch.DoubleTensor": "torch.float64",
}
_ALLOWED = frozenset(("dtype", "device", "requires_grad"))
NUMBER_CONSTANTS = {
    "math.inf", "math.nan", "math.pi", "math.e", "torch.inf", "torch.nan", "torch.pi",
    "numpy.inf", "numpy.nan", "numpy.pi", "math.tau",
}  # fmt: skip
# `torch.full` raises for a larger number of float32, where `torch.tensor` makes it infinite.
LARGEST = 3.4e38
# Whole numbers up to here are exact in every dtype of floats, so that rounding twice rounds never.
EXACT = 8
# In these dtypes no number is too large for one of both functions alone.
_ALIKE = frozenset(("torch.int8", "torch.int16", "torch.short", "torch.int32", "torch.int",
                    "torch.int64", "torch.long", "torch.bool", "torch.half", "torch.float16",
                    "torch.bfloat16", "torch.double", "torch.float64"))  # fmt: skip
# Attributes of `torch.finfo` whose number every dtype of floats can hold or round.
_SMALL = frozenset(("eps", "tiny", "smallest_normal", "resolution"))


def plan(place: FixPlace) -> Edit | None:
    """Apply to a tensor of one number that is made on a device, or moved there at once.

    Not in modules that handle fake tensors: the number of a fake `torch.tensor` can be read, that
    of a fake `torch.full` cannot. Nor where a device is only tried out: a copy works on devices
    for which torch has no kernels.
    """
    fake = any(name.startswith(_OF_FAKES) for name in place.around.module.imports.values())
    return None if fake or _tries_device(place) else filled(place, _is_alike)


def _tries_device(place: FixPlace) -> bool:
    """True if the tensor is thrown away where an error is caught."""
    statement = place.around.statement(place.site.node)
    match statement:
        case ast.Expr() | ast.Assign(targets=[ast.Name(id="_")]):
            return isinstance(place.around.parent(statement), ast.Try)
    return False


def filled(
    place: FixPlace, allowed: Callable[[ast.Call, dict[str, str], FixPlace], bool]
) -> Edit | None:
    """The edit for data that ``allowed(call, moved, place)`` lets be filled in."""
    call = place.site.node
    if "compiling-guard" in place.site.traits:
        return None  # an exporter gives the number that `torch.full` makes another dtype
    if not isinstance(call, ast.Call) or not isinstance(call.func, (ast.Attribute, ast.Name)):
        return None
    made, moved = call, dict[str, str]()
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda", "type_as"):
        where = where_to(call, "as-another" in place.site.traits)
        if where is None or not isinstance(call.func.value, ast.Call):
            return None
        made, moved = call.func.value, where
    if not _is_plain(made, moved) or not allowed(made, moved, place):
        return None
    size = _size(made.args[0], place)
    kept = {**_dtype_of_class(made, place), **moved, **_dtype_of_whole(made, moved, place)}
    plain = plain_name(_leaf(made.args[0])) if _has_dtype(made, kept) else ""
    name = _maker(made, plain or "full", place)
    if size is None or not name:
        return None
    if plain:
        size = re.sub(r"^\((.+),\)$", r"\1", size)
    facts = {"size": size, "name": name, "moves": bool(moved), "given": kept, "plain": bool(plain)}
    unnamed = name.startswith("torch.") and not place.around.name_of("torch")
    return Edit((call,), facts, ("torch",) if unnamed else ())


def _dtype_of_class(made: ast.Call, place: FixPlace) -> dict[str, str]:
    """Return the dtype of ``torch.LongTensor``; none for other calls."""
    typed = _TYPED.get(place.around.qualified(made.func))
    written = place.around.reach(spelt_dtype(typed, place.around), made) if typed else None
    return {"dtype": written[0]} if written else {}


def plain_name(number: ast.expr) -> str:
    """Return "zeros" or "ones" for a number written as such, else ""."""
    match number:
        case ast.Constant(value=float() | int() as value) if not isinstance(value, bool):
            return {"0.0": "zeros", "1.0": "ones"}.get(str(float(value)), "") if value < 2 else ""
    return ""


def _has_dtype(made: ast.Call, given: dict[str, str]) -> bool:
    """True if zeros have the dtype of the data: it is stated, or the data is a float."""
    told = "dtype" in given or any(one.arg == "dtype" for one in made.keywords)
    leaf = _leaf(made.args[0])
    return told or _is_new(made) or (isinstance(leaf, ast.Constant) and type(leaf.value) is float)


def _dtype_of_whole(made: ast.Call, moved: dict[str, str], place: FixPlace) -> dict[str, str]:
    """The dtype of a whole number that is zero, one or computed.

    Zeros and ones are floats unless it is stated. torch's first ONNX exporter follows sizes
    into `torch.full`, and takes a number whose dtype is not stated for a float.
    """
    leaf = _leaf(made.args[0])
    told = "dtype" in moved or any(one.arg == "dtype" for one in made.keywords)
    told = told or bool(_dtype_of_class(made, place))
    if told or _is_new(made) or (_number(leaf, place) is not None and not plain_name(leaf)):
        return {}
    if not is_whole(leaf, place.around):
        return {}  # a dtype would round a float that a caller passes
    written = place.around.reach(spelt_dtype("torch.int64", place.around), made)
    return {"dtype": written[0]} if written and not written[1] else {}


def _maker(made: ast.Call, name: str, place: FixPlace) -> str:
    """Return how the call that fills is written; "" if this call makes no tensor of data."""
    func = made.func
    if isinstance(func, ast.Attribute) and func.attr == "new_tensor":
        return f"new_{name}"
    called = place.around.qualified(func)
    if called in _TYPED and not isinstance(_list(made.args[0]), ast.List):
        return ""  # a number is a size
    if called not in _MAKERS and called not in _TYPED:
        return ""
    if isinstance(func, ast.Attribute):
        return name
    return f"{place.around.name_of('torch') or 'torch'}.{name}"


def _size(data: ast.expr, place: FixPlace) -> str | None:
    """The size of nested lists that repeat one element; None where they are not known to."""
    sizes: list[str] = []
    if isinstance(data, ast.BinOp) and isinstance(data.left, ast.List):
        repeated = _list(data)
        if not isinstance(repeated, ast.List) or len(repeated.elts) != 1:
            return None
        sizes, data = [argument_text(place, data.right)], repeated.elts[0]
    while isinstance(data, (ast.List, ast.Tuple)):
        texts = {ast.dump(one) for one in data.elts}
        if len(texts) != 1 or isinstance(data.elts[0], ast.Starred):
            return None
        if len(data.elts) > 1 and not _is_constant(_leaf(data)):
            return None  # evaluated once, where it was evaluated several times
        sizes.append(str(len(data.elts)))
        data = data.elts[0]
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def _list(data: ast.expr) -> ast.expr:
    """Return the list in ``[x] * n``, where ``n`` is a size; other data as it is."""
    match data:
        case ast.BinOp(left=ast.List() as repeated, op=ast.Mult(), right=count) if _counts(count):
            return repeated
    return data


def _counts(node: ast.expr) -> bool:
    """True for ``len(x)``, ``x.size(0)`` and ``x.shape[0]``, which are no negative numbers."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[_], keywords=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=[_], keywords=[]):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant()):
            return True
    return False


def _leaf(data: ast.expr) -> ast.expr:
    data = _list(data)
    while isinstance(data, (ast.List, ast.Tuple)) and data.elts:
        data = data.elts[0]
    return data


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
    )


def _is_plain(made: ast.Call, moved: dict[str, str]) -> bool:
    """True if the only arguments are the data, a device, and others that `torch.full` takes."""
    keywords = {one.arg for one in made.keywords}
    if not moved and "device" not in keywords and not _is_new(made):
        return False  # a tensor filled on the host would still be copied
    if len(made.args) != 1 or None in keywords or not _ALLOWED.issuperset(map(str, keywords)):
        return False
    return not moved.keys() & keywords and not (moved and "requires_grad" in keywords)


def _is_alike(made: ast.Call, moved: dict[str, str], place: FixPlace) -> bool:
    """True if filling gives the same bits, and the same errors."""
    keywords = {one.arg: one.value for one in made.keywords}
    leaf = _leaf(made.args[0])
    value = _number(leaf, place)
    typed = _TYPED.get(place.around.qualified(made.func))
    repeats = isinstance(_list(made.args[0]), ast.List) and isinstance(made.args[0], ast.BinOp)
    if repeats and typed is None and "dtype" not in keywords:
        return False  # an empty list holds floats
    if typed is not None:
        return "dtype" not in moved and _is_of_class(leaf, value, typed, place)
    if value is None:
        rounds = "dtype" in moved or _is_new(made)
        return not rounds and _is_proved(leaf, keywords.get("dtype"), place)
    if "dtype" in moved:
        return abs(value) <= EXACT and value >= 0 and value == int(value)
    return not math.isfinite(value) or abs(value) <= LARGEST


def _is_of_class(leaf: ast.expr, value: float | None, dtype: str, place: FixPlace) -> bool:
    """True if a number is the same in a dtype, without an error in only one of both ways."""
    if dtype in ("torch.int64", "torch.int32"):
        small = value is None or abs(value) <= EXACT
        return small and dtype == "torch.int64" and is_whole(leaf, place.around)
    return value is not None and (not math.isfinite(value) or abs(value) <= LARGEST)


def _is_new(made: ast.Call) -> bool:
    return isinstance(made.func, ast.Attribute) and made.func.attr == "new_tensor"


def _is_proved(leaf: ast.expr, dtype: ast.expr | None, place: FixPlace) -> bool:
    """True for an ``int`` for every caller, and for a number cast to a dtype that limits none."""
    if dtype is None:
        return is_whole(leaf, place.around)
    if place.around.qualified(dtype) in _ALIKE:
        return is_real(leaf, place.around)
    return is_whole(leaf, place.around)


def _number(node: ast.expr, place: FixPlace) -> float | None:
    """The number that an expression is; None where it is not written there."""
    match node:
        case ast.Constant(value=bool()):
            return None  # `torch.jit.trace` knows no `full` of a bool
        case ast.Constant(value=value) if isinstance(value, (int, float)):
            try:
                return float(value)
            except OverflowError:
                return None
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _number(operand, place)
            return None if inner is None else -inner
        case ast.Attribute(value=ast.Call(func=func), attr=name) if name in _SMALL:
            return 0.5 if place.around.qualified(func) == "torch.finfo" else None
        case ast.Attribute() | ast.Name() if place.around.qualified(node) in NUMBER_CONSTANTS:
            return math.nan
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str(text))]):
            known = place.around.qualified(node.func) == "builtins.float"
            return math.nan if known and text.strip("+-").lower() in ("inf", "nan") else None
    return None


def rewrite(nodes: Sequence[cst.CSTNode], edit: Edit) -> Sequence[cst.CSTNode]:
    """Write the call that fills."""
    import libcst as cst

    from flake8_torchperf.fixes.engine import build

    (call,) = nodes
    assert isinstance(call, cst.Call)
    made: cst.BaseExpression = call
    if edit.facts["moves"]:
        assert isinstance(call.func, cst.Attribute)
        made = call.func.value
    assert isinstance(made, cst.Call)
    name = edit.facts["name"]
    func = made.func
    if isinstance(func, cst.Attribute) and "." not in name:
        func = func.with_changes(attr=cst.Name(name))
    else:
        func = build.expression(name)
    data = made.args[0]
    leaf = data.value
    if isinstance(leaf, cst.BinaryOperation) and isinstance(leaf.left, cst.List):
        leaf = leaf.left
    while isinstance(leaf, (cst.List, cst.Tuple)):
        leaf = leaf.elements[0].value
    size = build.expression(edit.facts["size"])
    first = [cst.Arg(size, comma=build.COMMA), data.with_changes(value=leaf)]
    if edit.facts["plain"]:
        first = [data.with_changes(value=size)]
    filled = made.with_changes(func=func, args=[*first, *made.args[1:]])
    given = [
        build.keyword(key, build.expression(text)) for key, text in edit.facts["given"].items()
    ]
    return [build.in_place_of(call, build.with_arguments(filled, given) if given else filled)]
