"""In the child: gives a loaded module the functions of another text of its file.

The module keeps its classes, its state and all references to it; only the code of the functions
that differ between the texts is exchanged.
"""

from __future__ import annotations

import ast
import gc
import os
from types import CodeType, FunctionType
from typing import Any

from flake8_torchperf.runtime.confirm.child.load import ConfirmError, Loaded, source_of

_CLASS_BODY = "__qualname__"


class VersionError(ConfirmError):
    """The text cannot replace the one that was loaded; ``str`` says why in one line."""


def put(text: str, path: str, loaded: Loaded) -> None:
    """Replace the functions of a loaded module by those of ``text``.

    Raises VersionError where the texts differ outside of functions and imports, or where a function
    that differs cannot be found.
    """
    disk = source_of(path).decode("utf-8", "replace") if loaded.mode == "module" else text
    if disk == text:
        return
    old, new = ast.parse(source_of(path)), ast.parse(text)
    if _outline(old) != _outline(new):
        raise VersionError("the fix changes more than functions: the module itself")
    _import_more(old, new, path, loaded.names)
    before, after = (_functions(compile(tree, path, "exec")) for tree in (old, new))
    changed = {key: code for key, code in after.items() if not _same(before.get(key), code)}
    if not changed:
        return
    alive = _alive(path)
    for key, code in changed.items():
        given = before.get(key)
        found = [] if given is None else alive.get((given.co_name, given.co_firstlineno), [])
        if not found:
            raise VersionError(f"{code.co_name} is no Python function once it is loaded")
        for function in found:
            _exchange(function, code)


def _exchange(function: FunctionType, code: CodeType) -> None:
    try:
        # Frames and decorators refer to the function object; the file name must not change.
        function.__code__ = code.replace(co_filename=function.__code__.co_filename)
    except ValueError as error:
        raise VersionError(f"{code.co_name} cannot be exchanged: {error}") from error


class _Bare(ast.NodeTransformer):
    """Empties the bodies of functions in a module's tree."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Keep the decorators and the arguments."""
        node.body = [ast.Pass()]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """Keep the decorators and the arguments."""
        node.body = [ast.Pass()]
        return node


def _outline(tree: ast.Module) -> str:
    bare = _Bare().visit(ast.parse(ast.unparse(tree)))
    bare.body = [one for one in bare.body if not isinstance(one, (ast.Import, ast.ImportFrom))]
    return ast.dump(bare)


def _import_more(old: ast.Module, new: ast.Module, path: str, names: dict[str, Any]) -> None:
    """Run the imports at the top of the file that only the new text has."""
    known = {ast.dump(one) for one in old.body}
    more: list[ast.stmt] = [
        one
        for one in new.body
        if isinstance(one, (ast.Import, ast.ImportFrom)) and ast.dump(one) not in known
    ]
    if more:
        exec(compile(ast.Module(more, []), path, "exec", dont_inherit=True), names)


def _functions(code: CodeType, above: str = "") -> dict[str, CodeType]:
    """Return the outermost functions of a module's code, by name and index among equals."""
    found: dict[str, CodeType] = {}
    seen: dict[str, int] = {}
    for one in code.co_consts:
        if not isinstance(one, CodeType):
            continue
        count = seen[one.co_name] = seen.get(one.co_name, 0) + 1
        key = f"{above}{one.co_name}:{count}."
        if _CLASS_BODY in one.co_names:
            found.update(_functions(one, key))
        else:
            found[key] = one
    return found


def _same(one: CodeType | None, other: CodeType) -> bool:
    """True if two code objects do the same, at any lines of the file."""
    if one is None or len(one.co_consts) != len(other.co_consts):
        return False
    plain = (
        "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags",
        "co_argcount", "co_kwonlyargcount", "co_posonlyargcount",
    )  # fmt: skip
    return all(getattr(one, name) == getattr(other, name) for name in plain) and all(
        _same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else repr(a) == repr(b)
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


def _alive(path: str) -> dict[tuple[str, int], list[FunctionType]]:
    """Return the functions that came from the file, by name and first line, decorated ones too."""
    wanted = {path: True}
    file = os.stat(path)
    found: dict[tuple[str, int], list[FunctionType]] = {}
    for one in gc.get_objects():
        if type(one) is not FunctionType:
            continue
        code = one.__code__
        name = code.co_filename
        if name not in wanted:
            wanted[name] = os.path.exists(name) and os.path.samestat(os.stat(name), file)
        if wanted[name]:
            found.setdefault((code.co_name, code.co_firstlineno), []).append(one)
    return found
