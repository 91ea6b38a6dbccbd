"""The names of a module that hold the rank of a process, or are made of it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from flake8_torchperf.knowledge.parallel_training import RANK_CALLS, RANK_VARIABLES, RANK_WORDS
from flake8_torchperf.project.stores.module_facts import once_per_module
from flake8_torchperf.syntax.names import called_name
from flake8_torchperf.syntax.traversal import FUNCTIONS, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flake8_torchperf.project.module_index import ModuleMap

# How often names are followed to further names: through functions and attributes.
MAX_ROUNDS = 4


def is_of_rank(code: ast.AST, names: frozenset[str]) -> bool:
    """True if an expression, or other code, holds a rank or one of the names."""
    for node in walk([code]):
        match node:
            case ast.Call(func=func) if called_name(func) in RANK_CALLS:
                return True
            case ast.Constant(value=str(text)) if text in RANK_VARIABLES:
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in names:
                return True
            case ast.keyword(arg=str(name)) if name in RANK_WORDS:
                return True
    return False


@once_per_module
def rank_names(module: ModuleMap) -> frozenset[str]:
    """Return the names, in any function, that hold a rank or the number of ranks.

    Names are not told apart by their function: one that holds a rank anywhere counts everywhere.
    """
    nodes = walk([module.tree])
    bindings = [*_assigned(nodes), *_given(nodes)]
    found = {*RANK_WORDS, *_first_of_spawned(nodes)}
    for _ in range(MAX_ROUNDS):
        known = frozenset(found)
        for name, value in bindings:
            if name not in found and is_of_rank(value, known):
                found.add(name)
        if len(found) == len(known):
            break
    return frozenset(found)


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name or attribute that is assigned a number or a name, with what it is given.

    What a class or another function makes of a rank is no rank: ``model = Net(rank)``.
    """
    for node in nodes:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
            elif isinstance(target, (ast.Tuple, ast.List)):
                pairs = [(one, value) for one in target.elts]
            else:
                pairs = [(target, value)]
            for one, given in pairs:
                if _may_be_number(given) and isinstance(one, (ast.Name, ast.Attribute)):
                    yield (one.id if isinstance(one, ast.Name) else one.attr), given


def _may_be_number(value: ast.expr) -> bool:
    """True for a name, arithmetic, and calls that give the rank or a number."""
    match value:
        case ast.Call(func=func):
            return called_name(func) in (*RANK_CALLS, "int", "get", "getenv", "min", "max")
        case ast.Subscript(value=owner):
            return called_name(owner) == "environ"
    return True


def _given(nodes: list[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of the module's functions and classes, with what calls give them."""
    defined: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for node in nodes:
        if isinstance(node, FUNCTIONS):
            defined.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            made = [m for m in node.body if isinstance(m, FUNCTIONS) and m.name == "__init__"]
            defined.setdefault(node.name, []).extend(made)
    for node in nodes:
        if isinstance(node, ast.Call):
            for function in defined.get(called_name(node.func), ()):
                yield from _bound(node, function)


def _bound(
    call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[tuple[str, ast.expr]]:
    parameters = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if parameters[:1] == ["self"]:
        del parameters[0]
    pairs = [*zip(parameters, call.args, strict=False)]
    pairs += [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    yield from ((name, value) for name, value in pairs if _may_be_number(value))


def _first_of_spawned(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the first parameter of what ``mp.spawn(work, ...)`` runs: the process's number."""
    spawned = {
        called_name(node.args[0])
        for node in nodes
        if isinstance(node, ast.Call) and called_name(node.func) == "spawn" and node.args
    }
    for node in nodes:
        if isinstance(node, FUNCTIONS) and node.name in spawned and node.args.args:
            yield node.args.args[0].arg
