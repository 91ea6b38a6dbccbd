"""In the child: loads a file into a namespace in which its functions can be called.

The file is first imported as a module of its package, as its own project imports it. If that fails,
only the imports, constants, functions and classes that the wanted function needs are run; one that
fails is skipped.
"""

from __future__ import annotations
import __future__

import ast
import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass, field
from types import CodeType, ModuleType
from typing import Any


class ConfirmError(Exception):
    """An error with a message of our own: ``str`` is one line and needs no class name before it."""


class LoadError(ConfirmError):
    """Neither the module nor the function alone could be loaded; ``str`` says why in one line."""


@dataclass(frozen=True)
class Loaded:
    """``mode`` is "module" or "extract"; ``problem`` says why the module could not be imported."""

    names: dict[str, Any]
    mode: str
    problem: str = ""
    missing: dict[str, str] = field(default_factory=dict)


def load(path: str, module: str, root: str, function: str, text: str | None = None) -> Loaded:
    """Import the file at ``path`` as ``module`` from the folder ``root``; else extract a function.

    ``text`` is a source to extract from instead of the file's own. Raises LoadError if not even
    the function itself can be defined.
    """
    sys.path.insert(0, root)
    try:
        return Loaded(vars(import_file(path, module)), "module")
    except (Exception, SystemExit) as error:
        problem = one_line(error)
        return extract(path, module, function, problem, text)


def one_line(error: BaseException) -> str:
    """Return an exception as "ValueError: ...", cut to a readable length; our own unchanged."""
    text = " ".join(str(error).split())
    if isinstance(error, ConfirmError):
        return text
    name = type(error).__name__
    return f"{name}: {text[:160]}" if text else name


def import_file(path: str, module: str) -> ModuleType:
    """Return the file at ``path``, imported as ``module``. Raises what its code raises."""
    if module and module.isidentifier() is False and "." not in module:
        return _from_file(path, "_torchperf_" + "".join(c if c.isalnum() else "_" for c in module))
    already = sys.modules.get(module)
    if already is not None and not _is_file(already, path):
        return _from_file(path, f"_torchperf_{module.rpartition('.')[2]}")
    imported = importlib.import_module(module)
    if not _is_file(imported, path):
        return _from_file(path, f"_torchperf_{module.rpartition('.')[2]}")
    return imported


def _is_file(module: ModuleType, path: str) -> bool:
    found = getattr(module, "__file__", None)
    return bool(found) and os.path.realpath(str(found)) == os.path.realpath(path)


def _from_file(path: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported as a module")
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def module_code(path: str, text: str | None = None) -> CodeType:
    """Return the file compiled as on import, to be run for findings at module level."""
    return compile(source_of(path) if text is None else text, path, "exec", dont_inherit=True)


def source_of(path: str) -> bytes:
    """Return the bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def extract(path: str, module: str, function: str, problem: str, text: str | None = None) -> Loaded:
    """Define only the function and the code it needs. Raises LoadError if that fails too."""
    tree = ast.parse(source_of(path) if text is None else text)
    wanted = function.partition(".")[0]
    if wanted == "<module>":
        raise LoadError(problem)
    needed = _closure(tree, wanted)
    names: dict[str, Any] = {
        "__name__": module or "_torchperf_extract",
        "__package__": module.rpartition(".")[0],
        "__file__": path,
    }
    missing: dict[str, str] = {}
    for statement in _flat(tree.body):
        bound = _bound(statement)
        if not bound & needed and "*" not in bound:
            continue
        _define(statement, bound, names, missing, path)
    if wanted not in names:
        reason = missing.get(wanted, "it is not defined at the top level of the file")
        alone = "" if reason in problem else f"; {wanted} alone: {reason}"
        raise LoadError(f"{problem}{alone}")
    return Loaded(names, "extract", problem, missing)


def _define(
    statement: ast.stmt,
    bound: set[str],
    names: dict[str, Any],
    missing: dict[str, str],
    path: str,
) -> None:
    """Run one statement; if it fails, note the names that it would have bound.

    A definition is finally tried without its annotations, which may name a failed import.
    """
    defines = isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    problem = ""
    for flags in (0, __future__.annotations.compiler_flag) if defines else (0,):
        code = compile(ast.Module([statement], []), path, "exec", flags, dont_inherit=True)
        try:
            exec(code, names)
        except (Exception, SystemExit) as error:
            problem = problem or one_line(error)
        else:
            return
    missing.update(dict.fromkeys(bound, problem))


def _flat(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the top-level statements, with those in a ``try``, where imports are often found."""
    found: list[ast.stmt] = []
    for statement in body:
        match statement:
            case ast.Try(body=inner):
                found += [*_flat(inner), statement]
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                continue
            case _:
                found.append(statement)
    return found


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a top-level statement binds."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {(one.asname or one.name).partition(".")[0] for one in aliases}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } | {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(statement)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }


def _closure(tree: ast.Module, wanted: str) -> set[str]:
    """Return the names that ``wanted`` needs, directly or indirectly."""
    providers: dict[str, list[ast.stmt]] = {}
    for statement in _flat(tree.body):
        for name in _bound(statement):
            providers.setdefault(name, []).append(statement)
    needed: set[str] = set()
    waiting = [wanted]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        needed.add(name)
        for statement in providers.get(name, ()):
            waiting += [
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and node.id in providers
            ]
    return needed
