"""Lint one module with other settings, to see what would change a decision."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.linter import lint

if TYPE_CHECKING:
    from flake8_torchperf.findings.model import Finding
    from flake8_torchperf.options import Options


@dataclass(frozen=True)
class Trials:
    """The findings of a module under its own settings and under others, each linted once."""

    source: str
    path: str
    options: Options
    _known: dict[Options, list[Finding]] = field(default_factory=dict)

    def found(self, **changes: Any) -> list[Finding]:
        """Return the findings under the settings with these changes."""
        options = replace(self.options, explain=False, **changes)
        if options not in self._known:
            self._known[options] = lint(self.source, self.path, options)
        return self._known[options]

    def everything(self, **changes: Any) -> list[Finding]:
        """Return the findings, however seldom their place runs and whatever is known of it."""
        return self.found(scope=Level.COLD, confidence="assumed", review=True, **changes)

    def tells(self, finding: Finding, **changes: Any) -> bool:
        """True if a finding is reported under the settings with these changes."""
        return any(same(one, finding) for one in self.found(**changes))


def same(one: Finding, other: Finding) -> bool:
    """True if two runs have the same finding."""
    return (one.code, one.line, one.column) == (other.code, other.line, other.column)


def in_line(found: list[Finding], line: int) -> list[Finding]:
    """Return the findings that stand in a line."""
    return [one for one in found if one.line <= line <= max(one.line, one.end_line)]
