"""Functions that another of the same name replaces before anything runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flake8_torchperf.program.linking import Linker, Unit

_HEADS = (b"def ", b"async def ")


def is_defined_again(linker: Linker, unit: Unit) -> bool:
    """True if the module level defines a function anew, and uses it nowhere before.

    A decorator may keep the first one, and a definition in a branch may not be run.
    """
    outline = linker.outline(unit.path)
    own = outline.bodies[unit.number]
    if unit.number == 0 or own.outer or own.owner >= 0:
        return False
    named = outline.by_qualname[own.qualname]
    if named[-1] == unit.number:
        return False
    again = outline.bodies[named[named.index(unit.number) + 1]].line
    lines = linker.text(unit.path).splitlines()
    if not (_is_plain(lines, own.line) and _is_plain(lines, again)):
        return False
    uses = (outline.nodes[number] for number in outline.by_word.get(own.name, ()))
    return not any(one.body == 0 and own.line < one.line < again for one in uses)


def _is_plain(lines: list[bytes], line: int) -> bool:
    """True if an undecorated definition that stands in no block begins in a line."""
    before = lines[line - 2] if line > 1 else b""
    return lines[line - 1].startswith(_HEADS) and not before.startswith(b"@")
