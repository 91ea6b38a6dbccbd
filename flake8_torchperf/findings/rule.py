"""What a rule page says, as frozen data.

Enters nothing; leaves the dataclasses that a page becomes. Must not know files,
TOML or sites' nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from flake8_torchperf.sites.model import Level, SiteKind


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One operation of a chain: any of ``names``; an optional one may be missing."""

    names: frozenset[str]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """One kind of site a rule objects to; every condition given must hold.

    ``operations`` are exact names and ``operation_globs`` shell patterns; both empty means any
    operation. ``chain`` is compared with the *last* operations that made the operand.
    ``heat`` None leaves the decision to the rule's scope; COLD reports even in cold code.
    """

    kind: SiteKind
    operations: frozenset[str] = frozenset()
    operation_globs: tuple[str, ...] = ()
    chain: tuple[ChainStep, ...] = ()
    heat: Level | None = None
    traits: frozenset[str] = frozenset()
    not_traits: frozenset[str] = frozenset()
    dtype: str = ""
    not_device: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """The part of a page that linting needs.

    ``instead`` maps an operation, a glob of operations or "default" to the advice.
    """

    code: str
    name: str
    family: str
    scope: str
    priority: int
    message: str
    fix: str
    instead: Mapping[str, str] = field(hash=False)
    matches: tuple[Match, ...]
    hot: tuple[str, ...]
    path: Path
    own: bool

    def advice(self, operation: str) -> str:
        """What to write instead of ``operation``."""
        exact = self.instead.get(operation)
        if exact is not None:
            return exact
        globs = (key for key in self.instead if "*" in key and fnmatchcase(operation, key))
        return self.instead[next(globs, "default")]


@dataclass(frozen=True, slots=True)
class EvidenceSpec:
    """What the dispatch counter must show for a finding of this rule to count as confirmed.

    ``law`` "call": the bad example counts at least ``at_least`` of ``counter`` per call and the
    good one at most ``good_at_most``. ``law`` "element": the count grows with the input size n, by
    ``at_least`` or more per unit of n in the bad example and by nothing in the good one.
    ``needs`` "cuda" names evidence that no other machine can show.
    """

    counter: str
    law: str
    at_least: float
    good_at_most: float = 0.0
    needs: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """How to run a page's two snippets: call ``call`` with ``inputs`` evaluated over n and torch.

    ``bad_line`` and ``good_line`` are the 1-based lines of the page where the snippets begin.
    """

    call: str
    inputs: Mapping[str, str] = field(hash=False)
    setup: str
    bad: str
    good: str
    bad_line: int
    good_line: int


@dataclass(frozen=True, slots=True)
class Documentation:
    """The part of a page that people and tests read; ``sections`` keep the page's order.

    A page of a repository may leave out ``evidence`` and ``example``; our own never do.
    """

    rule: Rule
    sections: Mapping[str, str] = field(hash=False)
    evidence: EvidenceSpec | None
    example: Example | None
