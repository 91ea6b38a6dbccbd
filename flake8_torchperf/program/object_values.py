"""The things that an expression may stand for: objects by their classes, functions and classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.outlines.outline import FUNCTION, OWNER, Kind

if TYPE_CHECKING:
    from flake8_torchperf.program.outlines.outline import Body, Outline
    from flake8_torchperf.program.stated_classes import Classes


class Itself(NamedTuple):
    """A function or a class as a value: what is called is this one, not an object of it."""

    unit: Unit


# The things that a value may be: an object of a class, or a function or a class itself.
Values: TypeAlias = "set[Unit | str | Itself]"
# The class of an object that is made by calling a class which nothing shows: no list, no dict.
OF_UNKNOWN_CLASS = "?"


def own_classes(classes: Values | Classes) -> list[Unit]:
    """Return those of the classes that are of the project, in order."""
    return sorted(one for one in classes if isinstance(one, Unit))


def named_classes(values: Values) -> list[Unit]:
    """Return the classes of the project that are among some values themselves."""
    return [one.unit for one in values if isinstance(one, Itself) and one.unit.is_class]


def classes_of(values: Values) -> Values:
    """Return the classes themselves of those of some values that are objects."""
    known = {Itself(one) for one in own_classes(values)}
    return {*known, OF_UNKNOWN_CLASS} if OF_UNKNOWN_CLASS in values else {*known}


def is_own_namespace(outline: Outline, number: int | None) -> bool:
    """True for a call of `globals`, whose items are what the module names."""
    called = None if number is None else outline.child(number, FUNCTION)
    node = None if called is None else outline.nodes[called]
    return node is not None and (node.kind, node.word) == (Kind.NAME, "globals")


def named_in(linker: Linker, path: str, name: str = "") -> Values:
    """Return the functions and classes that a module names, or what a literal name stands for."""
    if name:
        found = linker.named(path, 0, name)
        return {Itself(found)} if isinstance(found, Unit) else set()
    outline = linker.outline(path)
    imported = (linker.named(path, 0, one) for one in outline.imports)
    values: Values = {Itself(one) for one in imported if isinstance(one, Unit)}
    values |= {Itself(Unit(path, n, is_class=True)) for n, _ in enumerate(outline.classes)}
    values |= {Itself(Unit(path, n)) for n, one in enumerate(outline.bodies) if _is_public(one)}
    return {*values, OF_UNKNOWN_CLASS} if outline.stars else values


def looked_up(linker: Linker, path: str, call: int) -> Values:
    """Return the functions and classes of a module that a call of `getattr` may return."""
    outline = linker.outline(path)
    module, name = outline.child(call, "0"), outline.child(call, "1")
    if module is None or name is None:
        return set()
    function = outline.child(module, FUNCTION)
    if function is not None and outline.nodes[function].word in ("import_module", "__import__"):
        return {OF_UNKNOWN_CLASS}
    there = _module(linker, path, module)
    word = outline.nodes[name].word if outline.nodes[name].kind == Kind.TEXT else ""
    return set() if there is None else named_in(linker, there, word)


def _module(linker: Linker, path: str, number: int) -> str | None:
    """Return the path of the module that an expression stands for."""
    outline = linker.outline(path)
    holder, key = outline.child(number, OWNER), outline.child(number, "")
    if holder is not None and key is not None and outline.nodes[key].word == "__name__":
        return path if linker.dotted(path, holder) == "sys.modules" else None
    place = linker.place_at(path, number)
    return None if place is None or place[1] else place[0]


def _is_public(body: Body) -> bool:
    """True for a function at the level of its module that a name may find there."""
    return body.outer == 0 and body.owner < 0 and not body.name.startswith(("_", "<"))
