"""Tensors that `torch.tensor` makes from Python data: their elements, and their device.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.fixes.engine.surroundings import Surroundings

_FLOATS = {"torch.float": 3.4e38, "torch.float32": 3.4e38, "torch.double": 1e308,
           "torch.float64": 1e308, "torch.half": 6e4, "torch.float16": 6e4,
           "torch.bfloat16": 3.3e38}  # fmt: skip
_INTS = {"torch.int64": 2.0**62, "torch.long": 2.0**62, "torch.int32": 2.0**30,
         "torch.int": 2.0**30, "torch.bool": 2.0**62}  # fmt: skip


@dataclass(frozen=True, slots=True)
class HostData:
    """A call that makes a tensor on a device: ``torch.tensor(data, dtype=dtype, device=device)``.

    ``device`` is None for ``.cuda()``. If ``as_another``, ``device`` is a tensor that gives its
    device and dtype.
    """

    call: ast.Call
    data: ast.expr
    device: ast.expr | None
    dtypes: tuple[ast.expr, ...]
    as_another: bool

    def parts(self) -> tuple[ast.expr, ...]:
        """The expressions that the tensor depends on."""
        return (self.data, *self.dtypes, *(() if self.device is None else (self.device,)))

    def elements(self) -> Iterator[ast.expr]:
        """Yield the elements of the nested lists."""
        waiting = [self.data]
        while waiting:
            node = waiting.pop()
            if isinstance(node, (ast.List, ast.Tuple)):
                waiting += node.elts
            else:
                yield node


def host_data(call: ast.AST, around: Surroundings, as_another: bool) -> HostData | None:
    """Return the parts of a plain call of `torch.tensor`; None for any other call.

    A plain call is ``torch.tensor(data, dtype=..., device=...)``, or one without a device that
    ``.to(...)`` or ``.cuda()`` follows.
    """
    if not isinstance(call, ast.Call):
        return None
    if around.qualified(call.func) == "torch.tensor":
        made = _made(call)
        if made is None or "device" not in made:
            return None
        stated = tuple(made[name] for name in ("dtype",) if name in made)
        return HostData(call, call.args[0], made["device"], stated, False)
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Call):
        return None
    inner = call.func.value
    made, moved = _made(inner), _moved(call)
    if around.qualified(inner.func) != "torch.tensor" or made is None or moved is None:
        return None
    if "device" in made or (as_another and "dtype" in moved):
        return None
    dtypes = tuple(one["dtype"] for one in (made, moved) if "dtype" in one)
    return HostData(call, inner.args[0], moved.get("device"), dtypes, as_another)


def _made(call: ast.Call) -> dict[str, ast.expr] | None:
    """The device and dtype that `torch.tensor` is given; None where there is more."""
    given = {str(one.arg): one.value for one in call.keywords}
    plain = len(call.args) == 1 and not isinstance(call.args[0], ast.Starred)
    return given if plain and given.keys() <= {"device", "dtype"} else None


def _moved(call: ast.Call) -> dict[str, ast.expr] | None:
    """The device and dtype that ``to`` or ``cuda`` is given; None where there is more."""
    assert isinstance(call.func, ast.Attribute)
    given = dict(zip(("device", "dtype"), call.args, strict=False))
    for one in call.keywords:
        given[str(one.arg)] = one.value
    names = {"to": {"device", "dtype"}, "cuda": {"device"}}.get(call.func.attr, set())
    if len(call.args) > 2 or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    if call.func.attr == "to" and "device" not in given:
        return None
    return given if given.keys() <= names else None


def cannot_fail(made: HostData, around: Surroundings) -> bool:
    """True if the numbers are written there, of one shape, and fit the dtype."""
    if _shape(made.data) is None:
        return False
    values = [_number(one) for one in made.elements()]
    if not all(value is not None for value in values):
        return False
    if made.as_another:
        return all(value is not None and abs(value) <= _FLOATS["torch.half"] for value in values)
    names = [around.qualified(one) for one in made.dtypes]
    if not all(name in _FLOATS or name in _INTS for name in names):
        return False
    limits = [_FLOATS.get(name) or _INTS[name] for name in names] or [2.0**62]
    return all(value is not None and abs(value) <= min(limits) for value in values)


def keeps_default_dtype(made: HostData) -> bool:
    """True if the tensor does not depend on torch's default dtype."""
    return bool(made.dtypes) or not any(
        isinstance(one, ast.Constant) and isinstance(one.value, float)
        for element in made.elements()
        for one in ast.walk(element)
    )


def _shape(node: ast.expr) -> tuple[int, ...] | None:
    """The shape of nested lists; None where they are ragged or of unknown length."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None if isinstance(node, ast.Starred) else ()
    shapes = {_shape(one) for one in node.elts}
    if not shapes:
        return (0,)
    inner = shapes.pop()
    return None if shapes or inner is None else (len(node.elts), *inner)


def _number(node: ast.expr) -> float | None:
    """The number that an expression is; None where it is not written there."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)):
            pass
        case ast.Constant(value=value):
            pass
        case _:
            return None
    try:
        return float(value) if isinstance(value, (bool, int, float)) else None
    except OverflowError:
        return None
