"""``--format functions``: the functions of a package by what their findings are worth together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8_torchperf.cli.report.reported import Gathered
from flake8_torchperf.history.finding_record import MODULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.cli.report.reported import Reported

_HEAD = "worth  findings  best finding"


class Report(Gathered):
    """A table, the function with the greatest sum of worth first."""

    def text(self, found: Sequence[Reported]) -> str:
        """Return a line for each function that has findings; "" if there are none."""
        functions: dict[tuple[str, str], list[Reported]] = {}
        for one in found:
            functions.setdefault((one.path, one.told.function), []).append(one)
        rows = sorted(functions.values(), key=_together, reverse=True)
        return "\n".join([_HEAD, *map(_line, rows)]) if rows else ""


def _together(ones: Sequence[Reported]) -> float:
    """Return the sum of worth."""
    return sum(one.told.worth for one in ones)


def _line(ones: Sequence[Reported]) -> str:
    best = max(ones, key=lambda one: one.told.worth)
    function = "module level" if best.told.function == MODULE else best.told.function
    place = f"{best.path}:{best.line}:{best.column}"
    counts = f"{_together(ones):5.2f}  {len(ones):8}"
    return f"{counts}  {place}: {function}: {best.code} {best.message}"
