"""The use of a value in a function, and the type that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flake8_torchperf.values.values import (
    UNKNOWN,
    Mapping_,
    Reason,
    Sequence,
    Strength,
    Tensor,
    Value,
)

if TYPE_CHECKING:
    import ast


# How the names of parts begin that no expression names.
WORDED = ("element of ", "value of ")
# Sizes have this method too; they are unpacked often, tensors seldom.
OF_SIZES = "`.numel` is asked for"


@dataclass(slots=True, eq=False)
class Use:
    """The use of one value: of a parameter, of an assigned value, or of an element of either.

    ``mixed`` is True if the elements may differ in type, as those of ``*args`` do. ``entry`` is the
    use of a dict's values if the code iterates over all of them. ``given`` holds the functions that
    the value is passed to, with the position or the keyword. ``starred`` is True if it is unpacked,
    as in ``*x``. ``parts`` holds the uses of items, entries and attributes by their place: "[0]",
    "['loss']", ".loss". ``items`` is the number of names that it is unpacked into, 0 if it is not.
    ``asked`` is True if a test asks for its type. ``general`` is the use of any element, for that
    of one item. ``moved`` is True if it is moved to a device; ``part`` describes a use that no
    module has. ``single`` is True if ``backward()`` without a gradient shows that it has one
    element (torch/autograd/__init__.py: "grad can be implicitly created only for scalar outputs").
    """

    told: str = ""
    mask: bool = False
    single: bool = False
    foreign: bool = False
    mixed: bool = False
    starred: bool = False
    moved: bool = False
    part: str = ""
    hints: set[str] = field(default_factory=set)
    method: str = ""
    element: Use | None = None
    entry: Use | None = None
    given: list[tuple[ast.expr, int | str]] = field(default_factory=list)
    parts: dict[str, Use] = field(default_factory=dict)
    items: int = 0
    asked: bool = False
    general: Use | None = None

    def inside(self) -> Use:
        """Return the use of its elements."""
        if self.element is None:
            self.element = Use()
        return self.element

    def at(self, place: str) -> Use:
        """Return the use of one item, entry or attribute, as its place is written behind it."""
        found = self.parts.get(place)
        if found is None:
            found = self.parts[place] = Use()
        return found

    def item(self, number: int) -> Use:
        """Return the use of one item."""
        found = self.at(f"[{number}]")
        found.general = None if self.mixed else self.inside()
        return found

    def note_part(self, how: str) -> None:
        """Note a use that no module has."""
        self.part = self.part or how

    def under_keys(self) -> Use:
        """Return the use of its values, as those of a dict."""
        if self.entry is None:
            self.entry = Use()
        return self.entry


def value_of(use: Use, name: str, node: ast.AST | None) -> Value:
    """Return the value that the use of ``name`` at ``node`` implies; UNKNOWN if it implies none."""
    entry = UNKNOWN if use.entry is None else value_of(use.entry, f"value of {name}", node)
    if entry is not UNKNOWN and not use.told:
        return Mapping_(UNKNOWN, entry)
    if use.foreign or (use.general is not None and use.general.foreign):
        return UNKNOWN  # the code uses an attribute that no tensor has
    inner = UNKNOWN if use.element is None else value_of(use.element, f"element of {name}", node)
    told = "" if use.starred and use.told == OF_SIZES else use.told
    if not told and use.moved and use.part:
        told = f"it is brought to a device, and {use.part}"
    if not told and {"device", "dtype"} <= use.hints:
        told = "`.device` and `.dtype` are asked for"
    if not told and "device" in use.hints and isinstance(inner, Tensor):
        told = "`.device` is asked for, and its elements are tensors"
    if not told and use.moved and isinstance(inner, Tensor):
        told = "it is brought to a device, and its elements are tensors"
    if told:
        subject = name if name.startswith(WORDED) else f"`{name}`"
        reason = Reason(f"{subject}: {told}", node, None, Strength.INFERRED)
        scalar = True if use.single else None
        return Tensor(reason, "bool" if use.mask else "unknown", scalar=scalar)
    return UNKNOWN if inner is UNKNOWN else Sequence("sequence", inner)
