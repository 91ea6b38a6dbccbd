"""Where a data loader goes, by syntax: to loops that train, to others, or out of sight."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.idioms.loop_kinds import STATEMENTS
from flake8_torchperf.idioms.module_roles import compares_options
from flake8_torchperf.interpreter.engine.caches import Cache
from flake8_torchperf.program.given import KEEPING_EACH
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.syntax.names import called_name, dotted_name
from flake8_torchperf.syntax.traversal import CALL, DEFINITIONS, FUNCTIONS, SCOPES, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flake8_torchperf.interpreter.engine.analysis import Analysis
    from flake8_torchperf.interpreter.engine.place import Context
    from flake8_torchperf.program.runs import Run
    from flake8_torchperf.project.module_index import FunctionNode, ModuleMap

# Calls whose result goes over what they are given.
PASSING = frozenset(("enumerate", "iter", "tqdm", "trange", "zip", "cycle", "islice", "track"))
# Calls that a loader is given without being used up or changed.
LEAVING_ALONE = frozenset(("len", "print", "isinstance", "id", "repr", "str"))
# The most expressions that are followed from one loader.
MAX_FOLLOWED = 200
# How many functions deep the body of a loop is searched for `backward`.
MAX_DEPTH = 3
# The most calls that are read to find the use of a loader that a function returns.
MOST_CALLS = 10
Place: TypeAlias = "tuple[int, str]"


@dataclass
class LoaderUses:
    """The uses of a loader that were found.

    ``trained`` holds the loops over it whose rounds go backward, each with its module; ``escapes``
    is True if something that is not understood is given it; ``returned`` holds the functions that
    return it and that nothing in their module calls, with its position in the tuple or None.
    ``modules`` holds the modules that it goes through.
    """

    trained: list[tuple[ModuleMap, ast.AST]] = field(default_factory=list)
    escapes: bool = False
    returned: list[tuple[FunctionNode, int | None]] = field(default_factory=list)
    modules: dict[int, ModuleMap] = field(default_factory=dict)


@once_per_module
def tree_of(module: ModuleMap) -> ast.Module:
    """Return one tree of a module, whose nodes stay the same: an outline parses its text again."""
    return module.tree


@once_per_module
def parents(module: ModuleMap) -> Mapping[int, ast.AST]:
    """Return the node above each node of a module."""
    return {
        id(child): node
        for node in ast.walk(tree_of(module))
        for child in ast.iter_child_nodes(node)
    }


USES: Cache[ast.Call, LoaderUses] = Cache("where data loaders go")


def uses_of(call: ast.Call, ctx: Context) -> LoaderUses:
    """Return where a loader goes that a call in the linted module makes."""
    return USES.kept(ctx.analysis, call, lambda: _uses_of(call, ctx.module, ctx.analysis))


def _uses_of(call: ast.Call, module: ModuleMap, analysis: Analysis) -> LoaderUses:
    follower = Follower(analysis)
    follower.follow(call, module)
    for function, part in follower.uses.returned:
        info = function_at(module, function.lineno)
        if info is None or info.tree is not function:
            continue
        for caller, run in islice(analysis.leading(info), MOST_CALLS):
            if not compares_options(caller, analysis.conventions):
                for made in _calls_at(run, info.name, caller):
                    follower.follow(made, caller, part)
    return follower.uses


def _calls_at(run: Run, name: str, module: ModuleMap) -> Iterator[ast.Call]:
    """Yield the call of a name that begins at a place, if one does."""
    for node in walk([tree_of(module)]):
        if not isinstance(node, CALL) or called_name(node.func) != name:
            continue
        if (node.lineno, node.col_offset) == (run.line, run.column):
            yield node


class Follower:
    """Follows one expression through a module, and into the functions that it imports."""

    def __init__(self, analysis: Analysis) -> None:
        self.uses = LoaderUses()
        self._find = analysis.project.find
        self._calls_step = analysis.calls_step
        self._seen: set[tuple[int, int | None]] = set()

    def follow(self, node: ast.AST, module: ModuleMap, part: int | None = None) -> None:
        """Note the uses of an expression; ``part`` is its position in the tuple that it is."""
        if (id(node), part) in self._seen:
            return
        self._seen.add((id(node), part))
        self.uses.modules[id(module)] = module
        if len(self._seen) > MAX_FOLLOWED:
            self.uses.escapes = True
            return
        above = parents(module).get(id(node))
        match above:
            case ast.Assign(targets=[target]):
                self._bound(target, above, module, part)
            case ast.AnnAssign(target=target):
                self._bound(target, above, module, part)
            case ast.Tuple(elts=elements, ctx=ast.Load()) if part is None:
                position = next(i for i, one in enumerate(elements) if one is node)
                self.follow(above, module, position)
            case ast.Return():
                self._returned(above, module, part)
            case ast.For(iter=source) | ast.AsyncFor(iter=source) if source is node:
                self._looped(above, module)
            case ast.Dict() | ast.DictComp() | ast.Subscript() if part is None:
                self.uses.escapes = True  # which loader an item is isn't followed
                self.follow(above, module)
            case ast.Call() | ast.keyword() if part is None:
                self._given(node, above, module)
            case ast.Attribute() | ast.Expr() | ast.comprehension():
                pass  # `loader.dataset`, a docstring, a list of batches
            case ast.If(test=test) | ast.While(test=test) if test is node:
                pass
            case ast.Compare():
                pass
            case _:
                self.uses.escapes = True

    def _looped(self, loop: ast.AST, module: ModuleMap) -> None:
        """Note a loop that takes the batches of the expression, and follow what it yields."""
        if leads_to_backward(loop, module) or self._calls_step(loop, module):
            self.uses.trained.append((module, loop))
        elif any(isinstance(node, ast.Yield) for node in walk([loop])):
            self._returned(loop, module, None)

    def _bound(
        self, target: ast.expr, statement: ast.AST, module: ModuleMap, part: int | None
    ) -> None:
        if part is not None:
            if not isinstance(target, (ast.Tuple, ast.List)) or part >= len(target.elts):
                self.uses.escapes = True
                return
            target = target.elts[part]
        if isinstance(target, ast.Subscript):
            self.uses.escapes = True  # which loader an item is isn't followed
            target = target.value
        scope = _scope(target, module)
        if isinstance(target, (ast.Name, ast.Attribute)) and dotted_name(target):
            if _is_bound_elsewhere(target, statement, scope, module):
                self.uses.escapes = True  # a read may be one of the other value
            self._read(dotted_name(target), scope, module)
        else:
            self.uses.escapes = True

    def _read(self, name: str, scope: ast.AST, module: ModuleMap) -> None:
        """Follow each read of a name in a scope, or of an attribute in a class."""
        for node in walk([scope]):
            if not isinstance(node, (ast.Name, ast.Attribute)) or dotted_name(node) != name:
                continue
            if isinstance(node.ctx, ast.Load) and not _is_hidden(node, name, scope, module):
                self.follow(node, module)

    def _returned(self, node: ast.AST, module: ModuleMap, part: int | None) -> None:
        function = _function(node, module)
        if not isinstance(function, FUNCTIONS):
            self.uses.escapes = True
            return
        calls = [
            one
            for one in walk([tree_of(module)])
            if isinstance(one, CALL) and called_name(one.func) == function.name
        ]
        for call in calls:
            self.follow(call, module, part)
        if not calls:
            self.uses.returned.append((function, part))

    def _given(self, node: ast.AST, above: ast.AST, module: ModuleMap) -> None:
        """Follow an argument into what the call runs."""
        keyword = above.arg if isinstance(above, ast.keyword) else None
        call = parents(module).get(id(above)) if isinstance(above, ast.keyword) else above
        if not isinstance(call, ast.Call) or call.func is node:
            self.uses.escapes = True
            return
        name = called_name(call.func)
        if name in PASSING:
            self.follow(call, module)
        elif name == "next":
            loop = _above(call, STATEMENTS, module)
            if loop is not None and _function(loop, module) is _function(call, module):
                self._looped(loop, module)
        elif name not in LEAVING_ALONE:
            position = next((i for i, one in enumerate(call.args) if one is node), None)
            bodies = list(self._bodies(call, module))
            if not bodies and name in KEEPING_EACH and position is not None:
                self.follow(call, module, position if len(call.args) > 1 else None)
            for body, owner in bodies:
                parameter = _parameter(body, position, keyword)
                if parameter:
                    self._read(parameter, body, owner)
                else:
                    self.uses.escapes = True
            self.uses.escapes |= not bodies

    def _bodies(
        self, call: ast.Call, module: ModuleMap
    ) -> Iterator[tuple[FunctionNode, ModuleMap]]:
        """Yield the functions that a call may run: of its module, or one that it imports."""
        name = called_name(call.func)
        own = list(functions_named(name, module))
        yield from ((one, module) for one in own)
        imported = module.qualify(call.func)
        if own or not imported or "." not in imported:
            return
        found = self._find(imported)
        if found is not None and len(found[1]) == 1 and found[0].lines:  # reading notes the query
            yield from ((one, found[0]) for one in functions_named(found[1][0], found[0]))


def functions_named(name: str, module: ModuleMap) -> Iterator[FunctionNode]:
    """Yield the functions and methods of a name, and what a class of that name is made by."""
    for node in walk([tree_of(module)]):
        if isinstance(node, FUNCTIONS) and node.name == name:
            yield node
        elif isinstance(node, ast.ClassDef) and node.name == name:
            yield from (
                one for one in node.body if isinstance(one, FUNCTIONS) and one.name == "__init__"
            )


def leads_to_backward(code: ast.AST, module: ModuleMap, depth: int = MAX_DEPTH) -> bool:
    """True if code calls ``backward``, or functions of its module that do."""
    names = {called_name(node.func) for node in walk([code]) if isinstance(node, CALL)}
    if "backward" in names:
        return True
    return depth > 0 and any(
        leads_to_backward(body, module, depth - 1)
        for name in names
        for body in functions_named(name, module)
        if body is not code
    )


def _parameter(body: FunctionNode, position: int | None, keyword: str | None) -> str:
    names = [one.arg for one in (*body.args.posonlyargs, *body.args.args)]
    if keyword is not None:
        return keyword if keyword in (*names, *(one.arg for one in body.args.kwonlyargs)) else ""
    if names[:1] == ["self"]:
        del names[0]
    return names[position] if position is not None and position < len(names) else ""


def _scope(target: ast.AST, module: ModuleMap) -> ast.AST:
    """Return where a name is known: its function or module; for an attribute, the class."""
    kinds: tuple[type[ast.AST], ...] = SCOPES
    if isinstance(target, ast.Attribute):
        kinds = (ast.ClassDef,)
    return _above(target, kinds, module) or tree_of(module)


def _function(node: ast.AST, module: ModuleMap) -> ast.AST | None:
    return _above(node, SCOPES, module)


def _above(node: ast.AST, kinds: tuple[type[ast.AST], ...], module: ModuleMap) -> ast.AST | None:
    above = parents(module)
    found = above.get(id(node))
    while found is not None and not isinstance(found, kinds):
        found = above.get(id(found))
    return found


def _is_bound_elsewhere(
    target: ast.expr, statement: ast.AST, scope: ast.AST, module: ModuleMap
) -> bool:
    """True if another statement of the scope binds the name too, other than to None."""
    name = dotted_name(target)
    for node in walk([scope]):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Store):
            continue
        if node is target or dotted_name(node) != name:
            continue
        if _is_hidden(node, name, scope, module):
            continue
        holder = parents(module).get(id(node))
        empty = isinstance(holder, ast.Assign) and isinstance(holder.value, ast.Constant)
        if holder is not statement and not empty:
            return True
    return False


def _is_hidden(node: ast.AST, name: str, scope: ast.AST, module: ModuleMap) -> bool:
    """True if a function between a scope and a node has a variable of its own by that name."""
    above = parents(module)
    found = above.get(id(node))
    while found is not None and found is not scope:
        if "." not in name and isinstance(found, DEFINITIONS) and _binds(found, name):
            return True
        found = above.get(id(found))
    return False


def _binds(scope: ast.AST, name: str) -> bool:
    if isinstance(scope, FUNCTIONS):
        named = (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)
        if any(one.arg == name for one in named):
            return True
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for node in walk([scope])
    )
