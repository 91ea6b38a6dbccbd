"""One text on its way to the records that are reported: `linted()`, in steps of one function each.

- `found_in()`: stray contracts, and findings, analysed with the profile or recalled from a cache.
- `without_old()`: the findings that a baseline lists are left out.
- `reported_by()`: flake8's decisions about a finding: selected, ignored or silenced.
- `as_rows()`, of `history/finding_record.py`: waits that follow directly on each other are one.

flake8's plugin takes the whole way. ``check`` takes the first step in its processes and the others
where it reports, since it also counts what is left out. ``fix`` and the server need the findings
behind the records. Only the last steps depend on how flake8 was called.
"""

from __future__ import annotations

import ast
import logging
import os
import traceback
from collections import Counter
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from flake8_torchperf.history.finding_record import FindingRecord, as_rows, tell
from flake8_torchperf.prefilter import concerns, read_in_vain, states_contracts
from flake8_torchperf.reserved import INTERNAL_ERROR, STRAY_CONTRACT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from flake8_torchperf.cache.memory import Again, Memory, Questions
    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.history.baseline import Key
    from flake8_torchperf.options import Options
    from flake8_torchperf.suppression import Suppression

# Below flake8's logger: `flake8 -v` shows it.
LOG = logging.getLogger("flake8.torchperf")
REPORT_TO = "the flake8-torchperf issue tracker"
Decide: TypeAlias = "Callable[[FindingRecord], bool]"


class LintText:
    """A text to lint, under the name of a file.

    ``statement_at`` returns the lines of the statement around a line, in which flake8 looks for a
    ``# noqa``. ``tree`` is the ast, None until the text is parsed.
    """

    def __init__(
        self,
        lines: Sequence[str],
        filename: str,
        statement_at: Callable[[int], str | None],
        tree: ast.Module | None = None,
    ) -> None:
        self.lines = lines
        self.filename = filename
        self.statement_at = statement_at
        self.tree = tree

    def parse(self) -> ast.Module:
        """Return the ast, made when first needed. Raises SyntaxError."""
        if self.tree is None:
            from flake8_torchperf.syntax.parsing import parsed

            self.tree = parsed("".join(self.lines))
        return self.tree

    @cached_property
    def is_concerned(self) -> bool:
        """True if the text needs analysis."""
        return concerns(self.lines, self.filename)

    def read_in_vain(self) -> dict[str, str]:
        """Return what of other files showed that the text needs no analysis, with digests."""
        return read_in_vain(self.lines, self.filename)

    @cached_property
    def states_contracts(self) -> bool:
        """True if a comment may begin like a contract."""
        return states_contracts(self.lines)


class Found(NamedTuple):
    """The records of one text, and the findings behind them unless they were recalled."""

    records: list[FindingRecord]
    findings: list[Finding]


def linted(
    source: LintText,
    options: Options,
    is_reported: Decide,
    memory: Callable[[], Memory] | None = None,
) -> list[FindingRecord]:
    """Return the records for a text, as flake8 takes them: it drops those that it doesn't report.

    ``memory`` opens the cache, if there is one.
    """
    found = found_in(source, options, memory).records
    if found:
        found, _ = without_old(found, source.filename, options.baseline)
    return as_rows(found, is_reported)


def found_in(
    source: LintText,
    options: Options,
    memory: Callable[[], Memory] | None = None,
    reads: dict[str, str] | None = None,
    safeties: frozenset[str] | None = None,
) -> Found:
    """Return all that is found in a text, in the order of the file.

    With a memory, analysis of a text that was linted before ends there. ``reads`` receives the
    other files that the findings depend on, each with the digest of its content. ``safeties`` are
    those of the fixes to plan; by default those that messages mark.
    """
    records = _stray_contracts(source, options)
    findings: list[Finding] = []
    if source.is_concerned:
        analyse = partial(_analysed, source, options, findings, safeties)
        try:
            if memory is None:
                records += analyse(reads)
            else:
                from flake8_torchperf.cache.cached_findings import remembered

                again = asking_again(source, options)
                records += remembered(source.lines, source.filename, memory(), analyse, again)
        except Exception as error:
            # A bug of ours must neither stop the user's run nor stay hidden: it is reported as a
            # finding.
            if os.environ.get("TORCHPERF_DEBUG") == "1":
                raise
            records.append(FindingRecord(1, 0, internal_error(error)))
    elif reads is not None:
        reads.update(source.read_in_vain())
    return Found(
        [one._replace(statement=source.statement_at(one.line)) for one in records], findings
    )


def without_old(
    found: list[FindingRecord], filename: str, baseline: Path | None
) -> tuple[list[FindingRecord], Counter[Key]]:
    """Return the findings that a baseline does not list, and its entries that match no finding."""
    if baseline is None:
        return found, Counter()
    from flake8_torchperf.history.baseline import known_before, read

    known, left = known_before(found, read(baseline).allowed(filename))
    return [told for index, told in enumerate(found) if index not in known], left


def reported_by(suppression: Suppression, filename: str) -> Decide:
    """Return a function that is true of the findings in a file that flake8 reports."""

    def is_reported(told: FindingRecord) -> bool:
        return suppression.reports(told.code, filename, told.line, told.statement)

    return is_reported


def _stray_contracts(source: LintText, options: Options) -> list[FindingRecord]:
    """Return comments that begin like a contract but state none; most files have none."""
    chosen = options.chosen
    if not source.states_contracts or not chosen.tells(STRAY_CONTRACT, source.filename):
        return []
    if chosen.leaves_out(source.filename):
        return []
    from flake8_torchperf.syntax.contract_comments import stray_contracts

    return [
        FindingRecord(
            comment.line,
            comment.column,
            f"{STRAY_CONTRACT} {problem}",
            comment.line,
            comment.column + len(comment.text),
            source=comment.text,
        )
        for comment, problem in stray_contracts(source.parse(), source.lines)
    ]


def _analysed(
    source: LintText,
    options: Options,
    findings: list[Finding],
    safeties: frozenset[str] | None,
    reads: dict[str, str] | None,
) -> list[FindingRecord]:
    from flake8_torchperf.linter import MARKED, lint_tree

    wanted = MARKED if safeties is None else safeties
    tree = source.parse()
    findings += lint_tree(tree, source.lines, source.filename, options, reads, wanted)
    if not findings:
        return []
    from flake8_torchperf.syntax.statement_lines import Places

    places = Places(tree)
    return [tell(finding, places, source.lines) for finding in findings]


def asking_again(source: LintText, options: Options) -> Again:
    """Return what asks the questions of a text again that only an analysis can answer."""

    def again(asked: Questions, standing: Questions) -> Mapping[str, str] | None:
        from flake8_torchperf.asked_again import ask_again

        tree, lines = source.parse(), source.lines
        try:
            return ask_again(tree, lines, source.filename, options, asked, standing)
        except Exception as error:
            # A bug of ours costs a new analysis, no findings.
            if os.environ.get("TORCHPERF_DEBUG") == "1":
                raise
            LOG.warning("%s is analysed anew: %s", source.filename, internal_error(error))
            return None

    return again


def internal_error(error: Exception) -> str:
    """Say in one line what went wrong inside the plugin, where, and what to do about it."""
    from flake8_torchperf.findings.message import printable

    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    reason = printable(" ".join(f"{type(error).__name__}: {error}".split()))
    return (
        f"{INTERNAL_ERROR} this file was not analysed, by a mistake of flake8-torchperf: {reason} "
        f"({place}); please report it to {REPORT_TO}, TORCHPERF_DEBUG=1 shows the traceback"
    )
