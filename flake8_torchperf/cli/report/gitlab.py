"""``--format gitlab``: a code quality report, as GitLab reads it from a job's artifacts.

The format: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flake8_torchperf.cli.report.reported import LEAST, MIDDLE, WORST, Gathered, rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.cli.report.reported import Reported

_SEVERITIES = {WORST: "major", MIDDLE: "minor", LEAST: "info"}


class Report(Gathered):
    """A list of issues; GitLab compares their fingerprints with those of the target branch."""

    def text(self, found: Sequence[Reported]) -> str:
        """Return the list."""
        known = rules()
        issues = [
            {
                "description": f"{one.code} {one.message}",
                "check_name": one.code,
                "content": {"body": one.details(known).strip()},
                "fingerprint": one.fingerprint,
                "severity": _SEVERITIES[one.level_by_worth],
                "location": {
                    "path": one.path,
                    "lines": {"begin": one.line, "end": one.end_line},
                },
            }
            for one in found
        ]
        return json.dumps(issues, indent=2)
