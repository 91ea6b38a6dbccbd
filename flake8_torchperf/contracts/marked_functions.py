"""The roots of contracts: functions that the user marks as not waiting, and recorded code.

The texts of the package are searched for roots, and only modules with a root are parsed.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from flake8_torchperf.contracts.recorded_code import recording_blocks
from flake8_torchperf.interpreter.calls.call_log import COMPILE, RECORDING_MODE
from flake8_torchperf.interpreter.stated_types.class_hierarchy import lineage
from flake8_torchperf.judgement.frequency.own_heat import named_in
from flake8_torchperf.project.answers import record
from flake8_torchperf.project.definitions import function_at
from flake8_torchperf.project.files import NO_PYTHON, decoded, read_bytes, stamp
from flake8_torchperf.project.module_index import forget, read_module
from flake8_torchperf.project.stores.kept import Kept
from flake8_torchperf.syntax.contract_comments import RECORDING, contract_comments
from flake8_torchperf.syntax.traversal import FUNCTIONS
from flake8_torchperf.values.values import Closure, Function, Instance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flake8_torchperf.interpreter.engine.analysis import Analysis, SeenCall
    from flake8_torchperf.project.module_index import FunctionInfo, ModuleMap

# The most modules that are parsed for the contracts of one package.
MAX_MODULES = 200
# The bytes of text whose trees stay in memory from one linted file to the next; a tree takes 27
# times its text. Contracts are few, and so are the modules that hold them.
WITH_CONTRACTS = 1_000_000
_WHOLE: Kept[tuple[str, int, int], ModuleMap | None] = Kept(WITH_CONTRACTS, forget)


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """A function that must not wait, or its lines ``first`` to ``last``, 0 for all lines.

    ``source`` is its qualified name, or that of a function nested in ``function``. ``shown`` is its
    name in messages.
    """

    function: Function
    source: str
    shown: str
    first: int = 0
    last: int = 0


def stated_roots(analysis: Analysis, globs: tuple[str, ...]) -> Iterator[Root]:
    """Yield the functions that the settings name, and the functions that a comment marks."""
    paths = list(analysis.project.modules_that_promise())
    if globs:
        paths += analysis.project.modules_that_match(_defining(globs))
    for module in _modules(paths, analysis):
        comments = contract_comments(module.lines)
        for info in module.defined:
            whole = canonical(info, analysis)
            if whole is None:
                continue
            if named_in(info, globs) or comments.mark(info.node):
                yield Root(whole, info.qualname, info.qualname)
            for source, node in nested_in(info.node, info.qualname):
                if comments.mark(node):
                    yield Root(whole, source, _shown(source))
        yield from _inherited(module, globs, analysis)


def recording_modules(analysis: Analysis) -> Iterator[ModuleMap]:
    """Yield the modules in which torch may record a CUDA graph."""
    for module in _modules(list(analysis.project.modules_that_promise()), analysis):
        text = "".join(module.lines)
        if any(word in text for word in RECORDING):
            yield module


def recorded_blocks(info: FunctionInfo, function: Function) -> Iterator[Root]:
    """Yield the blocks of a function that torch records."""
    for block in recording_blocks(info):
        source = _innermost(block, info)
        last = block.end_lineno or block.lineno
        yield Root(function, source, _shown(source), block.body[0].lineno, last)


def handed_over(calls: list[SeenCall]) -> Iterator[Root]:
    """Yield the functions that calls pass to torch to be recorded."""
    for call in calls:
        if not call.into or call.target is None:
            continue
        if isinstance(call.target, Function):
            info = call.target.info
            yield Root(call.target, info.qualname, info.qualname)
        else:
            for outer, source in place_of(call.target):
                yield Root(outer, source, _shown(source))


def place_of(closure: Closure) -> Iterator[tuple[Function, str]]:
    """Yield the function around a nested one, and the qualified name of the nested one."""
    info = function_at(closure.module, closure.node.lineno)
    if info is not None:
        for source, node in nested_in(info.node, info.qualname):
            if id(node) == closure.key:
                yield Function(info, info.key), source


def is_recorded(info: FunctionInfo) -> bool:
    """True for a function under ``@torch.compile(mode="reduce-overhead")``."""
    for decorator in info.tree.decorator_list:
        if isinstance(decorator, ast.Call) and info.module.qualify(decorator.func) == COMPILE:
            for keyword in decorator.keywords:
                match keyword:
                    case ast.keyword(arg="mode", value=ast.Constant(value=mode)):
                        return bool(mode == RECORDING_MODE)
    return False


def _shown(source: str) -> str:
    return source.replace(".<locals>", "")


def _innermost(node: ast.With | ast.AsyncWith, info: FunctionInfo) -> str:
    """Return the qualified name of the function that a node stands in."""
    source = info.qualname
    for name, inner in nested_in(info.node, info.qualname):
        if inner.lineno <= node.lineno <= (inner.end_lineno or inner.lineno):
            source = name
    return source


def nested_in(
    node: ast.FunctionDef | ast.AsyncFunctionDef, source: str
) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return the functions in a function with their qualified names, outer ones first."""
    found: list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]] = []
    waiting: list[tuple[ast.AST, str]] = [(one, source) for one in node.body]
    while waiting:
        inner, place = waiting.pop(0)
        if isinstance(inner, FUNCTIONS):
            place = f"{place}.<locals>.{inner.name}"
            found.append((place, inner))
        waiting.extend((one, place) for one in ast.iter_child_nodes(inner))
    return found


def _modules(paths: list[str], analysis: Analysis) -> Iterator[ModuleMap]:
    """Yield the linted module if its text may hold a contract, and the modules of these files."""
    linted = analysis.project.linted
    here = ""
    if linted.parsed is not None:
        here = linted.place
        yield linted
    for path in [one for one in dict.fromkeys(paths) if one != here][:MAX_MODULES]:
        module = read_whole(path, *stamp(path))
        if module is not None:
            record(module.checked)
            yield module


def read_whole(path: str, modified: int, size: int) -> ModuleMap | None:
    """Return a module with all its definitions; None if the file is not Python."""
    return _WHOLE.made((path, modified, size), size, lambda: _read_whole(path))


def _read_whole(path: str) -> ModuleMap | None:
    data = read_bytes(path)
    if not isinstance(data, bytes):
        return None
    try:
        text = decoded(data)
        return read_module(ast.parse(text), (text,), Path(path))
    except NO_PYTHON:
        return None  # flake8 reports the error when it lints that file


def canonical(info: FunctionInfo, analysis: Analysis) -> Function | None:
    """Return the function as its calls resolve it; None if it is defined twice."""
    module = analysis.project.module(info.module.name) if info.module.name else info.module
    if module is None:
        return None
    if info.owner is None:
        found = module.functions.get(info.name)
    else:
        owner = module.classes.get(info.owner.name)
        found = None if owner is None else owner.methods.get(info.name)
    if found is None or found.key != info.key:
        return None
    return Function(found, found.key)


def _inherited(module: ModuleMap, globs: tuple[str, ...], analysis: Analysis) -> Iterator[Root]:
    """Yield the roots that a class inherits, as ``GPT2.generate`` from a base of `GPT2`."""
    for glob in globs:
        class_name, _, method = glob.rpartition(".")
        owner = module.classes.get(class_name) if class_name else None
        if owner is None:
            continue
        known = analysis.project.module(module.name) if module.name else module
        owner = owner if known is None else known.classes.get(class_name)
        if owner is None:
            continue
        seen = set(owner.methods)
        for base in lineage(owner, analysis)[1:]:
            if isinstance(base, str):
                continue
            for name, info in base.methods.items():
                if name not in seen and fnmatchcase(name, method):
                    bound = Instance(owner.key, owner)
                    yield Root(
                        Function(info, info.key, bound), info.qualname, f"{owner.name}.{name}"
                    )
            seen.update(base.methods)


def _defining(globs: tuple[str, ...]) -> str:
    """Return a pattern for module texts that define a function named by a glob, or its class."""
    ways: list[str] = []
    for glob in globs:
        owner, _, name = glob.rpartition(".")
        if owner:
            ways.append(rf"class\s+{_as_pattern(owner.rpartition('.')[2])}\b")
        else:
            ways.append(rf"def\s+{_as_pattern(name)}\b")
    return "|".join(ways)


def _as_pattern(glob: str) -> str:
    """Return a glob of names as a regular expression."""
    return re.sub(r"[*?]", lambda found: r"\w*" if found[0] == "*" else r"\w", glob).replace(
        "[!", "[^"
    )
