"""The names that stand for a whole batch in functions that ``vmap`` runs.

The analysis is by syntax. Arguments that ``in_dims`` leaves out or a partial binds, keywords, and
properties of a tensor such as its shape or dtype are not batched.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.methods import methods_of
from flake8_torchperf.program.outlines.outlining import Callable_
from flake8_torchperf.syntax.traversal import children
from flake8_torchperf.torch_compile.callables import PARTIAL, Resolver, wraps_first
from flake8_torchperf.torch_compile.compiling_wrappers import calls_within
from flake8_torchperf.torch_compile.scopes import Scope, Scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Attributes and methods of a batched tensor that return a plain Python value for one row.
PLAIN_ATTRIBUTES = frozenset((
    "shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_cuda", "is_sparse", "names",
    "grad_fn", "itemsize", "nbytes",
))  # fmt: skip
_PLAIN_METHODS = methods_of("asks-no-values")
PLAIN_FUNCTIONS = frozenset((
    "len", "isinstance", "type", "id", "hasattr", "callable", "torch.is_tensor", "torch.numel",
    "torch.is_floating_point", "torch.is_complex",
))  # fmt: skip


class BatchedNames:
    """Collects, function by function, the batched names; ``places`` holds their places."""

    def __init__(self, scopes: Scopes, resolver: Resolver) -> None:
        self._scopes = scopes
        self._module = scopes.module
        self._resolver = resolver
        self._parameters: dict[int, set[str]] = {}
        self._functions: dict[int, Callable_] = {}
        self.places: set[int] = set()

    def start(self, call: ast.Call, scope: Scope, targets: Iterable[Callable_]) -> None:
        """Add the parameters of ``f`` that ``vmap(f, in_dims=...)`` maps over."""
        bound = self._bound(call.args[0], scope)
        given = [k.value for k in call.keywords if k.arg == "in_dims"] or call.args[1:2]
        dims = given[0] if given else None
        if bound is not None:
            for target in targets:
                self._add(target, _mapped(self._free(target, *bound), dims))

    def decorated(self, target: Callable_, dims: ast.expr | None) -> None:
        """Add the parameters of a function under ``@torch.vmap``, with or without ``partial``."""
        self._add(target, _mapped(self._free(target, 0, frozenset()), dims))

    def finish(self, not_traced: Callable[[Callable_], bool]) -> list[Callable_]:
        """Follow batched values into called functions; return the functions that receive any."""
        waiting = list(self._functions.values())
        while waiting:
            function = waiting.pop()
            scope = self._scopes.of_function.get(id(function))
            if scope is None:
                continue
            names = self._spread(function)
            for call, place in calls_within(function, scope, self._scopes):
                for callee in self._resolver.functions(call.func, place):
                    if callee is function or not_traced(callee):
                        continue
                    given = self._given(call, callee, names)
                    if given - self._parameters.get(id(callee), set()):
                        self._add(callee, given)
                        waiting.append(callee)
        return list(self._functions.values())

    def _add(self, function: Callable_, names: set[str]) -> None:
        if names:
            self._functions[id(function)] = function
            self._parameters.setdefault(id(function), set()).update(names)

    def _bound(
        self, node: ast.expr, scope: Scope, left: int = 6
    ) -> tuple[int, frozenset[str]] | None:
        """Return how many parameters are bound by position before the transform, and bound names.

        Return None if they are not known.
        """
        match node:
            case ast.Call(args=[first, *rest]) if self._module.qualify(node.func) in PARTIAL:
                before = self._bound(first, scope, left - 1)
                if before is None or any(isinstance(a, ast.Starred) for a in rest):
                    return None
                named = {k.arg for k in node.keywords if k.arg is not None}
                return before[0] + len(rest), before[1] | named
            case ast.Call(args=[first, *_]) if wraps_first(self._module.qualify(node.func)):
                return self._bound(first, scope, left - 1)
            case ast.Name(id=name) if left > 0:
                found = scope.lookup(name)
                if found is not None and len(found[0]) == 1 and isinstance(found[0][0], ast.Call):
                    return self._bound(found[0][0], found[1], left - 1)
        return 0, frozenset()

    def _free(self, target: Callable_, first: int, named: frozenset[str]) -> list[str]:
        """Return the positional parameters that are left, without ``self``."""
        args = target.args
        names = [a.arg for a in (*args.posonlyargs, *args.args)]
        scope = self._scopes.of_function.get(id(target))
        if scope is not None and scope.me and names[:1] == [scope.me]:
            names = names[1:]
        if args.vararg is not None:
            names.append(args.vararg.arg)
        return [name for name in names[first:] if name not in named]

    def _spread(self, function: Callable_) -> set[str]:
        """Return all names in a function that a batched value reaches, and note their places."""
        names = set(self._parameters[id(function)])
        nodes = list(ast.walk(function))
        while True:
            before = len(names)
            for node in nodes:
                names.update(_reached(node, names, self._reads))
            if len(names) == before:
                break
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
                self.places.add(id(node))
        return names

    def _reads(self, node: ast.AST, names: set[str]) -> bool:
        """True if the value of an expression depends on a batched one."""
        return any(inner.id in names for inner in named(node, self._module.qualify))

    def _given(self, call: ast.Call, callee: Callable_, names: set[str]) -> set[str]:
        free = self._free(callee, 0, frozenset())
        given: set[str] = set()
        for argument, name in zip(call.args, free, strict=False):
            if isinstance(argument, ast.Starred):
                break
            if self._reads(argument, names):
                given.add(name)
        every = {*free, *(a.arg for a in callee.args.kwonlyargs)}
        for keyword in call.keywords:
            if keyword.arg in every and self._reads(keyword.value, names):
                given.add(keyword.arg)
        return given


def named(node: ast.AST, qualify: Callable[[ast.expr], str]) -> Iterator[ast.Name]:
    """Yield the names whose *values* an expression uses, not those used only for shape or type."""
    waiting = [node]
    while waiting:
        inner = waiting.pop()
        match inner:
            case ast.Name(ctx=ast.Load()):
                yield inner
                continue
            case ast.Attribute(attr=attr) if attr in PLAIN_ATTRIBUTES:
                continue
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _PLAIN_METHODS:
                continue
            case ast.Call(func=func) if qualify(func) in PLAIN_FUNCTIONS:
                continue
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                continue
            case ast.Lambda():
                continue
        waiting.extend(children(inner))


def _reached(
    node: ast.AST, names: set[str], reads: Callable[[ast.AST, set[str]], bool]
) -> Iterator[str]:
    """Yield the names that one statement makes batched."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Tuple(elts=values)) if len(
            parts
        ) == len(values):
            for part, value in zip(parts, values, strict=True):
                if reads(value, names):
                    yield from _stored(part)
        case ast.Assign(targets=targets, value=value) if reads(value, names):
            for target in targets:
                yield from _stored(target)
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
            | ast.NamedExpr(target=target, value=value)
            | ast.For(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
        ) if reads(value, names):
            yield from _stored(target)


def _stored(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _stored(part)
        case ast.Starred(value=inner):
            yield from _stored(inner)


def _mapped(names: list[str], dims: ast.expr | None) -> set[str]:
    """Return the parameters that ``in_dims`` maps over; none if it is not written out."""
    if isinstance(dims, (ast.Tuple, ast.List)):
        return {name for name, dim in zip(names, dims.elts, strict=False) if _maps(dim)}
    return set(names) if dims is None or _maps(dims) else set()


def _maps(dim: ast.expr) -> bool:
    """True for a dimension, or a structure that contains one."""
    match dim:
        case ast.Constant(value=int()) | ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return any(_maps(part) for part in parts)
    return False
