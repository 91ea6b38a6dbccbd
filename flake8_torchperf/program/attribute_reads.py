"""The reads of attributes, by the classes of the objects that they may be of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.object_values import OF_UNKNOWN_CLASS, own_classes
from flake8_torchperf.program.objects import Objects
from flake8_torchperf.program.outlines.outline import OWNER, Kind

if TYPE_CHECKING:
    from flake8_torchperf.program.stated_classes import Classes


class AttributeReads:
    """Finds the reads of attributes in modules, each module sorted once for a name."""

    def __init__(self, linker: Linker, objects: Objects) -> None:
        self._linker = linker
        self._objects = objects
        self._known: dict[tuple[str, str], dict[Unit | None, list[int]]] = {}

    def of(self, path: str, name: str, owner: Unit) -> list[int]:
        """Return the reads of an attribute in a module that may be of an object of a class.

        They are read of an object of the class, of one below or above it, or of an unknown one.
        """
        known = self._known.get((path, name))
        if known is None:
            known = self._known[path, name] = self._sorted(path, name)
        above = self._linker.lineage(owner)[1:]
        found = {*known.get(None, ()), *known.get(owner, ())}
        for base in above:
            found.update(known.get(_itself(base), ()))
        return sorted(found)

    def _sorted(self, path: str, name: str) -> dict[Unit | None, list[int]]:
        """Return the reads of an attribute by the classes that they may be of.

        Each is listed under the class of its object and those above it; under the class itself
        once more, with the complement of its number, and under None if its class is unknown.
        """
        found: dict[Unit | None, list[int]] = {}
        outline = self._linker.outline(path)
        for number in outline.by_word.get(name, ()):
            if outline.nodes[number].kind != Kind.ATTRIBUTE:
                continue
            holder = outline.child(number, OWNER)
            named = "" if holder is None else self._linker.dotted(path, holder)
            held: Classes = {named} if isinstance(named, Unit) else set()
            if not held and holder is not None:
                held = self._objects.classes(path, holder)
            units = own_classes(held)
            keys: set[Unit | None] = {one for unit in units for one in self._linker.lineage(unit)}
            keys.update(map(_itself, units))
            if OF_UNKNOWN_CLASS in held or any(map(self._linker.is_protocol, units)):
                keys.add(None)
            for key in keys or {None}:
                found.setdefault(key, []).append(number)
        return found


def _itself(unit: Unit) -> Unit:
    """Return the key of the reads of an object whose class is this one, and none below it."""
    return unit._replace(number=~unit.number)
