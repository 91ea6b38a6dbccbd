"""Rewrite sources so that mypyc compiles them well: records become classes with C fields.

Takes the text of a module and returns it with each ``@record``, ``@dataclass`` and
``@cached_property`` written out, line for line where it was. Dataclasses write their methods while
Python runs, so mypyc can neither compile those nor make them without Python's help. Constants are
declared final (see `native_names.py`). The module knows nothing about the meaning of the classes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from native_names import fixed_names

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# The import that replaces a module's import from dataclasses.
IMPORTS = "from flake8_torchperf.values.record import changed as replace"
# Modules that are not compiled: the helpers of the rewritten classes; a subclass of dict, which
# compiled code would treat as a plain dict; and the readers of rule pages, which run once.
LEFT_OUT = (
    "values/record.py",
    "findings/catalogue.py",
    "findings/documentation.py",
    "findings/page.py",
    "project/lazy_index.py",
)
# The method that copies a record with some fields changed. It also replaces a class's own method of
# that name, which copies differently for plain Python.
CHANGED = "_changed"


class NotPlainError(Exception):
    """A class has a part that this module can't write out."""


@dataclass
class Field:
    """A field of a record: its annotation and default as they are written."""

    name: str
    annotation: str
    default: str = ""
    factory: str = ""
    compare: bool = True
    hash: bool = True


def native(text: str) -> str:
    """Return the text of a module with its records written out."""
    text = fixed_names(text)
    lines = text.splitlines()
    # From the end, so that a class that takes more lines leaves those before it where they are.
    for node in reversed(ast.parse(text).body):
        match node:
            case ast.ClassDef(decorator_list=decorators):
                _write_kept(node, lines)
                if decorators and _is_record(decorators[0]):
                    _write_record(node, decorators[0], lines)
            case ast.ImportFrom(module="dataclasses" | "flake8_torchperf.values.record"):
                _put([IMPORTS], node.lineno - 1, node.end_lineno or node.lineno, lines)
    return "\n".join(lines) + "\n"


def _put(made: list[str], start: int, end: int, lines: list[str]) -> None:
    """Replace lines by text: by as many lines as there were, or more if it needs more."""
    lines[start:end] = made + [""] * (end - start - len(made))


def _is_record(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id in ("record", "dataclass")


def _write_kept(node: ast.ClassDef, lines: list[str]) -> None:
    """Write each ``@cached_property`` as a field, empty at first, and a property that fills it."""
    for method in reversed(node.body):
        match method:
            case ast.FunctionDef(
                name=name, returns=returns, decorator_list=[ast.Name(id="cached_property")]
            ) if returns is not None:
                kind, kept, found = ast.unparse(returns), f"_kept_{name}", f"_find_{name}"
                made = [
                    f"    {kept}: {kind} | None = None",
                    "    @property",
                    f"    def {name}(self) -> {kind}: kept = self.{kept}; "
                    f"kept = self.{found}() if kept is None else kept; "
                    f"self.{kept} = kept; return kept",
                    f"    def {found}(self) -> {kind}:",
                ]
                # The empty line before it, the decorator, its own line and its docstring.
                documented = isinstance(method.body[0], ast.Expr)
                after = (method.body[0].end_lineno or 0) if documented else method.lineno
                _put(made, method.decorator_list[0].lineno - 2, after, lines)


def _write_record(node: ast.ClassDef, decorator: ast.expr, lines: list[str]) -> None:
    """Write the fields and methods in place of the docstring and the fields."""
    declared = [one for one in node.body if isinstance(one, ast.AnnAssign)]
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    if len(declared) + len(methods) + 1 != len(node.body):
        raise NotPlainError(f"line {node.lineno}: more than a docstring, fields and methods")
    for method in methods:
        if method.name == CHANGED:
            _put([], method.lineno - 1, method.end_lineno or method.lineno, lines)
    made = _record(node.name, [_field(one) for one in declared], *_compared(decorator))
    end = min((_first_line(one) - 1 for one in methods), default=_end(node, lines))
    lines[decorator.lineno - 1] = ""
    _put(["    " + line for line in made], node.lineno, end, lines)


def _first_line(node: ast.FunctionDef) -> int:
    """Return the line where a method begins, with its decorators.

    For a ``@cached_property`` it is the line before, which is written too.
    """
    kept = [ast.unparse(one) for one in node.decorator_list] == ["cached_property"]
    return min([node.lineno, *(one.lineno for one in node.decorator_list)]) - kept


def _end(node: ast.ClassDef, lines: list[str]) -> int:
    """Return the number of lines before the code that follows the class."""
    end = node.end_lineno or node.lineno
    while end < len(lines) and not lines[end].strip():
        end += 1
    return end


def _compared(decorator: ast.expr) -> tuple[bool, bool]:
    """Return two flags: records are compared by their fields, and are hashed by them."""
    if not isinstance(decorator, ast.Call):
        return True, True
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
    if given.keys() - {"frozen", "slots", "eq"}:
        raise NotPlainError(f"line {decorator.lineno}: {ast.unparse(decorator)}")
    equal = bool(given.get("eq", True))
    return equal, equal and bool(given.get("frozen", False))


def _field(node: ast.AnnAssign) -> Field:
    field = Field(ast.unparse(node.target), ast.unparse(node.annotation))
    match node.value:
        case None:
            pass
        case ast.Call(func=ast.Name(id="field"), keywords=keywords):
            for keyword in keywords:
                match keyword:
                    case ast.keyword(arg="default", value=value):
                        field.default = ast.unparse(value)
                    case ast.keyword(arg="default_factory", value=value):
                        field.factory = ast.unparse(value)
                    case ast.keyword(arg="compare", value=ast.Constant(value=False)):
                        field.compare = field.hash = False
                    case ast.keyword(arg="hash", value=ast.Constant(value=False)):
                        field.hash = False
                    case _:
                        raise NotPlainError(f"line {node.lineno}: {keyword.arg} of a field")
        case value:
            field.default = ast.unparse(value)
    return field


def _record(name: str, fields: list[Field], equal: bool, hashed: bool) -> list[str]:
    """Return the lines of the class: its fields, then a line for each method."""
    made = [_init(fields)]
    if fields:
        made.insert(0, "; ".join(f"{f.name}: {f.annotation}" for f in fields))
        values = ", ".join(f"self.{f.name}" for f in fields)
        made.append(
            f"def {CHANGED}(self, changes: dict[str, _Any]) -> {name}: made = {name}({values}); "
            "[setattr(made, name, value) for name, value in changes.items()]; return made"
        )
    compared = [f.name for f in fields if f.compare]
    if equal:
        tests = "".join(f" and (self.{f} is other.{f} or self.{f} == other.{f})" for f in compared)
        made.append(
            "def __eq__(self, other: object) -> bool: "
            f"return self is other or (isinstance(other, {name}){tests})"
        )
    if hashed:
        values = "".join(f"self.{f.name}, " for f in fields if f.hash)
        made.append(f"def __hash__(self) -> int: return hash(({values}))")
    return made


def _init(fields: list[Field]) -> str:
    parameters = "".join(f", {_parameter(f)}" for f in fields)
    body = "; ".join(f"self.{f.name} = {_given(f)}" for f in fields) or "pass"
    return f"def __init__(self{parameters}) -> None: {body}"


def _parameter(field: Field) -> str:
    if field.factory:
        return f"{field.name}: {field.annotation} | None = None"
    return f"{field.name}: {field.annotation}" + (f" = {field.default}" if field.default else "")


def _given(field: Field) -> str:
    if not field.factory:
        return field.name
    return f"{field.factory}() if {field.name} is None else {field.name}"


def is_left_out(module: str) -> bool:
    """True if a module, by its path in the package, stays Python."""
    return module in LEFT_OUT or module.endswith("/__init__.py")


def write(root: Path, package: str, folders: Iterable[str], target: Path) -> list[str]:
    """Write folders of a package below ``target``; return the files that can be compiled."""
    compiled: list[str] = []
    (target / package).mkdir(parents=True, exist_ok=True)
    (target / package / "__init__.py").write_bytes((root / package / "__init__.py").read_bytes())
    for folder in folders:
        for source in sorted((root / package / folder).rglob("*.py")):
            file = target / source.relative_to(root)
            file.parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text(encoding="utf-8")
            left = is_left_out(source.relative_to(root / package).as_posix())
            file.write_text(text if left else native(text), encoding="utf-8")
            if not left:
                compiled.append(str(file))
    return compiled
