"""Functions of a module that compile their argument, such as the user's own decorators.

The analysis is by syntax.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.syntax.traversal import children, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.outlines.outlining import Callable_
    from flake8_torchperf.torch_compile.scopes import Scope, Scopes


Compiling = tuple[ast.Call, "Scope"]


class Wrappers:
    """Decides for each function of a module if it compiles its first parameter; results are cached.

    ``compiled`` returns the expression that a call compiles, None if it compiles nothing. ``left``
    is the number of functions that may still be followed.
    """

    def __init__(
        self, scopes: Scopes, compiled: Callable[[ast.Call, Scope, int], ast.expr | None]
    ) -> None:
        self._scopes = scopes
        self._compiled = compiled
        self._known: dict[tuple[int, int], Compiling | None] = {}

    def named(self, node: ast.expr, scope: Scope, left: int) -> Compiling | None:
        """Return the compiling call in the function that a name or a method of ``self`` names."""
        for function in self._functions(node, scope):
            found = self._of(function, left)
            if found is not None:
                return found
        return None

    def made(self, node: ast.expr, scope: Scope, left: int) -> Compiling | None:
        """Return the compiling call in the inner function that a maker of decorators returns."""
        for function in self._functions(node, scope):
            place = self._scopes.of_function.get(id(function))
            inner = None if place is None else returned(function, place)
            found = None if inner is None else self._of(inner, left)
            if found is not None:
                return found
        return None

    def _functions(self, node: ast.expr, scope: Scope) -> list[Callable_]:
        match node:
            case ast.Name(id=name):
                bound = scope.lookup(name)
                values = bound[0] if bound is not None else []
                return [v for v in values if isinstance(v, (ast.FunctionDef, ast.Lambda))]
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == scope.me:
                if scope.owner is not None and attr in scope.owner.methods:
                    return [scope.owner.methods[attr].node]
        return []

    def _of(self, function: Callable_, left: int) -> Compiling | None:
        """Return the result with ``left`` steps to go; cached for each number of steps."""
        key = (id(function), left)
        if key not in self._known:
            self._known[key] = self._look(function, left)
        return self._known[key]

    def _look(self, function: Callable_, left: int) -> Compiling | None:
        scope = self._scopes.of_function.get(id(function))
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if scope is None:
            return None
        given = names[1:] if names[:1] == [scope.me] else names
        if left <= 0 or not given:
            return None
        for call, place in calls_within(function, scope, self._scopes):
            if not _is_given(call, given[0]):
                continue
            what = self._compiled(call, place, left)
            if isinstance(what, ast.Name) and what.id == given[0]:
                plain = place.lookup(what.id) is None
                return (call, place) if plain and not self._switched_off(function) else None
        return None

    def _switched_off(self, function: Callable_) -> bool:
        """True if the function tests ``switch is None`` of a module-level name that is falsy."""
        for node in walk([function]):
            match node:
                case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]):
                    values = self._scopes.root.names.get(name, [])
                    if values and all(isinstance(v, ast.Constant) and not v.value for v in values):
                        return True
        return False


def _is_given(call: ast.Call, name: str) -> bool:
    what = handed_over(call)
    return isinstance(what, ast.Name) and what.id == name


def handed_over(call: ast.Call) -> ast.expr | None:
    """Return the argument of a call that compiles: the first one, or ``model``."""
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "model")]
    return given[0] if given else None


def returned(function: Callable_, scope: Scope) -> Callable_ | None:
    """Return the inner function that a maker of decorators returns."""
    if isinstance(function, ast.Lambda):
        return function.body if isinstance(function.body, ast.Lambda) else None
    last = function.body[-1]
    match last:
        case ast.Return(value=ast.Lambda() as inner):
            return inner
        case ast.Return(value=ast.Name(id=name)):
            for node in scope.names.get(name, []):
                if isinstance(node, ast.FunctionDef):
                    return node
    return None


def literal(node: ast.expr, scope: Scope | None) -> ast.expr:
    """Return the value of an option; for a parameter of an enclosing function, its default."""
    while isinstance(node, ast.Name) and scope is not None:
        if not isinstance(scope.node, ast.Module) and node.id in scope.parameters:
            return _default(node.id, scope.node.args) or node
        scope = scope.outer
    return node


def _default(name: str, args: ast.arguments) -> ast.expr | None:
    positional = [*args.posonlyargs, *args.args]
    with_default = positional[len(positional) - len(args.defaults) :]
    for argument, value in zip(with_default, args.defaults, strict=True):
        if argument.arg == name:
            return value
    for argument, given in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if argument.arg == name:
            return given
    return None


def calls_within(
    function: Callable_, scope: Scope, scopes: Scopes
) -> Iterator[tuple[ast.Call, Scope]]:
    """Yield every call in a function, nested ones included, in order, with its scope."""
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    waiting: list[tuple[ast.AST, Scope]] = [(node, scope) for node in reversed(body)]
    while waiting:
        node, place = waiting.pop()
        if isinstance(node, ast.Call):
            yield node, place
        inner = scopes.of_function.get(id(node), place)
        waiting.extend((child, inner) for child in reversed(children(node)))
