"""Lint one module with other settings, to see what would change a decision."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.findings.documentation import evidence_of
from flake8_torchperf.findings.report import least_worth
from flake8_torchperf.judgement.heat import SAID, Level, Measured
from flake8_torchperf.linter import lint
from flake8_torchperf.values.cause import Cause

if TYPE_CHECKING:
    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.judgement.judged_site import JudgedSite
    from flake8_torchperf.options import Options


@dataclass(frozen=True)
class Trials:
    """The findings of a module under its own settings and under others, each linted once."""

    source: str
    path: str
    options: Options
    _known: dict[Options, list[Finding]] = field(default_factory=dict)

    def under(self, options: Options) -> Trials:
        """Return the same under other settings; what was linted already stays known."""
        return replace(self, options=options)

    def found(self, **changes: Any) -> list[Finding]:
        """Return the findings under the settings with these changes."""
        options = replace(self.options, explain=False, **changes)
        if options not in self._known:
            self._known[options] = lint(self.source, self.path, options)
        return self._known[options]

    def everything(self, **changes: Any) -> list[Finding]:
        """Return the findings, however seldom their place runs and whatever is known of it."""
        everything = {"scope": Level.COLD, "confidence": "assumed", "min_worth": 0.0}
        return self.found(**everything, review=True, **changes)

    def whatever_worth(self) -> list[Finding]:
        """Return the findings under the settings, also those of too little worth."""
        return self.found(min_worth=0.0) if least_worth(self.options) else self.found()

    def tells(self, finding: Finding, **changes: Any) -> bool:
        """True if a finding is reported under the settings with these changes."""
        return any(same(one, finding) for one in self.found(**changes))


def same(one: Finding, other: Finding) -> bool:
    """True if two runs have the same finding."""
    return (one.code, one.line, one.column) == (other.code, other.line, other.column)


def in_line(found: list[Finding], line: int) -> list[Finding]:
    """Return the findings that stand in a line."""
    return [one for one in found if one.line <= line <= max(one.line, one.end_line)]


def function_of(finding: Finding) -> str:
    """Return the function of a finding as settings name it."""
    return finding.site.function.replace(".<locals>", "")


def is_measured(finding: Finding, trials: Trials) -> bool:
    """True if a profile may change the frequency of a place."""
    spec = evidence_of(finding.rule)
    if is_notebook(trials.path) or (spec is not None and spec.shows == "use"):
        return False
    return not finding.site.compiled and finding.site.heat.cause not in SAID


def often(site: JudgedSite) -> JudgedSite:
    """Return a site as a profile would have it in which its line ran and waited often."""
    level = Level.LOOP if site.loops else Level.STEP
    return site.heated(site.heat.by(Cause.RAN_OFTEN, level, Measured(times=2, waits=2)))
