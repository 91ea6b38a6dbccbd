"""Finds calls that make a tensor before it is moved, and how exactly another device repeats it.

Views, casts, arithmetic and names with no other use may come between the call and the move.
Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
import re
from enum import Enum, IntEnum, auto
from typing import TYPE_CHECKING

from flake8_torchperf.fixes.engine.surroundings import repeatable
from flake8_torchperf.fixes.shared.held_names import HeldNames
from flake8_torchperf.fixes.shared.masks import is_number
from flake8_torchperf.fixes.shared.numbers import is_real, is_whole
from flake8_torchperf.knowledge.methods import casts_to, methods_of
from flake8_torchperf.knowledge.table import load

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Surroundings

# Zeros and ones are the same in every dtype; whole numbers are in their own.
PLAIN_FACTORIES = frozenset(
    ("zeros", "ones", "empty", "eye", "zeros_like", "ones_like", "empty_like")
)
WHOLE_FACTORIES = frozenset(("tril_indices", "triu_indices"))
RANDOM_FACTORIES = frozenset((
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like",
))  # fmt: skip
ROUNDED_FACTORIES = frozenset((
    "linspace", "logspace", "hann_window", "hamming_window", "blackman_window", "bartlett_window",
    "kaiser_window",
))  # fmt: skip
FACTORIES = (
    PLAIN_FACTORIES | WHOLE_FACTORIES | RANDOM_FACTORIES | ROUNDED_FACTORIES | {"arange", "full"}
)
# Arguments that make another tensor of the result: a leaf, one in pinned memory, an existing one.
MEMORY_ARGUMENTS = frozenset(("device", "generator", "out", "requires_grad", "pin_memory", "names"))
# Methods that rearrange or copy the same numbers, alike on every device.
_VIEWS = methods_of("rearranges") | {"repeat"}
# These views skip or repeat elements. A move copies them to new memory, and so does arithmetic.
_LOOSE = frozenset(("expand", "narrow", "expand_as"))
_TO_FLOATS = casts_to("float")
_TO_INTS = frozenset(("int", "long", "short", "bool"))
_HOLD_COUNTS = frozenset(("long", "bool", "torch.long", "torch.int64", "torch.bool"))
# Copies of the same bits to other places, or zeros.
_PLACING = frozenset(("tril", "triu", "flip", "roll", "diag", "fliplr", "flipud"))
_JOINING = methods_of("joins")
_INTS = frozenset(("torch.int8", "torch.int16", "torch.short", "torch.int32", "torch.int",
                   "torch.int64", "torch.long", "torch.bool"))  # fmt: skip
_FLOATS = frozenset(("torch.float", "torch.float32", "torch.double", "torch.float64", "torch.half",
                     "torch.float16", "torch.bfloat16"))  # fmt: skip
_OTHER_NAMES = {"torch.int64": "torch.long", "torch.int32": "torch.int",
                "torch.int16": "torch.short", "torch.float32": "torch.float",
                "torch.float64": "torch.double", "torch.float16": "torch.half"}  # fmt: skip
_CAST_DTYPES = {"int": "torch.int32", "long": "torch.int64", "short": "torch.int16",
                "bool": "torch.bool", "float": "torch.float32", "double": "torch.float64",
                "half": "torch.float16", "bfloat16": "torch.bfloat16"}  # fmt: skip
_DOUBLES = frozenset(("double", "torch.double", "torch.float64"))
_EXACT_OPERATORS = (ast.Add, ast.Sub, ast.Mult)
_OPERATORS = (*_EXACT_OPERATORS, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod)
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
# Whole numbers up to this are exact in every dtype of floats: bfloat16 has eight bits.
_LARGEST_EXACT = 256


class Sameness(IntEnum):
    """The exactness with which a device makes the same numbers as the host."""

    ROUNDED = 0  # rounded in another way, or other random numbers
    EXACT = 1  # the same bits
    PLAIN = 2  # zeros and ones, of floats
    WHOLE = 3  # ints and bools


class Repeated(Enum):
    """The ways in which a device repeats the numbers of the host."""

    EXACTLY = auto()
    ROUNDED = auto()  # in another way, perhaps
    RANDOM = auto()  # not at all: it has its own generator


class MadeTensors:
    """The factories in an expression; `sameness` compares their numbers on host and device.

    ``loose`` allows views whose memory a move would copy, as an index or arithmetic does. ``held``
    looks up names whose tensors earlier statements made.
    """

    def __init__(self, around: Surroundings, held: HeldNames | None = None) -> None:
        self.calls: list[ast.Call] = []
        self.computes = False
        self.casts: list[ast.Call] = []
        self.doubles = False  # MPS has no float64
        self._around = around
        self._held = held
        self._numbers: list[ast.expr] = []
        self._filled = False

    def sameness(self, node: ast.expr, *, loose: bool = False) -> Sameness | None:
        """Return how exactly a device makes the numbers; None if not only factories make them."""
        found = self._of(node, loose)
        if found is None or not self.calls:
            return None
        sizes = {ast.dump(one) for call in self.calls for one in call.args}
        for number in self._numbers:
            if is_real(number, self._around):
                continue
            if ast.dump(number) not in sizes and not is_number(number, self._around):
                return None
            found = Sameness.ROUNDED  # it may be a tensor
        return found

    def repeated(self, found: Sameness) -> Repeated:
        """Return how a device repeats the numbers, which have this sameness."""
        names = {self._around.qualified(one.func).removeprefix("torch.") for one in self.calls}
        if not names.isdisjoint(RANDOM_FACTORIES):
            return Repeated.RANDOM
        return Repeated.ROUNDED if found is Sameness.ROUNDED else Repeated.EXACTLY

    def _of(self, node: ast.expr, loose: bool) -> Sameness | None:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if not self._of_torch(node):
                return self._method(node, inner, name, loose)
            case ast.Call():
                return self._function(node, loose)
            case ast.Subscript(value=inner, slice=index) if loose or _adds_dimensions(index):
                return self._of(inner, loose) if _is_basic(index) else None
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
                return self._arithmetic(left, op, right)
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
                return _negated(self._computed([operand]))
            case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, _ORDERED):
                return _compared(self._computed([left, right]))
            case ast.Name() if self._held is not None:
                value = self._held.value(node)
                found = None if value is None else self._of(value, loose)
                return self._filling(found) if self._held.fills(node) else found
        return None

    def _filling(self, found: Sameness | None) -> Sameness | None:
        """Return the sameness after numbers were assigned to elements."""
        self.computes = self._filled = True
        return _negated(found)

    def _of_torch(self, node: ast.Call) -> bool:
        return self._around.qualified(node.func).startswith("torch.")

    def _method(self, node: ast.Call, inner: ast.expr, name: str, loose: bool) -> Sameness | None:
        if name in _VIEWS:
            return self._of(inner, loose)
        if name in _LOOSE:
            return self._of(inner, loose) if loose else None
        if name in _TO_FLOATS | _TO_INTS and not node.args:
            self.casts.append(node)
            return self._cast(self._of(inner, loose), name, name in _TO_INTS)
        if name in ("to", "type") and len(node.args) == 1 and not node.keywords:
            dtype = self._around.qualified(node.args[0])
            if dtype not in _INTS | _FLOATS:
                return self._cast_like(node, inner, loose)
            self.casts.append(node)
            return self._cast(self._of(inner, loose), dtype, dtype in _INTS)
        if name in _PLACING:
            self.computes = True
            return self._of(inner, True)
        op = load().method(name)
        if op is None or not op.pointwise or not op.flags.isdisjoint("dhsym") or node.keywords:
            return None
        return self._rounded([inner, *node.args]) if not name.endswith("_") else None

    def _cast_like(self, node: ast.Call, inner: ast.expr, loose: bool) -> Sameness | None:
        """Return the sameness after a cast to another tensor's dtype: zeros and ones stay alike."""
        if not dtype_of_cast(node, self._around):
            return None
        self.casts.append(node)
        return Sameness.PLAIN if self._of(inner, loose) is Sameness.PLAIN else None

    def _cast(self, found: Sameness | None, to: str, ints: bool) -> Sameness | None:
        """Return the sameness after a cast.

        Floats that ints cannot hold become different ints on different devices.
        """
        if found is None or found is Sameness.ROUNDED:
            return found
        if self.doubles:
            return Sameness.ROUNDED
        self.doubles = to in _DOUBLES
        if not ints:
            return Sameness.PLAIN if found is Sameness.PLAIN else Sameness.EXACT
        # No memory holds so many numbers that a count exceeds int64, but a given number may.
        held = to in _HOLD_COUNTS and not self._filled
        return Sameness.WHOLE if held or found >= Sameness.PLAIN else Sameness.ROUNDED

    def _function(self, node: ast.Call, loose: bool) -> Sameness | None:
        name = self._around.qualified(node.func).removeprefix("torch.")
        if name in FACTORIES:
            return self._factory(node, name)
        if not node.args or any(one.arg in ("out", None) for one in node.keywords):
            return None
        first = node.args[0]
        if name in _PLACING or name in ("clone", "unsqueeze", "reshape", "flatten", "transpose"):
            self.computes = self.computes or name in _PLACING
            return self._of(first, loose or name in _PLACING)
        if name in _JOINING:
            parts = first.elts if isinstance(first, (ast.Tuple, ast.List)) else []
            return self._computed(parts) if parts else None
        op = load().function(f"torch.{name}")
        if op is None or not op.pointwise or not op.flags.isdisjoint("dhsym") or node.keywords:
            return None
        return self._rounded(node.args)

    def _factory(self, call: ast.Call, name: str) -> Sameness | None:
        if any(one.arg is None or one.arg in MEMORY_ARGUMENTS for one in call.keywords):
            return None
        if any(isinstance(one, ast.Starred) for one in call.args) and name not in PLAIN_FACTORIES:
            return None
        self.calls.append(call)
        dtypes = [one.value for one in call.keywords if one.arg == "dtype"]
        ints = any(self._around.qualified(one) in _INTS for one in dtypes)
        doubles = any(self._around.qualified(one) in _DOUBLES for one in dtypes)
        self.doubles = self.doubles or doubles
        if name in PLAIN_FACTORIES:
            return Sameness.WHOLE if ints else Sameness.PLAIN
        if name in WHOLE_FACTORIES:
            return Sameness.WHOLE
        if name == "full":
            self._filled = True
            return Sameness.EXACT
        if name != "arange":
            return Sameness.ROUNDED
        bounds = [*call.args, *(one.value for one in call.keywords if one.arg != "dtype")]
        if all(is_whole(one, self._around) for one in bounds):
            return Sameness.WHOLE if ints or not dtypes else Sameness.EXACT
        if ints:
            return Sameness.WHOLE
        return Sameness.EXACT if len(bounds) == 1 else Sameness.ROUNDED

    def _arithmetic(self, left: ast.expr, op: ast.operator, right: ast.expr) -> Sameness | None:
        found = self._computed([left, right])
        if not found or found is Sameness.ROUNDED:
            return found
        if isinstance(op, _EXACT_OPERATORS):
            return found if found is Sameness.WHOLE else Sameness.EXACT
        by = right.value if isinstance(right, ast.Constant) else None
        divides = isinstance(op, (ast.FloorDiv, ast.Mod)) and type(by) is int and by > 0
        return found if divides and found is Sameness.WHOLE else Sameness.ROUNDED

    def _computed(self, parts: list[ast.expr]) -> Sameness | None:
        """Return the sameness of an operation on tensors and numbers: the least of its operands."""
        self.computes = True
        found: list[Sameness] = []
        for part in parts:
            count = len(self.calls)
            if self._is_number(part):
                continue
            one = self._of(part, True)
            if one is None or len(self.calls) == count:
                return None
            found.append(one)
        numbers = [one for one in parts if self._is_number(one)]
        self._numbers += numbers
        if not found:
            return None
        least = min(found)
        if all(is_whole(one, self._around) for one in numbers) and least is Sameness.WHOLE:
            return least
        exact = all(map(_is_exact, numbers))
        return min(least, Sameness.EXACT if numbers else least) if exact else Sameness.ROUNDED

    def _rounded(self, parts: list[ast.expr]) -> Sameness | None:
        return None if self._computed(parts) is None else Sameness.ROUNDED

    def _is_number(self, node: ast.expr) -> bool:
        """True for an operand without a call of torch: a number, or a tensor from elsewhere."""
        if is_real(node, self._around):
            return True
        match node:
            case ast.Constant(value=value):
                return type(value) in (int, float)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._is_number(operand)
            case ast.BinOp(left=left, right=right):
                return self._is_number(left) and self._is_number(right)
            case ast.Name():
                return self._held is None or self._held.value(node) is None
            case ast.Attribute():
                return True
        return False


def _negated(found: Sameness | None) -> Sameness | None:
    """Return the sameness of a negated value: it no longer consists of zeros and ones."""
    return Sameness.EXACT if found is Sameness.PLAIN else found


def _compared(found: Sameness | None) -> Sameness | None:
    """Return the sameness of a comparison: its bools are the same where the numbers are."""
    return Sameness.WHOLE if found else found


def _is_exact(node: ast.expr) -> bool:
    """True for a literal that every floating dtype holds exactly."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= _LARGEST_EXACT and value == int(value)


def is_dtype(node: ast.expr | None, around: Surroundings, *, of_floats: bool = False) -> bool:
    """True if an expression is surely a dtype of torch; with ``of_floats``, a floating one."""
    known = _FLOATS if of_floats else _INTS | _FLOATS
    return node is not None and around.qualified(node) in known


def dtype_of_cast(call: ast.Call, around: Surroundings) -> str:
    """Return the dtype in ``x.int()``, ``x.to(torch.int)`` or ``x.to(y.dtype)``.

    It is spelt as in its file. ``x.type(y.type())`` gives ``y.dtype``. "" for any other call.
    """
    if not isinstance(call.func, ast.Attribute) or call.keywords:
        return ""
    name = _CAST_DTYPES.get(call.func.attr)
    match call.args:
        case [] if name is not None:
            written = around.reach(spelt_dtype(name, around), call)
            return written[0] if written and not written[1] else ""
        case [ast.Call(func=ast.Attribute(value=other, attr="type"), args=[], keywords=[])]:
            same = call.func.attr == "type" and repeatable(other)
            return f"{ast.unparse(other)}.dtype" if same else ""
        case [dtype] if call.func.attr in ("to", "type"):
            like = isinstance(dtype, ast.Attribute) and dtype.attr == "dtype" and repeatable(dtype)
            return ast.unparse(dtype) if like or is_dtype(dtype, around) else ""
    return ""


def spelt_dtype(name: str, around: Surroundings) -> str:
    """Return ``torch.int64`` or another dtype by its other name if the file uses that one alone."""
    other = _OTHER_NAMES.get(name, name)
    lines = around.module.lines
    ours, theirs = (re.compile(rf"\b{re.escape(one)}\b") for one in (name, other))
    if any(ours.search(line) for line in lines):
        return name
    return other if any(theirs.search(line) for line in lines) else name


def _is_basic(index: ast.expr) -> bool:
    """True for an index of slices, ints and None, which gives a view."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        isinstance(one, ast.Slice)
        or (isinstance(one, ast.Constant) and (one.value in (None, ...) or type(one.value) is int))
        for one in parts
    )


def _adds_dimensions(index: ast.expr) -> bool:
    """True for ``[None]``, ``[:, None]``, ``[..., None]``."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(one, ast.Constant) and one.value in (None, ...))
        or (isinstance(one, ast.Slice) and not (one.lower or one.upper or one.step))
        for one in parts
    )
