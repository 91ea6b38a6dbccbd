"""Places that make ``torch.compile`` compile again: growing state, wrapping per step, counters.

The analysis is by syntax, such as the value assigned to a list outside a function, or the loop
around a call.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.batching import REPEATED, ROW_BY_ROW
from flake8_torchperf.program.outlines.outlining import Callable_
from flake8_torchperf.syntax.bindings import all_bound_by
from flake8_torchperf.syntax.names import given_to
from flake8_torchperf.syntax.traversal import SCOPES, children, round_counters
from flake8_torchperf.torch_compile.callables import PARTIAL, TRANSFORMS
from flake8_torchperf.torch_compile.compiled_code import Mark
from flake8_torchperf.torch_compile.scopes import Scope
from flake8_torchperf.torch_compile.vmap import named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.torch_compile.region_search import RegionSearch

# Methods that make a list longer, and those that make it shorter.
GROWING_METHODS = frozenset(("append", "extend", "insert", "appendleft"))
SHRINKING_METHODS = frozenset(("clear", "pop", "popleft", "remove"))
# Functions that call the module passed to them with replaced parameters.
FUNCTIONAL_CALLS = frozenset((
    "torch.func.functional_call", "torch.nn.utils.stateless.functional_call",
))  # fmt: skip
# Calls that are traced again for each number passed to them (torch 2.13, as the page's test ran).
SPECIALISING_CALLS = frozenset(("range", "chunk", "dropout"))


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a node in its function: the loops around it, and its statement."""

    node: ast.Call
    loops: tuple[ast.AST, ...]
    statement: ast.stmt
    parent: ast.AST
    once: bool


def find_marks(search: RegionSearch) -> dict[int, Mark]:
    """Return all marks of one module."""
    marks: dict[int, Mark] = {}
    _mutations(search, marks)
    _compiled_inside(search, marks)
    _without_rule(search, marks)
    for node, scope in [(search.scopes.module.tree, None), *search.scopes.functions]:
        if isinstance(node, ast.Lambda):
            continue
        place = scope if scope is not None else search.root
        _wrapping(node, place, search, marks)
    return marks


def _mutations(search: RegionSearch, marks: dict[int, Mark]) -> None:
    from flake8_torchperf.torch_compile.traced_nodes import body_of, traced

    found = search.found
    for node, scope in search.scopes.functions:
        compilation = found.functions.get(id(node))
        transform = found.transformed.get(id(node), "")
        if compilation is None and not transform:
            continue
        words = compilation.words if compilation else f"of a function that {transform} runs"
        seen = list(traced(body_of(node)))
        shrunk = _shrunk(seen)
        outside = {name for n in seen if isinstance(n, ast.Global) for name in n.names}
        for inner in seen:
            operation = _mutation(inner, scope, search, outside, shrunk)
            if operation and compilation is None:
                operation = "leak" if operation == "append" and _keeps(inner, search) else ""
            if operation:
                marks[id(inner)] = Mark(operation, words)


def _compiled_inside(search: RegionSearch, marks: dict[int, Mark]) -> None:
    """Mark calls of compiled functions in code that a transform runs, where they run uncompiled."""
    found = search.found
    for call, scope in search.scopes.calls:
        place: Scope | None = scope
        while place is not None and id(place.node) not in found.transformed:
            place = place.outer
        if place is None or id(place.node) in found.functions or id(scope.node) in found.functions:
            continue
        called = call.func
        if search.scopes.module.qualify(called) in FUNCTIONAL_CALLS and call.args:
            called = call.args[0]
        if search.is_compiled(called, scope):
            marks[id(call)] = Mark("compiled-inside", found.transformed[id(place.node)])


def _without_rule(search: RegionSearch, marks: dict[int, Mark]) -> None:
    """Mark ``vmap(torch.histc)``: ``vmap`` of a torch function that has no batching rule."""
    qualify = search.scopes.module.qualify
    for call, _ in search.scopes.calls:
        given = call.args[0] if call.args else None
        if isinstance(given, ast.Call) and qualify(given.func) in PARTIAL and given.args:
            given = given.args[0]
        if given is None or TRANSFORMS.get(qualify(call.func)) != "vmap":
            continue
        if qualify(given) in ROW_BY_ROW - REPEATED:
            marks[id(call)] = Mark("row-by-row", "")


def _keeps(node: ast.AST, search: RegionSearch) -> bool:
    """True if the transformed function appends one of its batched values."""
    module = search.scopes.module
    return isinstance(node, ast.Call) and any(
        id(name) in search.found.rows for a in node.args for name in named(a, module.qualify)
    )


def _mutation(
    node: ast.AST, scope: Scope, search: RegionSearch, outside: set[str], shrunk: set[str]
) -> str:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if (
            attr in GROWING_METHODS
        ):
            listed = name not in shrunk and _outer_list(name, scope, search)
            return "append" if listed else ""
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(value=ast.Name(id=me), attr=owned), attr=attr)
        ) if attr in GROWING_METHODS and me == scope.me:
            listed = f"self.{owned}" not in shrunk and _own(owned, scope, search, _is_list)
            return "append" if listed else ""
        case ast.AugAssign(target=ast.Name(id=name)) if name in outside:
            return "global" if _global_number(name, search.root) else ""
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=left)) if (
            name in outside and isinstance(left, ast.Name) and left.id == name
        ):
            return "global" if _global_number(name, search.root) else ""
        case ast.AugAssign(
            target=ast.Attribute(value=ast.Name(id=me), attr=owned), value=ast.Constant()
        ) if me == scope.me and _is_module(scope, search):
            switched = "allow_unspec_int_on_nn_module" in search.found.switches
            return "counter" if not switched and _own(owned, scope, search, _is_int) else ""
    return ""


def _shrunk(nodes: list[ast.AST]) -> set[str]:
    """Return the lists that a function also shortens or replaces."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=attr)) if attr in SHRINKING_METHODS:
                found.add(_path(owner))
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                for target in targets:
                    base = target.value if isinstance(target, ast.Subscript) else target
                    found.add(_path(base))
    return found


def _path(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(), attr=attr):
            return f"self.{attr}"
    return ""


def _outer_list(name: str, scope: Scope, search: RegionSearch) -> bool:
    """True if ``name`` is a list made outside the function, in code that is not compiled itself."""
    if name in scope.names or name in scope.parameters:
        return False
    bound = scope.lookup(name)
    if bound is None:
        return False
    nodes, place = bound
    if id(place.node) in search.found.functions or id(place.node) in search.found.transformed:
        return False
    return all(isinstance(n, ast.expr) and _is_list(n) for n in nodes)


def _own(name: str, scope: Scope, search: RegionSearch, kind: Callable[[ast.expr], bool]) -> bool:
    """True if all values that methods assign to ``self.name`` are of one kind."""
    if scope.owner is None:
        return False
    values = [
        value
        for klass in search.resolver.lineage(scope.owner)
        for value, _ in search.scopes.attribute(klass, name)
    ]
    return bool(values) and all(kind(value) for value in values)


def _is_list(node: ast.expr) -> bool:
    match node:
        case ast.List() | ast.ListComp():
            return True
        case ast.Call(func=ast.Name(id="list" | "deque"), keywords=[]):
            return True
    return False


def _is_int(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _global_number(name: str, root: Scope) -> bool:
    made = [n for n in root.names.get(name, []) if not _steps(n, name)]
    return bool(made) and all(isinstance(n, ast.Constant) and _is_int(n) for n in made)


def _steps(node: ast.AST, name: str) -> bool:
    """True for ``count + 1``, as assigned under ``global count``."""
    match node:
        case ast.BinOp(left=ast.Name(id=left), right=ast.Constant()):
            return left == name
    return False


def _is_module(scope: Scope, search: RegionSearch) -> bool:
    if scope.owner is None:
        return False
    return any(
        base.rpartition(".")[2] in ("Module", "LightningModule", "PreTrainedModel")
        for klass in search.resolver.lineage(scope.owner)
        for base in klass.bases
    )


def _wrapping(
    node: ast.Module | Callable_, scope: Scope, search: RegionSearch, marks: dict[int, Mark]
) -> None:
    """Mark the wraps and the calls of compiled functions in one function's own statements."""
    body = node.body if isinstance(node.body, list) else []
    name = node.name if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""
    for place in _places(body):
        call = place.node
        wrap = search.found.wraps.get(id(call))
        if wrap is None:
            if place.loops and _changing_number(call, place, scope, search):
                marks[id(call)] = Mark("number", "")
        elif wrap.operation in TRANSFORMS.values():
            if wrap.over_compiled and id(node) not in search.found.functions:
                marks[id(call)] = Mark("over-compiled", wrap.operation)
        elif (
            id(node) not in search.found.functions and not place.once and not _stored(place, scope)
        ):
            if place.loops and not _bound_in(place.loops, call):
                marks[id(call)] = Mark("loop", "")
            elif name and not place.loops:
                # The heat of the function shows if it runs in each step.
                marks[id(call)] = Mark("step", name)


def _called_at_once(place: _Place) -> bool:
    return isinstance(place.parent, ast.Call) and place.parent.func is place.node


def _stored(place: _Place, scope: Scope) -> bool:
    """True if the compiled function is stored: in an attribute, a global, a container, a module."""
    match place.node:
        case ast.Call(func=ast.Attribute(attr="compile", value=owner)):
            if not (isinstance(owner, ast.Name) and owner.id == "torch"):
                return True
    if _called_at_once(place):
        return False
    match place.statement:
        case ast.Assign(targets=targets):
            return any(not isinstance(t, ast.Name) or t.id in scope.declared for t in targets)
        case ast.AnnAssign(target=target):
            return not isinstance(target, ast.Name)
        case ast.Return():
            return True
    # The function is passed to code that may store it: setattr(...), layers.append(...)
    return isinstance(place.parent, (ast.Call, ast.Dict, ast.List, ast.Tuple, ast.keyword))


def _places(body: list[ast.stmt]) -> Iterator[_Place]:
    """Yield every call in a function's own statements, with the loops around it."""
    waiting: list[tuple[ast.AST, tuple[ast.AST, ...], ast.stmt | None, ast.AST | None, bool]]
    waiting = [(s, (), None, None, False) for s in reversed(body)]
    while waiting:
        node, loops, statement, parent, once = waiting.pop()
        if isinstance(node, SCOPES):
            continue
        if isinstance(node, ast.stmt):
            statement = node
        if isinstance(node, ast.Call) and statement is not None and parent is not None:
            yield _Place(node, loops, statement, parent, once)
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            inner = (*loops, node)
            head = [node.test] if isinstance(node, ast.While) else [node.iter]
            waiting.extend((x, loops, statement, node, once) for x in head)
            waiting.extend((x, inner, statement, node, once) for x in reversed(node.body))
            waiting.extend((x, loops, statement, node, once) for x in reversed(node.orelse))
            continue
        below = once or isinstance(node, (ast.If, ast.IfExp, ast.Try))
        waiting.extend([(x, loops, statement, node, below) for x in reversed(children(node))])


def _bound_in(loops: tuple[ast.AST, ...], call: ast.Call) -> bool:
    """True if the call uses a name that the loops around it bind."""
    bound = set(all_bound_by([loops[0]]))
    for node in ast.walk(loops[0]):
        match node:
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store()):
                bound.add(name)
    return any(isinstance(n, ast.Name) and n.id in bound for n in ast.walk(call))


def _changing_number(call: ast.Call, place: _Place, scope: Scope, search: RegionSearch) -> bool:
    """True if a compiled function is passed a loop's counter that makes it compile again."""
    counters = {name for loop in place.loops for name in round_counters(loop)}
    if not counters or not any(_names(a, counters) for a in given_to(call)):
        return False
    if not search.is_compiled(call.func, scope):
        return False
    settings = search.settings_of(call.func, scope)
    static = settings is not None and settings.dynamic is False
    for target in search.resolver.functions(call.func, scope):
        for parameter in _parameters_given(call, target, counters):
            if _specialises(target, parameter, search) or (static and _uses(target, parameter)):
                return True
    return False


def _names(node: ast.expr, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _parameters_given(call: ast.Call, target: Callable_, counters: set[str]) -> Iterator[str]:
    names = [a.arg for a in (*target.args.posonlyargs, *target.args.args)]
    if names[:1] == ["self"]:
        names = names[1:]
    for argument, name in zip(call.args, names, strict=False):
        if _names(argument, counters):
            yield name
    for keyword in call.keywords:
        if keyword.arg is not None and _names(keyword.value, counters):
            yield keyword.arg


def _uses(target: Callable_, parameter: str) -> bool:
    body = [target.body] if isinstance(target, ast.Lambda) else target.body
    return any(isinstance(n, ast.Name) and n.id == parameter for s in body for n in ast.walk(s))


def _specialises(target: Callable_, parameter: str, search: RegionSearch) -> bool:
    """True if the compiler has to know the number, as for a range or an index of modules."""
    scope = search.scopes.of_function.get(id(target))
    body: list[ast.AST] = [target.body] if isinstance(target, ast.Lambda) else list(target.body)
    for node in (n for s in body for n in ast.walk(s)):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                if name in SPECIALISING_CALLS and any(
                    _names(a, {parameter}) for a in given_to(node)
                ):
                    return True
            case ast.Subscript(value=held, slice=ast.Name(id=index)) if index == parameter:
                if scope is not None and _is_python_list(held, scope, search):
                    return True
    return False


def _is_python_list(node: ast.expr, scope: Scope, search: RegionSearch) -> bool:
    """True for a list or a ``ModuleList`` in an attribute of ``self`` or an outer name."""
    match node:
        case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == scope.me:
            return _own(attr, scope, search, lambda v: _is_list(v) or _is_module_list(v, search))
        case ast.Name(id=name):
            bound = scope.lookup(name)
            return bound is not None and all(
                isinstance(n, ast.expr) and (_is_list(n) or _is_module_list(n, search))
                for n in bound[0]
            )
    return False


def _is_module_list(node: ast.expr, search: RegionSearch) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return search.scopes.module.qualify(node.func).rpartition(".")[2] in (
        "ModuleList",
        "Sequential",
        "ParameterList",
    )
