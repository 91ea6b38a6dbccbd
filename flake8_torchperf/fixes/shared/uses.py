"""Decides whether a tensor is only read.

Imported while linting, so it must import neither libcst nor torch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.knowledge.table import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from flake8_torchperf.fixes.engine.surroundings import Surroundings
    from flake8_torchperf.knowledge.table import Op

_FACTS = frozenset(("shape", "device", "dtype", "ndim", "is_cuda"))
_COUNTS = methods_of("reads") | {"size", "dim", "numel"}
_VIEWS = frozenset(("T", "mT"))
# Methods whose result may be the tensor itself, or share its memory.
_MAY_SHARE = frozenset(("to", "type", "type_as", "float", "double", "half", "bfloat16", "long",
                        "int", "contiguous", "reshape", "flatten", "cpu", "cuda"))  # fmt: skip
# Operations whose result has its own memory, besides pointwise operations and reductions.
_PRODUCTS = ("matmul", "mm", "bmm", "einsum", "cat", "concat", "stack", "hstack", "vstack", "cdist",
             "isin", "searchsorted", "bucketize", "tensordot", "dot", "mv")  # fmt: skip
_LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "mse_loss", "linear", "conv1d",
           "binary_cross_entropy_with_logits", "conv2d", "conv3d")  # fmt: skip
_FRESH = frozenset((*(f"torch.{name}" for name in _PRODUCTS),
                    *(f"torch.nn.functional.{name}" for name in _LOSSES)))  # fmt: skip
_BUILTINS = frozenset(("print", "len", "float", "int", "bool", "str", "range"))
# By identity or by hash, each tensor is another one.
_BY_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


class Uses:
    """Decides for each use whether it only reads.

    ``is_tensor`` decides which other operands are tensors: a list or a dict would store the tensor.
    """

    def __init__(self, around: Surroundings, is_tensor: Callable[[ast.expr], bool]) -> None:
        self._around = around
        self._is_tensor = is_tensor

    def only_read(self, node: ast.expr) -> bool:
        """True if nothing changes the tensor here, and nothing keeps it or a view of it."""
        parent = self._around.parent(node)
        match parent:
            case ast.BinOp() | ast.FormattedValue() | ast.Expr():
                return True
            case ast.Compare(ops=ops):
                return not any(isinstance(op, _BY_IDENTITY) for op in ops)
            case ast.UnaryOp(op=op):
                return not isinstance(op, ast.UAdd)
            case ast.Attribute(attr=name):
                return name in _FACTS or self._attribute(parent)
            case ast.Subscript():
                return self._subscript(node, parent)
            case ast.Tuple() | ast.List():
                return self._listed(parent)
            case ast.Call() if node is not parent.func:
                return self._argument(parent)
            case ast.keyword(arg=name):
                call = self._around.parent(parent)
                return name not in ("out", None) and self._argument(call)
            case ast.AugAssign(target=target, value=value):
                return value is node and self._is_tensor(_owner(target))
            case ast.Assign(targets=[ast.Subscript(value=owner)]):
                return self._is_tensor(owner)
            case ast.If(test=test) | ast.Assert(test=test):
                return test is node
        return False

    def _attribute(self, node: ast.Attribute) -> bool:
        """A method that is called of the tensor, or a view of it."""
        if node.attr in _VIEWS:
            return self.only_read(node)
        call = self._around.parent(node)
        if not isinstance(call, ast.Call) or call.func is not node or _writes_elsewhere(call):
            return False
        op = load().method(node.attr)
        if node.attr in _COUNTS or _is_fresh(op):
            return True
        shares = node.attr in _MAY_SHARE or (op is not None and op.view and not op.in_place)
        return shares and self.only_read(call)

    def _subscript(self, node: ast.expr, parent: ast.Subscript) -> bool:
        reads = isinstance(parent.ctx, ast.Load)
        if parent.value is node:
            return reads and self.only_read(parent)
        return self._is_tensor(parent.value)

    def _listed(self, node: ast.Tuple | ast.List) -> bool:
        """A list of tensors that are joined, or the parts of an index."""
        parent = self._around.parent(node)
        if isinstance(parent, ast.Subscript):
            return parent.slice is node and self._is_tensor(parent.value)
        return isinstance(parent, ast.Call) and parent.func is not node and self._argument(parent)

    def _argument(self, call: ast.AST | None) -> bool:
        """True if a function of torch, or a method of another tensor, only reads its argument."""
        if not isinstance(call, ast.Call) or _writes_elsewhere(call):
            return False
        name = self._around.qualified(call.func)
        if name.startswith("builtins."):
            return name.removeprefix("builtins.") in _BUILTINS
        if name.startswith("torch."):
            return name in _FRESH or _is_fresh(load().function(name))
        if name or not isinstance(call.func, ast.Attribute):
            return False
        op = load().method(call.func.attr)
        if op is None or not self._is_tensor(call.func.value):
            return False
        return _is_fresh(op) or (op.in_place and not call.func.attr.startswith("set"))


def _owner(target: ast.expr) -> ast.expr:
    """The ``x`` of ``x += y`` and of ``x[i] += y``."""
    return target.value if isinstance(target, ast.Subscript) else target


def _writes_elsewhere(call: ast.Call) -> bool:
    return any(one.arg in ("out", "inplace", None) for one in call.keywords)


def _is_fresh(op: Op | None) -> bool:
    """True if a result has its own memory."""
    return op is not None and (op.pointwise or op.reduction) and not (op.view or op.in_place)
