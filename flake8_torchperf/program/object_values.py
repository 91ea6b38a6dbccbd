"""The things that an expression may stand for: objects by their classes, functions and classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from flake8_torchperf.program.linking import Unit

if TYPE_CHECKING:
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
