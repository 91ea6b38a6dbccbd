"""The uses of the values that names, attributes and items hold at one point of a function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

from flake8_torchperf.interpreter.inference.tensor_api import brought, foreign, scaled
from flake8_torchperf.interpreter.inference.usage import Use

if TYPE_CHECKING:
    from collections.abc import Container

    from flake8_torchperf.knowledge.table import TorchTable

# The values that a name may have at one point: one for each assignment that may have been last.
Uses: TypeAlias = "tuple[Use, ...]"
# If more assignments of a name than this may have been the last, only the first ones count.
MAX_ALIASES = 8
# Items of items: each of them in a longer chain would lead through all others anew.
MAX_ITEMS = 32


class Aliases:
    """The uses by name, and those of attributes and entries that the function assigns.

    ``targets`` receives the use of each value that is assigned, by the identity of its target.
    """

    __slots__ = ("_names", "_places", "_table", "_targets")

    def __init__(
        self,
        names: dict[str, Uses],
        targets: dict[int, Use],
        table: TorchTable,
        places: dict[str, Uses] | None = None,
    ) -> None:
        self._names = names
        self._places = {} if places is None else places
        self._targets = targets
        self._table = table

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def named(self, name: str) -> Uses:
        """Return the uses of the values that a name may have."""
        return self._names.get(name, ())

    def of(self, node: ast.expr, left: int = MAX_ITEMS) -> Uses:
        """Return the uses of a name, a slice of it, one of its elements, entries or attributes.

        ``left`` says how many subscripts and attributes may follow each other; beyond, no uses are
        known.
        """
        if not left:
            return ()
        match node:
            case ast.Name(id=name):
                return self._names.get(name, ())
            case ast.Attribute(value=base, attr=attr):
                placed = self._placed(node)
                if placed or not foreign(attr, self._table):
                    return placed
                return tuple(use.at(f".{attr}") for use in self.of(base, left - 1))
            case ast.Subscript(value=base, slice=ast.Constant(value=str(key))):
                return self._placed(node) or tuple(
                    use.at(f"[{key!r}]") for use in self.of(base, left - 1)
                )
            case ast.Subscript(value=base, slice=ast.Constant(value=int(place))):
                uses = self.of(base, left - 1)
                elements = [use.inside() for use in uses if not use.mixed]
                # An item of an item has twice as many: the first ones count.
                return (*elements, *(use.item(place) for use in uses))[:MAX_ALIASES]
            case ast.Subscript(value=base, slice=ast.Slice()):
                return self.of(base, left - 1)
        return ()

    def _placed(self, node: ast.expr) -> Uses:
        """Return the uses of an attribute or entry that the function assigns."""
        if not self._places:
            return ()
        place = place_of(node)
        return () if place is None else self._places.get(place, ())

    def without(self, names: Container[str]) -> Aliases:
        """Return these aliases without some names, and without what these hold."""
        left = {name: uses for name, uses in self._names.items() if name not in names}
        places = {place: uses for place, uses in self._places.items() if _root(place) not in names}
        return Aliases(left, self._targets, self._table, places)

    def without_all(self) -> Aliases:
        """Return aliases of no name."""
        return Aliases({}, self._targets, self._table)

    def hide(self, name: str) -> None:
        """Drop a name."""
        self._names.pop(name, None)

    def meet(self, ends: list[Aliases]) -> None:
        """Add the values that names may have at the ends of blocks."""
        _meet(self._names, [end._names for end in ends])
        _meet(self._places, [end._places for end in ends])

    def bind(self, statement: ast.stmt) -> None:
        """Follow the values that a statement assigns."""
        match statement:
            case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
                self.bind_loop(target, iterated)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value)
            case ast.AnnAssign(target=ast.Name(id=name)):
                self._names.pop(name, None)
            case ast.AugAssign(target=ast.Name(id=name)):
                for use in self.named(name):
                    use.note_part("computed with in place")

    def _assign(self, target: ast.expr, value: ast.expr | None) -> None:
        match target, value:
            case ast.Name(id=name), _:
                if scaled(name, value):
                    for use in self.named(name)[:1]:
                        self._targets.setdefault(id(target), use)
                    return
                found = self._assigned(target, value)
                self._forget_inside(name)
                self._names[name] = found
            case ((ast.Attribute() | ast.Subscript()), _):
                place = place_of(target)
                if place is not None:
                    self._places[place] = self._assigned(target, value)
            case ((ast.Tuple(elts=parts) | ast.List(elts=parts)), (ast.Tuple(elts=values))):
                if len(parts) == len(values):
                    for part, one in zip(parts, values, strict=True):
                        self._assign(part, one)
                    return
                self._unpack(parts, ())
            case ((ast.Tuple(elts=parts) | ast.List(elts=parts)), _):
                uses = () if value is None else self.of(value)
                if any(isinstance(p, (ast.Tuple, ast.List)) for p in parts):
                    # `logits, (h, c) = out`: a value with nested parts is no tensor.
                    for use in uses:
                        use.foreign = True
                self._unpack(parts, uses)

    def _assigned(self, target: ast.expr, value: ast.expr | None) -> Uses:
        """Return the uses of a value that is assigned: those of another place, or a new one."""
        found = () if value is None else self.of(value)
        if found and value is not None and _is_inside(value):
            self._targets.setdefault(id(target), found[-1])
        if found:
            return found
        new = self._targets.setdefault(id(target), Use())
        moved = None if value is None else brought(value)
        if moved is None:
            return (new,)
        new.moved = True
        before = self.of(moved)  # the move does not change the type
        return (new, *before) if len(before) == 1 else (new,)

    def _unpack(self, parts: list[ast.expr], whole: Uses) -> None:
        """Give each target of an unpacking a use of its own, since the parts may differ in kind.

        It is the use of the item if the value has a name and is unpacked into as many names
        everywhere; otherwise it is a different value in each place.
        """
        shared = len(whole) == 1 and not any(isinstance(part, ast.Starred) for part in parts)
        if shared and not whole[0].items:
            whole[0].items = len(parts)
        for number, part in enumerate(parts):
            if shared and whole[0].items == len(parts):
                self._targets.setdefault(id(part), whole[0].at(f"[{number}]"))
            self._assign(part.value if isinstance(part, ast.Starred) else part, None)

    def bind_loop(self, target: ast.expr, iterated: ast.expr) -> None:
        """Follow the values that a loop or a comprehension gives to its target."""
        sources = [iterated]
        targets = [target]
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name):
            if iterated.func.id == "enumerate" and isinstance(target, ast.Tuple) and iterated.args:
                sources, targets = [iterated.args[0]], [target.elts[-1]]
            elif iterated.func.id == "zip" and isinstance(target, ast.Tuple):
                sources, targets = list(iterated.args), list(target.elts)
            elif iterated.func.id in ("list", "tuple", "reversed", "iter") and iterated.args:
                sources = [iterated.args[0]]
        match iterated, target:
            case (
                ast.Call(func=ast.Attribute(value=mapping, attr="values"), args=[]),
                ast.Name(id=name),
            ) | (
                ast.Call(func=ast.Attribute(value=mapping, attr="items"), args=[]),
                ast.Tuple(elts=[_, ast.Name(id=name)]),
            ):
                self._forget_inside(name)
                self._names[name] = tuple(use.under_keys() for use in self.of(mapping))
                return
        for one, source in zip(targets, sources, strict=False):
            uses = self.of(source)
            if isinstance(one, ast.Name) and uses:
                self._forget_inside(one.id)
                self._names[one.id] = tuple(use.inside() for use in uses)
            else:
                self._assign(one, None)

    def _forget_inside(self, name: str) -> None:
        inside = [one for one in self._places if _root(one) == name] if self._places else ()
        for place in inside:
            del self._places[place]


def _meet(here: dict[str, Uses], ends: list[dict[str, Uses]]) -> None:
    every = [here, *ends]
    for name in {n for end in ends for n, uses in end.items() if here.get(n) is not uses}:
        found = dict.fromkeys(use for end in every for use in end.get(name, ()))
        here[name] = tuple(found)[:MAX_ALIASES]


def place_of(node: ast.expr) -> str | None:
    """Return an attribute or an entry under a literal key as text, ``self.out['loss']``, or None.

    A name is its own place.
    """
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=base, attr=attr):
            head = place_of(base)
            return None if head is None else f"{head}.{attr}"
        case ast.Subscript(value=base, slice=ast.Constant(value=(str() | int()) as key)):
            head = place_of(base)
            return None if head is None else f"{head}[{key!r}]"
    return None


def _root(place: str) -> str:
    """Return the name with which a place begins."""
    return place.partition("[")[0].partition(".")[0]


def _is_inside(value: ast.expr) -> bool:
    """True for an entry, an item or an attribute, of whose holder little may be known."""
    match value:
        case ast.Attribute() | ast.Subscript(slice=ast.Constant()):
            return True
    return False
