"""Messages between the process that lints and the one that talks to the editor: plain values.

Lines and columns count from 0, columns in characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Note:
    """A place that explains a finding; ``path`` is "" in its own file, ``line`` -1 for no place."""

    text: str
    line: int = -1
    path: str = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """A fix that can be made: its safety and name, and what it changes ("" if it is safe)."""

    safety: str
    name: str
    changes: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding.

    ``span`` is where the expression begins and ends: line, column, line, column. ``name`` and
    ``page`` are those of the rule. ``function`` is the qualified name of the function around it and
    ``head`` the line of its ``def``; "" and -1 at module level. ``notes`` hold the reason's chain,
    then the calls. ``measured`` describes a profile's measurement of the statement. ``row`` is the
    id of the row that decided, ``why`` its sentence. ``severity`` is the rule's, if it states one.
    ``evidence`` are the names of the features that make the worth, with spaces between them.
    """

    code: str
    name: str
    message: str
    cost: str
    span: tuple[int, int, int, int]
    page: str = ""
    function: str = ""
    head: int = -1
    notes: tuple[Note, ...] = ()
    measured: str = ""
    offers: tuple[Offer, ...] = ()
    row: str = ""
    why: str = ""
    severity: str = ""
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Lint:
    """Requests the findings in a text; ``moved`` says that other files may have changed."""

    path: str
    text: str
    moved: bool = False


@dataclass(frozen=True, slots=True)
class FixRequest:
    """Requests the text after one fix of the finding with this code, line and column."""

    path: str
    text: str
    code: str
    line: int
    column: int
    name: str


@dataclass(frozen=True, slots=True)
class FixAll:
    """Requests the text after all safe fixes."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Explain:
    """Requests a rule's page, as Markdown."""

    code: str


@dataclass(frozen=True, slots=True)
class Count:
    """Requests a profile's counts for the statements of a text."""

    path: str
    text: str


Request: TypeAlias = Lint | FixRequest | FixAll | Explain | Count


@dataclass(frozen=True, slots=True)
class FirstReply:
    """The first reply: the files and folders that decide the configuration.

    ``said`` is a message for the user. If the configuration can't be used, the process ends.
    """

    watched: tuple[str, ...]
    usable: bool = True
    said: str = ""


@dataclass(frozen=True, slots=True)
class TextFindings:
    """The findings in a text, in its order."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Counted:
    """A profile's counts: line and words for each statement that waited."""

    lines: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A changed text, or the text of a page."""

    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The reason why there is no answer."""

    problem: str


Reply: TypeAlias = FirstReply | TextFindings | Counted | Text | Failed
