"""flake8's decisions about a finding: selected, ignored for its file, or silenced in its line.

Relied on, in flake8 5.0 to 7.5: `StyleGuideManager` and `Violation.is_inline_ignored`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flake8.formatting.default import Nothing
from flake8.style_guide import Decision, StyleGuideManager
from flake8.violation import Violation

if TYPE_CHECKING:
    import argparse


class Suppression:
    """Decides, by the options of one run, which findings flake8 reports."""

    def __init__(
        self, options: argparse.Namespace, guides: StyleGuideManager | None = None
    ) -> None:
        self._disabled = bool(options.disable_noqa)
        self._guides = guides or StyleGuideManager(options, Nothing(options))

    def selects(self, code: str, filename: str) -> bool:
        """True if a code is reported in a file at all."""
        guide = self._guides.style_guide_for(filename)
        return guide.should_report_error(code) is Decision.Selected

    def reports(self, code: str, filename: str, line: int, text: str | None) -> bool:
        """True if a finding is reported.

        ``text`` holds all lines of the statement in which a ``# noqa`` silences it.
        """
        if not self.selects(code, filename):
            return False
        return not Violation(code, filename, line, 1, "", text).is_inline_ignored(self._disabled)
