"""The classes that a function of the project decorates, as a registry's decorator does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.program.linking import Linker, Unit
from flake8_torchperf.program.outlines.outline import FUNCTION, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flake8_torchperf.program.linking import Search


def decorated(
    decorator: Unit, linker: Linker, search: Search, is_use_of: Callable[[str, int, Unit], bool]
) -> Iterator[Unit]:
    """Yield the classes that a function decorates, or that what it returns does.

    The latter is so for ``@register("mse")``. ``is_use_of`` tells if an expression, by module and
    number, names a function.
    """
    maker = Unit(decorator.path, linker.body(decorator).outer)
    for unit in filter(lambda one: one.number > 0, (decorator, maker)):
        name = linker.body(unit).name
        for path in search(name, unit.path) or ():
            outline = linker.outline(path)
            for use in outline.by_word.get(name, ()):
                above = outline.nodes[use].parent
                if unit == maker and above >= 0:
                    is_called = outline.nodes[use].slot == FUNCTION
                    above = outline.nodes[above].parent if is_called else -1
                if above < 0 or outline.nodes[above].kind != Kind.DECORATED:
                    continue
                word = outline.nodes[above].word
                if word.startswith("c") and is_use_of(path, use, unit):
                    yield Unit(path, int(word[1:]), is_class=True)
