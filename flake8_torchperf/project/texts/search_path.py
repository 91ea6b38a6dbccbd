"""The folders that the modules of a project put on the search path of imports.

Scripts of research code start with ``sys.path.append(os.path.join(HERE, "models"))``. Which folder
that is depends on where the script lies, or where it is run; so a literal on the way to such a call
counts as a path below the script's folder and below each one above it in the project.
"""

from __future__ import annotations

import ast
import os
from functools import lru_cache
from typing import TYPE_CHECKING

from flake8_torchperf.project.files import NO_PYTHON, decoded
from flake8_torchperf.project.import_roots import up_to
from flake8_torchperf.syntax.names import dotted_name
from flake8_torchperf.syntax.parsing import quietly_parsed
from flake8_torchperf.syntax.traversal import CALL, FUNCTIONS, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

# Texts of a module that changes the search path; plain ones, since all modules are searched.
_CHANGES = (b"sys.path", b"addsitedir")
_CALLED = ("sys.path.append", "sys.path.insert", "sys.path.extend", "site.addsitedir")
# The most modules that are read for the folders that they name.
MOST_SCRIPTS = 40


def folders_on_path(
    top: str, texts: Mapping[str, bytes], folders: Collection[str]
) -> tuple[str, ...]:
    """Return those of some folders below ``top`` that modules put on the search path.

    ``texts`` maps the paths of the modules to their texts.
    """
    found: dict[str, None] = {}
    scripts = [path for path, data in texts.items() if any(one in data for one in _CHANGES)]
    for path in scripts[:MOST_SCRIPTS]:
        for named in _named_on_path(texts[path]):
            for above in up_to(top, os.path.dirname(path)):
                folder = os.path.normpath(os.path.join(above, named))
                if folder in folders:
                    found[folder] = None
    return tuple(found)


@lru_cache(maxsize=256)
def _named_on_path(data: bytes) -> tuple[str, ...]:
    """Return the literals, in order, that a module may put on the search path, or join to it."""
    try:
        tree = quietly_parsed(decoded(data))
    except NO_PYTHON:
        return ()  # flake8 reports the error when it lints that file
    found = dict.fromkeys(_literals(tree))
    return tuple(one for one in found if one.strip("./") and not os.path.isabs(one))


def _literals(tree: ast.Module) -> Iterator[str]:
    """Yield the texts in the arguments of calls that change the search path, through names."""
    nodes = walk([tree])
    bound = _bound(nodes)
    waiting = list(_put(nodes))
    seen: set[str] = set()
    while waiting:
        for node in walk([waiting.pop()]):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                waiting += bound.get(node.id, ())


def _put(nodes: list[ast.AST]) -> Iterator[ast.expr]:
    """Yield the expressions that are put on the search path."""
    for node in nodes:
        match node:
            case ast.Call(func=called, args=given) if dotted_name(called) in _CALLED:
                yield from given
            case (
                ast.AugAssign(target=target, value=value)
                | ast.Assign(targets=[target], value=value)
            ) if dotted_name(target) == "sys.path":
                yield value


def _bound(nodes: list[ast.AST]) -> dict[str, list[ast.expr]]:
    """Return what a module assigns to names, and gives the parameters of its functions."""
    found: dict[str, list[ast.expr]] = {}
    parameters = {
        node.name: [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
        for node in nodes
        if isinstance(node, FUNCTIONS)
    }
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found.setdefault(dotted_name(target), []).append(node.value)
        elif isinstance(node, CALL) and isinstance(node.func, ast.Name):
            for name, given in zip(parameters.get(node.func.id, ()), node.args, strict=False):
                found.setdefault(name, []).append(given)
        elif isinstance(node, ast.For):
            found.setdefault(dotted_name(node.target), []).append(node.iter)
    return found
