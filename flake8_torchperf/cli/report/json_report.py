"""``--format json``: one document with everything that is known of each finding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flake8_torchperf.cli.report.reported import Gathered, rules
from flake8_torchperf.judgement.rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.cli.report.reported import Reported

VERSION = 1


class Report(Gathered):
    """JSON, documented in docs/check.md."""

    def text(self, found: Sequence[Reported]) -> str:
        """Return the document; ``version`` rises where a reader would have to change."""
        known = rules()
        sentences = {row.id: row.sentence for row in ROWS}
        findings = [
            {
                "path": one.path,
                "line": one.line,
                "column": one.column,
                "end_line": one.end_line,
                "end_column": one.end_column,
                "code": one.code,
                "rule": known[one.code].name if one.code in known else "",
                "message": one.message,
                "cost": one.told.cost,
                "row": one.told.decided_by,
                "why": sentences.get(one.told.decided_by, ""),
                "function": one.told.function,
                "source": one.told.source,
                "safe_fix": bool(one.told.fixable),
                "fingerprint": one.fingerprint,
            }
            for one in found
        ]
        return json.dumps({"version": VERSION, "findings": findings}, indent=2)
