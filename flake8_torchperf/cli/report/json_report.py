"""``--format json``: one document with everything that is known of each finding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flake8_torchperf.cli.report.reported import Gathered, rules
from flake8_torchperf.cli.report.safe_fixes import replacements
from flake8_torchperf.findings.rule import SAFE
from flake8_torchperf.judgement.rows import ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flake8_torchperf.cli.report.reported import Reported
    from flake8_torchperf.cli.report.safe_fixes import Replacement

VERSION = 1


class Report(Gathered):
    """JSON, documented in docs/check.md."""

    def text(self, found: Sequence[Reported]) -> str:
        """Return the document; ``version`` rises where a reader would have to change."""
        known = rules()
        sentences = {row.id: row.sentence for row in ROWS}
        fixes = replacements(found)
        findings = [
            {
                "path": one.path,
                "line": one.line,
                "column": one.column,
                "end_line": one.end_line,
                "end_column": one.end_column,
                "code": one.code,
                "rule": known[one.code].name if one.code in known else "",
                "url": known[one.code].address if one.code in known else "",
                "message": one.message,
                "severity": one.level,
                "worth": round(one.told.worth, 2),
                "follows": one.told.follows or None,
                "cost": one.told.cost,
                "residence": one.told.residence,
                "row": one.told.decided_by,
                "why": sentences.get(one.told.decided_by, ""),
                "function": one.told.function,
                "source": one.told.source,
                "safe_fix": bool(one.told.fixable),
                "fix": _fix(fixes.get(one)),
                "fingerprint": one.fingerprint,
            }
            for one in found
        ]
        return json.dumps({"version": VERSION, "findings": findings}, indent=2)


def _fix(new: Replacement | None) -> dict[str, object] | None:
    """Return a safe fix as a diff. `torchperf fix --verify` runs the code to verify it."""
    if new is None:
        return None
    return {"name": new.name, "safety": SAFE, "diff": new.diff, "verified": False}
