"""Expressions whose values certainly lie on the host, by a function's ast without control flow.

The result is used to skip functions, so in doubt a value counts as a possible tensor.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.compile_guards import MODE_TESTS
from flake8_torchperf.syntax.names import named_parameters
from flake8_torchperf.syntax.traversal import ATTRIBUTE, CALL, NAME

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from flake8_torchperf.syntax.traversal import Nodes

HOST_TYPE_NAMES = {
    "int", "float", "bool", "str", "bytes", "None", "dtype", "device", "Device", "Size", "Path",
    "Number", "Callable", "type", "Type", "Literal", "Generator", "memory_format", "layout",
}  # fmt: skip
HOST_WRAPPERS = {
    "Optional",
    "Union",
    "list",
    "List",
    "tuple",
    "Tuple",
    "Sequence",
    "Iterable",
    "set",
}
HOST_ATTRIBUTES = {
    "shape", "ndim", "dtype", "device", "training", "requires_grad", "is_cuda", "is_cpu",
    "itemsize",
    "is_sparse", "is_leaf", "is_meta", "is_quantized", "layout", "__name__", "__class__", "__doc__",
    "__module__", "__qualname__", "__dict__", "is_nested", "is_mps", "is_xpu", "names",
}  # fmt: skip
HOST_CALLS = {
    "len", "isinstance", "hasattr", "callable", "issubclass", "id", "type", "range", "super",
    "repr",
    "ord", "chr", "dir", "vars", "hash", "open", "input",
}  # fmt: skip
HOST_METHODS = {
    "dim", "size", "numel", "nelement", "stride", "storage_offset", "keys", "startswith",
    "endswith",
    "lower", "upper", "strip", "lstrip", "rstrip", "split", "join", "replace", "format",
    "is_contiguous",
    "is_floating_point", "is_complex", "is_signed", "element_size", "data_ptr", "get_device",
    "is_available", "get_rank", "get_world_size", "is_initialized", *MODE_TESTS,
    "is_grad_enabled", "is_autocast_enabled", "__len__",
    "is_tensor", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "bit_length", "isdigit", "isidentifier", "get_default_dtype", "device_count", "current_device",
}  # fmt: skip
# The methods that also exist as functions, called without an owner.
HOST_FUNCTIONS = {
    "is_available", "get_rank", "get_world_size", "is_initialized", *MODE_TESTS,
    "is_grad_enabled", "is_autocast_enabled",
    "is_tensor", "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "get_default_dtype", "device_count", "current_device", "is_floating_point", "is_complex",
}  # fmt: skip


class HostNames:
    """The names of a piece of code whose values lie on the host wherever they are bound.

    They are computed on the first lookup, because most code needs none.
    """

    __slots__ = ("_args", "_found", "_nodes")

    def __init__(self, args: ast.arguments | None, nodes: Nodes) -> None:
        self._args, self._nodes = args, nodes
        self._found: frozenset[str] | None = None

    def __contains__(self, name: object) -> bool:
        if self._found is None:
            self._found = host_names(self._args, self._nodes)
        return name in self._found


# The most rounds over a function's assignments to find names whose values lie on the host.
MAX_ROUNDS = 4


def host_names(args: ast.arguments | None, nodes: Nodes) -> frozenset[str]:
    """Return the names of a function whose values lie on the host wherever they are bound.

    ``args`` are its own parameters (None at module level), ``nodes`` all nodes in it.
    """
    bound: dict[str, list[ast.expr | None]] = {}
    own = set()
    for argument in () if args is None else named_parameters(args):
        stated = argument.annotation is not None and host_annotation(argument.annotation)
        bound[argument.arg] = [ast.Constant(0)] if stated else [None]
        own.add(id(argument))
    for other in nodes.of(ast.arg):
        if id(other) not in own:
            bound.setdefault(other.arg, []).append(None)
    _collect(nodes, bound)
    found = held = _holders(args, bound)
    shown = [(name, values) for name, values in bound.items() if None not in values]
    for _ in range(MAX_ROUNDS):
        more = held | frozenset(
            [
                name
                for name, values in shown
                if all(value is not None and surely_host(value, found) for value in values)
            ]
        )
        if more == found:
            break
        found = more
    return found


def _holders(args: ast.arguments | None, bound: dict[str, list[ast.expr | None]]) -> frozenset[str]:
    """Return the names bound only to lists, tuples, dicts and iterators, each marked by a star.

    Their items may be tensors; iterating over the container reads no elements of a tensor.
    """
    found = {
        f"*{name}"
        for name, values in bound.items()
        if all(value is not None and _is_holder(value) for value in values)
    }
    for argument in () if args is None else (args.vararg, args.kwarg):
        if argument is not None and bound[argument.arg] == [None]:
            found.add(f"*{argument.arg}")
    return frozenset(found)


def holder(node: ast.expr, names: Container[str]) -> bool:
    """True if a value is certainly a container or an iterator, whatever it holds."""
    if isinstance(node, ast.Name):
        return f"*{node.id}" in names
    return _is_holder(node)


def _is_holder(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in GOING_THROUGH
        return not node.args and _called(node) in GIVING
    return isinstance(node, DISPLAYS)


DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp,
            ast.GeneratorExp)  # fmt: skip
# Functions that may iterate over a tensor; their result is no tensor.
GOING_THROUGH = {
    "enumerate", "zip", "list", "tuple", "set", "frozenset", "dict", "sorted", "reversed", "iter",
    "range",
}  # fmt: skip
# Methods that return no tensor if they are called without arguments.
GIVING = {
    "items", "keys", "parameters", "named_parameters", "buffers", "named_buffers", "modules",
    "named_modules", "children", "named_children",
}  # fmt: skip


def _collect(nodes: Nodes, bound: dict[str, list[ast.expr | None]]) -> None:
    for assigned in nodes.of(ast.Assign):
        for target in assigned.targets:
            _bind(target, assigned.value, bound)
    for node in nodes.of_any(ast.AugAssign, ast.AnnAssign, ast.NamedExpr):
        if node.value is not None:
            _bind(node.target, node.value, bound)
    for loop in nodes.of_any(ast.For, ast.AsyncFor, ast.comprehension):
        ranged = isinstance(loop.iter, ast.Call) and _called(loop.iter) == "range"
        _bind(loop.target, ast.Constant(0) if ranged else None, bound)
    for item in nodes.of(ast.withitem):
        if item.optional_vars is not None:
            _bind(item.optional_vars, None, bound)
    for pattern in nodes.of_any(ast.MatchAs, ast.MatchStar):
        if pattern.name is not None:
            bound.setdefault(pattern.name, []).append(None)


def _bind(
    target: ast.expr, value: ast.expr | None, bound: dict[str, list[ast.expr | None]]
) -> None:
    if isinstance(target, ast.Name):
        bound.setdefault(target.id, []).append(value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            inner = element.value if isinstance(element, ast.Starred) else element
            # The name holds an item of the value, which lies on the host if the value does.
            part = value and ast.Subscript(value, ast.Constant(0), ast.Load())
            _bind(inner, part, bound)


def host_annotation(node: ast.expr) -> bool:
    """True if an annotation names nothing but host types."""
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Constant(value=str(text)):
            return text in HOST_TYPE_NAMES
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in HOST_TYPE_NAMES
        case ast.BinOp(left=left, right=right):
            return host_annotation(left) and host_annotation(right)
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            if name in HOST_TYPE_NAMES:
                return True
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return name in HOST_WRAPPERS and all(
                host_annotation(p) or (isinstance(p, ast.Constant) and p.value is ...)
                for p in parts
            )
    return False


# Expressions that are judged as a whole, not by their operands.
PARTS = frozenset((
    ast.Constant, ast.JoinedStr, ast.Name, ast.Attribute, ast.Compare, ast.Call,
))  # fmt: skip


def surely_host(node: ast.expr, names: Container[str]) -> bool:
    """True if the value of an expression lies on the host and its truth is free to test."""
    # The operands, from the left, all of which must lie on the host. A stack avoids recursion,
    # because a sum of thousands of terms is nested thousands of levels deep.
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if type(part) in PARTS:
            if not _host_part(part, names):
                return False
            continue
        match part:
            case ast.BinOp(left=left, right=right):
                waiting += (right, left)
            case ast.IfExp(body=body, orelse=orelse):
                waiting += (orelse, body)
            case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
                waiting.append(inner)
            case ast.BoolOp(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
                waiting += reversed(values)
            case _:
                return False
    return True


def _host_part(node: ast.expr, names: Container[str]) -> bool:
    """True if one of the `PARTS` lies on the host."""
    if isinstance(node, NAME):
        return node.id in names
    if isinstance(node, ATTRIBUTE):
        return node.attr in HOST_ATTRIBUTES or _is_dtype(node)
    if isinstance(node, CALL):
        return _host_call(node, node.args, names)
    if isinstance(node, ast.Compare):
        return _host_comparison(node, names)
    return True


def _all(nodes: Iterable[ast.expr], names: Container[str]) -> bool:
    return all(surely_host(node, names) for node in nodes)


def _host_comparison(node: ast.Compare, names: Container[str]) -> bool:
    if all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        return True
    sides = [node.left, *node.comparators]
    if any(
        isinstance(side, ast.Constant) and isinstance(side.value, (str, type(None)))
        for side in sides
    ):
        # A comparison with text or None never reads elements; `"x" in t` may.
        return (
            not any(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops)
            or _all(node.comparators, names)
            or isinstance(node.left, ast.Constant)
        )
    if all(
        isinstance(side, (ast.Tuple, ast.List, ast.Set)) and _texts(side)
        for side in node.comparators
    ):
        return True
    return _all(sides, names)


def _texts(node: ast.Tuple | ast.List | ast.Set) -> bool:
    return all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in node.elts)


def _host_call(node: ast.Call, args: list[ast.expr], names: Container[str]) -> bool:
    called = _called(node)
    if isinstance(node.func, ast.Name):
        if called in HOST_CALLS or called in HOST_FUNCTIONS:
            return True
        return called in HOST_RESULTS and _all(args, names)
    if called in HOST_METHODS:
        return True
    root = node.func
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in HOST_MODULES and _all(args, names)


HOST_RESULTS = {
    "int",
    "float",
    "bool",
    "str",
    "max",
    "min",
    "abs",
    "round",
    "sum",
    "sorted",
    "tuple",
    "list",
}
HOST_MODULES = {
    "math",
    "os",
    "time",
    "re",
    "random",
    "itertools",
    "operator",
    "warnings",
    "inspect",
}


def _called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_dtype(node: ast.Attribute) -> bool:
    """True for ``torch.float32`` and other constants of torch."""
    return (
        isinstance(node.value, ast.Name) and node.value.id == "torch" and node.attr in DTYPE_NAMES
    )


DTYPE_NAMES = {
    "float", "float16", "float32", "float64", "half", "double", "bfloat16", "int", "int8", "int16",
    "int32", "int64", "long", "short", "uint8", "bool", "complex64", "complex128", "strided",
    "contiguous_format", "channels_last", "preserve_format",
}  # fmt: skip
