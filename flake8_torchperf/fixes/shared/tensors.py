"""Facts about expressions around a finding: which are tensors, and which cost little.

The interpreter gives a fix only the finding's own operand. The answers here rest on annotations,
assignments in the same function and the table of torch; if these show nothing, the answer is no.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.knowledge.table import Op, TensorReturn, load
from flake8_torchperf.syntax.bindings import bound_by
from flake8_torchperf.syntax.traversal import FUNCTIONS, below, once

if TYPE_CHECKING:
    from flake8_torchperf.fixes.engine.surroundings import Surroundings

# A value or a parameter that a name is bound to; None for any other binding.
Binding: TypeAlias = "ast.expr | ast.arg | None"
# The class of all tensors, as annotations name it.
TENSORS = frozenset(("torch.Tensor", "torch.nn.Parameter", "torch.FloatTensor", "torch.LongTensor"))
_VIEWS = frozenset(("T", "mT", "H", "data", "real", "imag"))
# Functions that draw numbers: called once more or once less, they change all that follow.
RANDOM_NAMES = (
    "rand", "normal", "bernoulli", "multinomial", "poisson", "dropout", "exponential", "cauchy",
    "geometric", "log_normal", "rrelu", "alpha_dropout",
)  # fmt: skip


# Methods and attributes of tensors that numpy's arrays have as well.
_OF_ARRAYS = frozenset((
    "all", "any", "argmax", "argmin", "argsort", "conj", "copy", "cumprod", "cumsum", "data",
    "diagonal", "dot", "fill", "flatten", "imag", "item", "max", "mean", "min", "nonzero", "prod",
    "put", "ravel", "real", "repeat", "reshape", "resize", "round", "sort", "squeeze", "std", "sum",
    "swapaxes", "take", "tolist", "trace", "transpose", "var", "view",
))  # fmt: skip
# Parts of these may not be evaluated.
_LAZY = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp,
         ast.GeneratorExp)  # fmt: skip


def is_tensor(node: ast.expr, around: Surroundings) -> bool:
    """True if annotations and assignments show that an expression is a tensor."""
    return _Reading(around).tensor(node)


def is_tensor_for_all(node: ast.expr, around: Surroundings) -> bool:
    """True if an expression is a tensor for all arguments of callers; annotations prove nothing."""
    return _Reading(around, declared=False).tensor(node)


def is_used_by_torch(name: ast.Name, around: Surroundings) -> bool:
    """True if a function gives a name, or a part of it, to code that takes tensors alone.

    numpy's arrays are ruled out by it, on the paths that come there.
    """
    function = around.function(name)
    for node in () if function is None else below(function):
        match node:
            case ast.Call(args=args) if name.id in (given := [_part_of(one) for one in args]):
                called = around.qualified(node.func)
                op = load().function(called) if called.startswith("torch.") else None
                if op is not None and _takes_tensor_at(op, given.index(name.id)):
                    return True
            case ast.Call(func=ast.Attribute(value=owner, attr=method)) if (
                _part_of(owner) == name.id
            ):
                if method not in _OF_ARRAYS and load().method(method):
                    return True
    return False


def _takes_tensor_at(op: Op, place: int) -> bool:
    return any(one.params[place].type == "T" for one in op.overloads if place < len(one.params))


def _part_of(node: ast.expr) -> str:
    """Return the name in ``x``, ``x[i]`` and ``x[i][j]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_cheap(node: ast.expr, around: Surroundings) -> bool:
    """True if computing it once more has no effect, no wait and no error, and costs little."""
    return _Reading(around).cheap(node)


def is_parameter(node: ast.expr, around: Surroundings) -> bool:
    """True for a name whose value a caller passes on some path."""
    function = around.function(node)
    if not isinstance(node, ast.Name) or function is None:
        return False
    return any(isinstance(one, ast.arg) for one in bindings(function, node.id))


def has_one_value(name: ast.Name, around: Surroundings) -> bool:
    """True if a name is bound once in its function, and nothing is added to it."""
    function = around.function(name)
    if function is None or len(bindings(function, name.id)) != 1:
        return False
    changed = (one for one in below(function) if isinstance(one, ast.AugAssign))
    return not any(isinstance(t.target, ast.Name) and t.target.id == name.id for t in changed)


def only_value(name: ast.Name, around: Surroundings) -> ast.expr | None:
    """Return the only value of a name; None for parameters and for names bound more than once."""
    function = around.function(name)
    if function is None or not has_one_value(name, around):
        return None
    (value,) = bindings(function, name.id)
    if value is None:
        value = _unpacked(function, name.id)
    return value if isinstance(value, ast.expr) else None


def _unpacked(function: ast.AST, name: str) -> ast.expr | None:
    """The value of ``b`` in ``a, b = x, y``."""
    for node in below(function):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(
                names
            ) == len(values):
                for target, value in zip(names, values, strict=True):
                    if isinstance(target, ast.Name) and target.id == name:
                        return value
    return None


# Operations that give positions and counts, which are int64; and those that keep the dtype.
_INT64 = frozenset(("argmax", "argmin", "argsort", "nonzero", "count_nonzero"))
_SAME_DTYPE = methods_of("rearranges") | {"unbind", "detach"}


def is_int64(node: ast.expr, around: Surroundings, depth: int = 4) -> bool:
    """True if a tensor is of int64, since it is made of positions or counts."""
    match node:
        case ast.Subscript(value=inner):
            return is_int64(inner, around, depth)
        case ast.Call(func=ast.Attribute(value=inner, attr=name) as func, args=args):
            of_torch = around.qualified(func).startswith("torch.")
            if of_torch and name == "where":
                return len(args) == 1
            if name in _SAME_DTYPE:
                inner = args[0] if of_torch and args else inner
                return is_int64(inner, around, depth)
            return name in _INT64
        case ast.Name(id=name) if depth:
            function = around.function(node)
            found = [] if function is None else _values(function, name)
            return bool(found) and all(
                one is not None and (_stands_in(node, one) or is_int64(one, around, depth - 1))
                for one in found
            )
    return False


def _values(function: ast.AST, name: str) -> list[ast.expr | None]:
    """Return the values assigned to a name, and the iterables of loops that bind it.

    None stands for each other binding.
    """
    found: list[ast.expr | None] = []
    for one in below(function):
        match one:
            case ast.For(target=ast.Name(id=bound), iter=iterated) if bound == name:
                found.append(iterated)
    other = bindings(function, name)
    loops = len(found)
    found += [one if isinstance(one, ast.expr) else None for one in other if one is not None]
    return [*found, *([None] * (other.count(None) - loops))]


def _stands_in(node: ast.AST, value: ast.expr) -> bool:
    return any(one is node for one in ast.walk(value))


class _Reading:
    """One question, with the names that are being looked into."""

    def __init__(self, around: Surroundings, *, declared: bool = True) -> None:
        self._around = around
        self._declared = declared  # False where annotations prove nothing
        self._open: set[str] = set()

    def tensor(self, node: ast.expr) -> bool:
        match node:
            case ast.Name():
                return self._name(node)
            case ast.BinOp(left=left, right=right):
                return self.tensor(left) or self.tensor(right)
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
                return self.tensor(operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                    return False
                return self.tensor(left) or self.tensor(right)
            case ast.Subscript(value=value):
                return self.tensor(value)
            case ast.Attribute(value=value, attr=name):
                return name in _VIEWS and self.tensor(value)
            case ast.IfExp(body=one, orelse=other):
                return self.tensor(one) and self.tensor(other)
            case ast.Call():
                return self._call(node)
        return False

    def _call(self, node: ast.Call) -> bool:
        op = self.operation(node)
        if op is None or any(isinstance(one, ast.Starred) for one in node.args):
            return False
        if any(one.arg is None for one in node.keywords):
            return False
        kinds = [self._kind(one) for one in node.args]
        named = {str(one.arg): self._kind(one.value) for one in node.keywords}
        return isinstance(op.resolve(kinds, named), TensorReturn)

    def operation(self, node: ast.Call) -> Op | None:
        """The function of torch, or the method of a tensor, that a call calls."""
        name = self._around.qualified(node.func)
        if name.startswith("torch."):
            return load().function(name)
        if isinstance(node.func, ast.Attribute) and self.tensor(node.func.value):
            return load().method(node.func.attr)
        return None

    def _kind(self, node: ast.expr) -> str:
        """The kind of an argument, as `knowledge.overloads` has it."""
        match node:
            case ast.Constant(value=value):
                kinds = {"int": "i", "float": "f", "str": "s", "NoneType": "-"}
                return (
                    "01"[value] if isinstance(value, bool) else kinds.get(type(value).__name__, "x")
                )
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as operand):
                return self._kind(operand)
            case ast.Attribute(attr="device"):
                return "D"
            case ast.Attribute(attr="shape"):
                return "Z"
            case ast.Tuple(elts=[first, *_]) | ast.List(elts=[first, *_]):
                return "Tl" if self.tensor(first) else "Z"
        return "T" if self.tensor(node) else "x"

    def _name(self, node: ast.Name) -> bool:
        function = self._around.function(node)
        if function is None:
            return False
        if node.id in self._open:
            return True  # `x = x * 2` shows nothing about the earlier x
        self._open.add(node.id)
        found = bindings(function, node.id)
        shown = not self._declared and self._has_run_as_one(node, function)
        if shown:
            found = [one for one in found if not isinstance(one, ast.arg)]
        result = (shown or bool(found)) and all(
            one is not None and self._bound_to_tensor(one) for one in found
        )
        if self._declared:
            result = result or self._is_used_as_one(node.id, function, found)
        self._open.discard(node.id)
        return result

    def _is_used_as_one(
        self, name: str, function: ast.AST, found: list[ast.expr | ast.arg | None]
    ) -> bool:
        """True if a name, never None or a number, is passed where only tensors are accepted."""
        if any(one is None or isinstance(one, ast.Constant) for one in found):
            return False
        hints = [one.annotation for one in found if isinstance(one, ast.arg)]
        if any(hint is not None for hint in hints) or _has_default(function, name):
            return False  # it has an annotation or a default
        return any(map(self._takes_tensor, _calls_with(function).get(name, ())))

    def _has_run_as_one(self, name: ast.Name, function: ast.AST) -> bool:
        """True if an operation that only tensors have was applied to a name before a place."""
        assert isinstance(function, FUNCTIONS)
        waiting: list[ast.AST] = [
            one
            for one in function.body
            if isinstance(one, (ast.Assign, ast.AugAssign, ast.Expr)) and _end(one) < name.lineno
        ]
        while waiting:
            node = waiting.pop()
            if isinstance(node, _LAZY):
                continue
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=used), attr=method)):
                    if used == name.id and method not in _OF_ARRAYS and load().method(method):
                        return True
            if isinstance(node, ast.Call) and _is_given(node, name.id) and self._takes_tensor(node):
                return True
            waiting.extend(ast.iter_child_nodes(node))
        return False

    def _takes_tensor(self, node: ast.Call) -> bool:
        """True if a function of torch takes nothing but a tensor as its first argument."""
        name = self._around.qualified(node.func)
        op = load().function(name) if name.startswith("torch.") else None
        return op is not None and all(
            bool(one.params) and one.params[0].type == "T" and not one.params[0].optional
            for one in op.overloads
        )

    def _bound_to_tensor(self, bound: ast.expr | ast.arg) -> bool:
        if isinstance(bound, ast.arg):
            if not self._declared:
                return False
            hint = bound.annotation
            if isinstance(hint, ast.Constant) and hint.value in ("torch.Tensor", "Tensor"):
                return True
            return hint is not None and self._around.qualified(hint) in TENSORS
        return self.tensor(bound)

    def cheap(self, node: ast.expr) -> bool:
        match node:
            case ast.Name() | ast.Constant():
                return True
            case ast.Attribute(value=value):
                return self.cheap(value)
            case ast.BinOp(op=op, left=left, right=right):
                if isinstance(op, ast.MatMult):
                    return False
                return self.cheap(left) and self.cheap(right)
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
                return self.cheap(operand)
            case ast.Compare(left=left, ops=[_], comparators=[right]):
                return self.tensor(node) and self.cheap(left) and self.cheap(right)
            case ast.Call(func=func, args=args, keywords=keywords):
                called = self.operation(node)
                receiver = func.value if isinstance(func, ast.Attribute) else func
                parts = [receiver, *args, *(one.value for one in keywords)]
                return called is not None and _is_light(called) and all(map(self.cheap, parts))
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                return all(map(self.cheap, elts))
        return False


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _is_given(node: ast.Call, name: str) -> bool:
    return bool(node.args) and isinstance(node.args[0], ast.Name) and node.args[0].id == name


@once
def _calls_with(function: ast.AST) -> dict[str, list[ast.Call]]:
    """Return the calls in a function whose first argument is a name, by that name."""
    found: dict[str, list[ast.Call]] = {}
    for node in below(function):
        match node:
            case ast.Call(args=[ast.Name(id=name), *_]):
                found.setdefault(name, []).append(node)
    return found


def _has_default(function: ast.AST, name: str) -> bool:
    assert isinstance(function, FUNCTIONS)
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    left_out = positional[len(positional) - len(given.defaults) :]
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    left_out += [one for one, default in named if default is not None]
    return any(one.arg == name for one in left_out)


def _is_light(op: Op) -> bool:
    last = op.name.rpartition(".")[2]
    if not op.flags.isdisjoint("dhsym") and last not in ("where",):
        return False
    light = op.pointwise or op.reduction or op.view or op.factory or op.like
    return light and not last.startswith(RANDOM_NAMES)


def bindings(function: ast.AST, name: str) -> list[Binding]:
    """Return the values and parameters that a name is bound to in a function.

    None stands for each other binding.
    """
    assert isinstance(function, FUNCTIONS)
    return _bound(function).get(name, [])


@once
def _bound(function: ast.AST) -> dict[str, list[Binding]]:
    """Return the bindings of each name in a function."""
    assert isinstance(function, FUNCTIONS)
    found: dict[str, list[Binding]] = {}
    spread = (function.args.vararg, function.args.kwarg)
    plain: set[int] = set()
    nodes = below(function)
    found[function.name] = [None]
    for node in nodes:
        match node:
            case ast.arg(arg=name):
                found.setdefault(name, []).append(None if node in spread else node)
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value):
                plain.add(id(target))
                found.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name) as target, value=given):
                plain.add(id(target))
                found.setdefault(name, []).extend([] if given is None else [given])
            case ast.AugAssign(target=ast.Name() as target):
                plain.add(id(target))  # adding to a tensor gives a tensor
    for node in nodes:
        if isinstance(node, ast.Name):
            if id(node) not in plain and not isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(None)
        else:
            for name in dict.fromkeys(bound_by(node)):
                found.setdefault(name, []).append(None)
    return found
