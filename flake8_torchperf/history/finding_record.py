"""A finding as a flat row of plain values, for caches and other processes."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from flake8_torchperf.digest import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from flake8_torchperf.findings.finding import Finding
    from flake8_torchperf.judgement.heat import Measured
    from flake8_torchperf.syntax.statement_lines import Places

Place: TypeAlias = "tuple[int, int, str]"
# A finding, whole or in plain values.
InRow = TypeVar("InRow", "Finding", "FindingRecord")

MODULE = "<module>"
# Stands between the evidence of several findings.
OR = " | "
# Source text longer than this is cut, and a digest keeps different texts distinct.
LONGEST_SOURCE = 160
_DIGITS = 16

_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # from Python 3.11
# Characters that formatters change, or Python releases write differently from an ast: spaces, line
# breaks, parentheses, and the quotes and backslashes of strings.
_STYLE = re.compile(r"[\s()\"'\\]+")


class FindingRecord(NamedTuple):
    """A finding in plain values.

    Lines count from 1, columns from 0; ``end_column`` is the first column after the expression.
    ``text`` begins with the code. ``cost`` says how often the cost arises ("per step").
    ``function`` is the qualified name of the function around it, ``source`` its text in a form that
    reformatting does not change. ``fixable`` is 1 if a safe fix rewrites it, ``quiet`` is 1 if its
    statement mentions noqa. ``ran`` and ``waits`` are a profile's counts for its statement,
    ``seconds`` the time of the waits if it was measured. The waits of findings with the same
    ``row`` follow directly on each other; ``lead`` is the text of a finding that also reports the
    later ones (see `as_rows`). ``decided_by`` is the id of the row of `judgement/rows.py` that
    decided. ``residence`` is where the tensor lies: "device", "host", "unknown", "" without one.
    ``evidence`` are the names of the features that apply (`worth/features.py`), sorted, with spaces
    between them and `OR` between those of a row; the weights of today's table give the ``worth``,
    which is therefore never stored. ``follows`` is the line of the wait on which this one follows
    with hardly any work between, 0 without one. ``statement`` holds the lines in which flake8 looks
    for a ``# noqa``; None if it is to look into the file.
    """

    line: int
    column: int
    text: str
    end_line: int = 0
    end_column: int = 0
    cost: str = ""
    function: str = MODULE
    source: str = ""
    fixable: int = 0
    quiet: int = 0
    ran: int = 0
    waits: int = 0
    seconds: float = 0.0
    row: str = ""
    lead: str = ""
    decided_by: str = ""
    residence: str = ""
    evidence: str = ""
    follows: int = 0
    statement: str | None = None

    @property
    def worth(self) -> float:
        """The share of findings with this evidence that were worth telling, from 0 to 1.

        It is 1 for what is no rule's finding: a file that can't be analysed, a stray contract.
        """
        if not self.evidence:
            return 1.0
        from flake8_torchperf.judgement.worth.fitted import weights  # reads the table of weights

        return weights().worth(self.features)

    @property
    def features(self) -> Sequence[str]:
        """The features of the finding, or of the best of those that it is printed for."""
        evidence = [one.split() for one in self.evidence.split(OR)]
        if len(evidence) == 1:
            return evidence[0]
        from flake8_torchperf.judgement.worth.fitted import weights

        return max(evidence, key=weights().worth)

    @property
    def place(self) -> Place:
        """The line, column and text, by which flake8 knows the finding."""
        return (self.line, self.column, self.text)

    @property
    def measured(self) -> tuple[float, int, int]:
        """The seconds, waits and runs by which findings are ranked; all 0 without a profile."""
        return (self.seconds, self.waits, self.ran)

    @property
    def code(self) -> str:
        """The rule's code."""
        return self.text.partition(" ")[0]

    @property
    def message(self) -> str:
        """The text after the code."""
        return self.text.partition(" ")[2]


def tell(finding: Finding, places: Places, lines: Sequence[str]) -> FindingRecord:
    """Return the record of a finding in the module that ``places`` were made from."""
    # Not needed where findings are cached.
    from flake8_torchperf.findings.heat_text import row_of
    from flake8_torchperf.judgement.worth.features import features

    node = finding.site.node
    function, last = places.around(getattr(node, "lineno", finding.line))
    statement = lines[finding.line - 1 : max(finding.end_line, last)]
    return FindingRecord(
        finding.line,
        finding.column,
        f"{finding.code} {finding.message}",
        finding.end_line,
        finding.end_column,
        finding.site.heat.told_cost.value,
        function or MODULE,
        normal_form(node),
        int(any(edit.safety == "safe" for edit in finding.edits)),
        int(any("noqa" in line.lower() for line in statement)),
        *_spent(finding.site.heat.measured),
        finding.row,
        f"{finding.code} {finding.lead}" if finding.lead else "",
        row_of(finding.site.heat),
        _residence(finding),
        " ".join(sorted(features(finding.site, finding.code))),
        finding.site.leader_line,
    )


def _residence(finding: Finding) -> str:
    """Return where the tensor of a finding lies, as far as the source shows."""
    from flake8_torchperf.values.values import tensor_of

    operand = finding.site.operand
    tensor = None if operand is None else tensor_of(operand)
    if tensor is None:
        return ""
    return tensor.device if tensor.device in ("device", "host") else "unknown"


def as_rows(
    found: Sequence[FindingRecord], is_reported: Callable[[FindingRecord], bool]
) -> list[FindingRecord]:
    """Return the findings to print: one for each row, which stands for its reported findings.

    Findings that are not reported remain in the result, so that each ``# noqa`` silences something.
    """
    if not any(one.row for one in found):
        return list(found)
    return [led(one, others) for one, others in rows_of(found, is_reported)]


def rows_of(
    found: Sequence[InRow], is_reported: Callable[[InRow], bool]
) -> Iterator[tuple[InRow, list[InRow]]]:
    """Yield each finding that is printed, with those of its row that it is printed for."""
    rows: dict[str, list[InRow]] = {}
    for one in found:
        if one.row and is_reported(one):
            rows.setdefault(one.row, []).append(one)
    behind = {id(one) for row in rows.values() for one in row[1:]}
    firsts = {id(row[0]): row[1:] for row in rows.values()}
    for one in found:
        if id(one) not in behind:
            yield one, firsts.get(id(one), [])


def led(first: FindingRecord, others: Sequence[FindingRecord]) -> FindingRecord:
    """Return a finding as it is printed for others of its row as well, with their evidence."""
    if not others:
        return first
    from flake8_torchperf.findings.message import leading

    text = leading(first.lead, [one.line for one in others])
    evidence = OR.join(one.evidence for one in (first, *others))
    return first._replace(text=text, evidence=evidence)


def _spent(measured: Measured | None) -> tuple[int, int, float]:
    """Return how often a statement ran and waited, and for how many seconds."""
    if measured is None:
        return 0, 0, 0.0
    return measured.times, measured.waits, measured.seconds or 0.0


def restored(row: Sequence[Any]) -> FindingRecord | None:
    """Return the finding with these plain values, or None if they are not those of a finding."""
    if [*map(type, row[:-1])] != _TYPES or not isinstance(row[-1], (str, type(None))):
        return None
    return FindingRecord(*row)


# The types of all values but the last, which is a text or None.
_TYPES = [*map(type, FindingRecord(0, 0, ""))][:-1]


def normal_form(node: ast.AST) -> str:
    """Return the source text of an expression or a statement, the same however it is laid out.

    For a statement with a body, only the text before the body.
    """
    try:
        text = " ".join(part for one in _headed(node) for part in ast.unparse(one).split())
    except RecursionError:
        return f"a deep {type(node).__name__}"  # hundreds of operators in one expression
    if len(text) <= LONGEST_SOURCE:
        return text
    return f"{text[:LONGEST_SOURCE]}... {digest(without_style(text).encode())[:_DIGITS]}"


def without_style(text: str) -> str:
    """Return the text without anything that a formatter changes."""
    return _STYLE.sub("", text)


def _headed(node: ast.AST) -> Iterable[ast.AST]:
    match node:
        case ast.For() | ast.AsyncFor():
            return node.target, node.iter
        case ast.While() | ast.If():
            return (node.test,)
        case ast.With() | ast.AsyncWith():
            return [item.context_expr for item in node.items]
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return (node.args,)
        case ast.ClassDef():
            return node.bases
        case ast.ExceptHandler():
            return () if node.type is None else (node.type,)
        case ast.match_case():
            return (node.pattern,) if node.guard is None else (node.pattern, node.guard)
        case ast.Match():
            return (node.subject,)
        case ast.Module():
            return ()
        case ast.comprehension():
            return node.target, node.iter
    return () if isinstance(node, _TRIES) else (node,)
