"""The places that run a body."""

from __future__ import annotations

from typing import NamedTuple

from flake8_torchperf.program.linking import Unit
from flake8_torchperf.project.file_index import is_test_path


class Run(NamedTuple):
    """A place that runs a body: the module, the body around the place, its line and column.

    ``is_sure`` is False where only the name of a method leads there. ``node`` is the number of the
    call, loop or name in the outline. ``through`` is the call of that body around the place which
    alone leads there, by the name of a method that it passes.
    """

    path: str
    body: int
    line: int
    column: int
    node: int
    is_sure: bool = True
    through: Run | None = None


class Runs(NamedTuple):
    """The places that run a body, and why there may be others; "" if these are all.

    ``handed`` holds the bodies in which it is given to another function, as path and number.
    ``is_doubted`` is True if its name is read of objects that may be of its class after all.
    """

    places: tuple[Run, ...]
    open: str
    handed: tuple[Unit, ...] = ()
    is_doubted: bool = False

    @property
    def outside_tests(self) -> list[Run]:
        """The places that are in no file of tests."""
        return [run for run in self.places if not is_test_path(run.path)]
