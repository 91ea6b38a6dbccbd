"""Reads off the project's own calls of a function which inputs it gets: shapes, dtypes, numbers.

Tests are the best source: they make small tensors of the right shapes. Reads texts only, and must
not import torch: a call whose arguments cannot be read says nothing about them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flake8_torchperf.runtime.confirm.specs.input_specs import InputSpec
from flake8_torchperf.runtime.confirm.specs.read_values import VisibleValues

# Bounds of the search: it is done for each function that is run.
MOST_FILES, LARGEST_FILE, MOST_CALLS = 1_500, 400_000, 6
# Methods that are called by calling the object.
_CALLED = ("forward", "__call__")


@dataclass(frozen=True)
class Wanted:
    """The function whose calls are searched for: its parameters, and those of its constructor.

    ``owner`` is the name of its class, "" for a function; ``self`` is no parameter.
    """

    name: str
    owner: str
    parameters: tuple[str, ...]
    constructor: tuple[str, ...] = ()


def wanted_of(tree: ast.Module, qualname: str) -> Wanted | None:
    """Return the function of that name in a module's tree; None if it is not at the top level."""
    owner, _, name = qualname.partition(".<locals>")[0].rpartition(".")
    body: Sequence[ast.stmt] = tree.body
    constructor: tuple[str, ...] = ()
    if owner:
        classes = [one for one in body if isinstance(one, ast.ClassDef) and one.name == owner]
        if not classes:
            return None
        body = classes[-1].body
        constructor = _parameters(body, "__init__")[1:]
    parameters = _parameters(body, name)
    bound = owner and not _is_static(body, name)
    return Wanted(name, owner, parameters[1:] if bound else parameters, constructor)


def _definition(body: Sequence[ast.stmt], name: str) -> ast.FunctionDef | None:
    found = [one for one in body if isinstance(one, ast.FunctionDef) and one.name == name]
    return found[-1] if found else None


def _parameters(body: Sequence[ast.stmt], name: str) -> tuple[str, ...]:
    found = _definition(body, name)
    if found is None:
        return ()
    return tuple(arg.arg for arg in (*found.args.posonlyargs, *found.args.args))


def _is_static(body: Sequence[ast.stmt], name: str) -> bool:
    found = _definition(body, name)
    return found is not None and any(_name_of(d) == "staticmethod" for d in found.decorator_list)


def calls_in(folder: Path, wanted: Wanted) -> list[dict[str, InputSpec]]:
    """Return the arguments of calls in the files below a folder, by parameter, each once.

    Arguments of the constructor have the prefix ``self.``.
    """
    found: list[dict[str, InputSpec]] = []
    word = (wanted.owner or wanted.name).encode()
    for path in _files(folder):
        try:
            text = path.read_bytes() if path.stat().st_size <= LARGEST_FILE else b""
            tree = ast.parse(text) if word in text else None
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # what cannot be read has no calls to offer
        if tree is None:
            continue
        for made in _calls(tree, wanted):
            if made and made not in found:
                found.append(made)
        if len(found) >= MOST_CALLS:
            break
    # The arguments of the function itself say more than those of its constructor.
    return sorted(found, key=_tells_nothing_but_self)[:MOST_CALLS]


def _tells_nothing_but_self(passed: dict[str, InputSpec]) -> bool:
    return all(name.startswith("self.") for name in passed)


def _files(folder: Path) -> Iterator[Path]:
    """Return the Python files, those of tests first."""
    files = [
        path
        for path in folder.rglob("*.py")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ][:MOST_FILES]
    yield from sorted(files, key=lambda path: ("test" not in path.as_posix(), path.as_posix()))


def _calls(tree: ast.Module, wanted: Wanted) -> Iterator[dict[str, InputSpec]]:
    top = VisibleValues.of_module(tree)
    functions = [
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    for function in functions:
        yield from _calls_in(function, top.inside(function), wanted)


def _calls_in(
    function: ast.FunctionDef | ast.AsyncFunctionDef, scope: VisibleValues, wanted: Wanted
) -> Iterator[dict[str, InputSpec]]:
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        here = scope.until(node.lineno)
        if not wanted.owner:
            if _name_of(node.func) == wanted.name:
                yield here.arguments(node, wanted.parameters)
            continue
        if _is_of_the_class(node.func, wanted):
            yield here.arguments(node, wanted.parameters)
            continue
        made = _made_by(node.func, here, wanted)
        if made is not None:
            own = here.arguments(made, wanted.constructor)
            passed = here.arguments(node, wanted.parameters)
            yield {**passed, **{f"self.{name}": spec for name, spec in own.items()}}
        elif _name_of(node.func) == wanted.owner:
            own = here.arguments(node, wanted.constructor)
            yield {f"self.{name}": spec for name, spec in own.items()}


def _is_of_the_class(func: ast.expr, wanted: Wanted) -> bool:
    """True for ``Effects.echo``, a static or class method."""
    if not isinstance(func, ast.Attribute) or func.attr != wanted.name:
        return False
    return _name_of(func.value) == wanted.owner


def _made_by(func: ast.expr, here: VisibleValues, wanted: Wanted) -> ast.Call | None:
    """Return the call that constructs the object whose method is called; None if unknown."""
    held = func
    if isinstance(func, ast.Attribute) and func.attr == wanted.name:
        held = func.value
    elif wanted.name not in _CALLED:
        return None
    found = here.value(held)
    while isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute):
        if _name_of(found.func) == wanted.owner:
            break
        found = here.value(found.func.value)  # model.to(device), model.eval()
    if isinstance(found, ast.Call) and _name_of(found.func) == wanted.owner:
        return found
    return None


def _name_of(func: ast.expr) -> str:
    match func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
