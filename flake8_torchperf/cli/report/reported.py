"""A finding as reports need it, and the formatter that gathers them for one text at the end."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flake8.formatting.base import BaseFormatter

from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.digest import digest_of
from flake8_torchperf.findings.catalogue import load_catalogue
from flake8_torchperf.findings.rule import SAFE
from flake8_torchperf.history.finding_record import FindingRecord, without_style
from flake8_torchperf.judgement.worth.bands import Band, band_of
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.reserved import RESERVED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flake8.violation import Violation

    from flake8_torchperf.findings.catalogue import Catalogue
    from flake8_torchperf.findings.rule import Rule
    from flake8_torchperf.history.finding_record import Place

# Three levels for how often a finding is paid for, the worst first.
WORST, MIDDLE, LEAST = "error", "warning", "note"
_LEVELS = {
    "per element": WORST,
    "per step": MIDDLE,
    "per request": MIDDLE,
    "per epoch": LEAST,
    "per call": LEAST,
}
_BANDS = {Band.HIGH: WORST, Band.MEDIUM: MIDDLE, Band.LOW: LEAST}


@dataclass(frozen=True)
class Reported:
    """One finding that flake8 reports.

    Lines and columns count from 1; ``end_column`` is the first column after the expression, or the
    column itself if the end is unknown. ``path`` has slashes. ``again`` counts the earlier findings
    in the same function that look the same.
    """

    code: str
    message: str
    path: str
    line: int
    column: int
    told: FindingRecord
    again: int = 0

    @property
    def end_line(self) -> int:
        """The last line."""
        return max(self.told.end_line, self.line)

    @property
    def end_column(self) -> int:
        """The column after the last character."""
        return self.told.end_column + 1 if self.told.end_line else self.column

    @property
    def level(self) -> str:
        """The severity that its rule states, else that of its cost; the worst without a rule."""
        return self._stated or _LEVELS.get(self.told.cost, MIDDLE)

    @property
    def level_by_worth(self) -> str:
        """The severity that its rule states, else that of its worth; the worst without a rule."""
        if self._stated or not self.told.evidence:
            return self._stated or MIDDLE
        return _BANDS[band_of(self.told.features)]

    @property
    def _stated(self) -> str:
        if self.code in RESERVED or not self.code.startswith("TPF"):
            return WORST
        rule = _catalogue().rule(self.code)
        return "" if rule is None else rule.severity

    def details(self, known: Mapping[str, Rule]) -> str:
        """Return lines with the cost, the residence, the fix and the address of the rule's page."""
        told = self.told
        facts = {
            "cost": told.cost,
            "residence": told.residence,
            "fix": SAFE if told.fixable else "",
            "page": known[self.code].address if self.code in known else "",
        }
        return "".join(f"\n{name}: {fact}" for name, fact in facts.items() if fact)

    @property
    def fingerprint(self) -> str:
        """A digest that stays the same after edits elsewhere and after reformatting."""
        told = self.told
        source = without_style(told.source) or self.message
        return digest_of([self.code, self.path, told.function, source, str(self.again)])


class Gathered(BaseFormatter):
    """A formatter that gathers the findings and writes the format's text at the end."""

    # Our findings in each file, set before the report begins.
    told: Mapping[str, Mapping[Place, FindingRecord]]

    def after_init(self) -> None:
        """Start without findings."""
        self.told = {}
        self.found: list[Reported] = []
        self.files: list[str] = []
        # The lines to write after the report.
        self.behind: list[str] = []
        self._alike: Counter[tuple[str, ...]] = Counter()

    def beginning(self, filename: str) -> None:
        """Note a file, which may have no findings."""
        self.files.append(as_path(filename))

    def handle(self, error: Violation) -> None:
        """Keep a finding for the end."""
        place = (error.line_number, error.column_number - 1, f"{error.code} {error.text}")
        told = self.told.get(error.filename, {}).get(place) or FindingRecord(*place)
        path = as_path(error.filename)
        line, message = error.line_number, error.text
        if is_notebook(error.filename):
            from flake8_torchperf.cli.notebooks.source import in_cell

            shown = in_cell(error)
            # A report names files that there are.
            line, message = (
                shown.line_number,
                f"{shown.text} (in {shown.filename.rpartition(':')[2]})",
            )
            last = told.end_line - error.line_number + line
            told = told._replace(end_line=last if told.end_line else 0)
        one = Reported(error.code, message, path, max(line, 1), place[1] + 1, told)
        key = (path, error.code, told.function, without_style(told.source))
        self.found.append(replace(one, again=self._alike[key]))
        self._alike[key] += 1

    def stop(self) -> None:
        """Write the report."""
        text = self.text(self.found)
        for part in (text, *self.behind):
            if part:
                self._write(part)
        super().stop()

    def text(self, found: Sequence[Reported]) -> str:
        """Return the whole report, without the line break at its end."""
        raise NotImplementedError


def as_path(filename: str) -> str:
    """Return a file's name as servers know it: with slashes, from where the command runs."""
    name = os.path.normpath(filename)
    if os.path.isabs(name):
        inside = os.path.relpath(name) if _same_drive(name) else name
        name = name if inside.startswith("..") else inside
    # A name that is not UTF-8 would make writing the report fail.
    return name.replace(os.sep, "/").encode("utf-8", "backslashreplace").decode()


def _same_drive(path: str) -> bool:
    return os.path.splitdrive(path)[0] == os.path.splitdrive(os.getcwd())[0]


def rules() -> dict[str, Rule]:
    """Return the rules of this run, by code."""
    return {rule.code: rule for rule in _catalogue().rules}


def _catalogue() -> Catalogue:
    return load_catalogue(TorchPerfPlugin.options().rules)


def name_of(code: str, known: Mapping[str, Rule]) -> str:
    """Return a code with its rule's name, where it has one."""
    rule = known.get(code)
    return f"{code} {rule.name}" if rule is not None else code
