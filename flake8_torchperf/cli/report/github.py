"""``--format github``: workflow commands, which GitHub shows beside the lines of a change.

Form, escapes and limits: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
and actions/toolkit, packages/core/src/command.ts.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from flake8_torchperf.cli.report.reported import LEAST, MIDDLE, WORST, Gathered, name_of, rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flake8_torchperf.cli.report.reported import Reported
    from flake8_torchperf.findings.rule import Rule

_COMMANDS = {WORST: "error", MIDDLE: "warning", LEAST: "notice"}
# GitHub shows this many annotations of each kind for a step, and passes over the rest in silence.
SHOWN = 10


class Report(Gathered):
    """Annotations as far as GitHub shows them, and lines of the log for all other findings."""

    def text(self, found: Sequence[Reported]) -> str:
        """Return the worst findings first: they get the annotations."""
        known = rules()
        made: Counter[str] = Counter()
        lines: list[str] = []
        rest: list[str] = []
        for one in sorted(found, key=lambda one: [*_COMMANDS].index(one.level)):
            made[one.level] += 1
            if made[one.level] <= SHOWN:
                lines.append(annotation(one, known))
            else:
                place = f"{one.path}:{one.line}:{one.column}"
                rest.append(f"not annotated: {place}: {one.code} {_in_log(one.message)}")
        if rest:
            lines.append(f"GitHub shows {SHOWN} annotations of a kind; {len(rest)} more findings:")
        return "\n".join([*lines, *rest])


def annotation(one: Reported, known: Mapping[str, Rule]) -> str:
    """Return the workflow command for one finding."""
    values = {"file": one.path, "line": str(one.line), "endLine": str(one.end_line)}
    if one.end_line == one.line:  # columns count for one line only
        values |= {"col": str(one.column), "endColumn": str(one.end_column)}
    values["title"] = name_of(one.code, known)
    told = ",".join(f"{key}={_property(value)}" for key, value in values.items())
    return f"::{_COMMANDS[one.level]} {told}::{_data(one.message + one.details(known))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _in_log(text: str) -> str:
    return " ".join(text.split())
