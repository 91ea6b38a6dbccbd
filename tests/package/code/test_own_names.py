"""A name has one meaning in the package: of a constant that holds a collection, and of a class."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents import ROOT

PACKAGE = ROOT / "flake8_torchperf"
MAKERS = frozenset((
    "Counter", "MappingProxyType", "OrderedDict", "casts_to", "defaultdict", "dict", "frozenset",
    "fromkeys", "kinds_of", "list", "maketrans", "methods_of", "names_of", "set", "tuple",
))  # fmt: skip
DISPLAYS = (
    ast.Tuple, ast.List, ast.Set, ast.Dict,
    ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def is_collection(value: ast.expr) -> bool:
    match value:
        case ast.BinOp(left=left, right=right):
            return is_collection(left) or is_collection(right)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in MAKERS
    return isinstance(value, DISPLAYS)


def constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the public constants of a module, each with its value."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        if name.isupper() and not name.startswith("_"):
            yield name, value


def with_two_meanings(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the names that hold a collection in one file and something else in another."""
    found: dict[str, dict[str, ast.expr]] = defaultdict(dict)
    for file, source in sources.items():
        for name, value in constants(ast.parse(source)):
            found[name][file] = value
    return {
        name: sorted(values)
        for name, values in found.items()
        if any(map(is_collection, values.values())) and len(set(map(ast.dump, values.values()))) > 1
    }


def _sources(package: Path) -> dict[str, str]:
    return {
        str(file.relative_to(package)): file.read_text(encoding="utf-8")
        for file in sorted(package.rglob("*.py"))
    }


def test_no_name_holds_different_collections() -> None:
    assert with_two_meanings(_sources(PACKAGE)) == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CASTS = {'float'}", "CASTS = {'float', 'int'}"),
        ("SIZED = frozenset(('size',))", "SIZED: tuple[str, ...] = ('size', 'stride')"),
        ("KNOWN = FIRST | {'a'}", "KNOWN = 3"),
        ("READS = methods_of('reads')", "READS = ('item',)"),
    ],
)
def test_different_contents_are_noticed(one: str, other: str) -> None:
    name = one.partition(" ")[0]
    assert with_two_meanings({"a.py": one, "b.py": other}) == {name: ["a.py", "b.py"]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("BLOCKS = ('body', 'orelse')", "BLOCKS = ('body', 'orelse')"),
        ("_KEPT = {'a'}", "_KEPT = {'b'}"),
        ("LONGEST = 60", "LONGEST = 140"),
    ],
)
def test_the_same_contents_private_names_and_numbers_are_allowed(one: str, other: str) -> None:
    assert with_two_meanings({"a.py": one, "b.py": other}) == {}


# Names of classes that do the same for another output or command.
INTERFACES = frozenset(("Report",))


def public_classes(tree: ast.Module) -> Iterator[str]:
    """Yield the names of a module's classes, private ones excepted."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_a_class_has_a_name_of_its_own() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for file, source in _sources(PACKAGE).items():
        for name in public_classes(ast.parse(source)):
            found[name].append(file)
    assert {name: files for name, files in found.items() if len(files) > 1}.keys() == INTERFACES
