"""The contents of a rule page, as frozen data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.values.site import SiteKind

# The degrees of safety of fixes, the safest first; docs/fixes.md says what each promises.
SAFE, UNSAFE, SUGGESTED = SAFETIES = ("safe", "unsafe", "suggested")

# A rule's life: told with --torchperf-preview only, told, no longer told (docs/rule-life.md).
PREVIEW, STABLE, RETIRED = STATUSES = ("preview", "stable", "retired")
# How severe a finding is, the worst first.
SEVERITY_WORDS = ("error", "warning", "note")
# The address of the published documentation; setup.cfg and README.md name it too.
SITE = "https://flake8-torchperf.readthedocs.io/en/latest/"


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One operation of a chain: any of ``names``; an optional one may be missing."""

    names: frozenset[str]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """One kind of site that a rule objects to; every condition given must hold.

    ``operations`` are exact names and ``operation_globs`` shell patterns; both empty means any
    operation. ``chain`` is compared with the *last* operations that made the operand. ``heat`` None
    leaves the decision to the rule's scope; COLD reports even in cold code. ``only_in_all``
    is True if only scope "all" tells what it matches; ``in_preview`` if only a preview does.
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
    only_in_all: bool = False
    in_preview: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """The part of a page that linting needs.

    ``since`` is the version that brought it, "" for a page of a user's own; ``status`` is one of
    `STATUSES`, ``severity`` one of `SEVERITY_WORDS`, or "" if the cost of a finding decides.
    ``instead`` maps an operation with a trait ("max+bounded"), an operation, a trait, a glob of
    operations or "default" to the advice. ``fixes`` are the safety and name of the fixes for its
    findings, the safest first.
    """

    code: str
    name: str
    family: str
    scope: str
    priority: int
    message: str
    instead: Mapping[str, str] = field(hash=False)
    matches: tuple[Match, ...]
    hot: tuple[str, ...]
    path: Path
    own: bool
    fixes: tuple[tuple[str, str], ...] = ()
    since: str = ""
    status: str = "stable"
    severity: str = ""

    @property
    def has_safe_fix(self) -> bool:
        """True if a fix changes nothing but the cost."""
        return any(safety == SAFE for safety, _ in self.fixes)

    @property
    def address(self) -> str:
        """The URL of the rule's page: on the documentation's site, or a repository's own file."""
        return f"{SITE}rules/{self.path.stem}.html" if self.own else self.path.resolve().as_uri()

    def advice(self, operation: str, traits: Collection[str] = ()) -> str:
        """Return the advice for ``operation``; the order of ``instead`` decides among traits."""
        for key, advice in self.instead.items():
            head, plus, trait = key.partition("+")
            if plus and head == operation and trait in traits:
                return advice
        exact = self.instead.get(operation)
        if exact is not None:
            return exact
        for key, advice in self.instead.items():
            head, plus, trait = key.partition("+")
            if plus and "*" in head and trait in traits and fnmatchcase(operation, head):
                return advice
        for key, advice in self.instead.items():
            if key in traits:
                return advice
        for key, advice in self.instead.items():
            if "*" in key and fnmatchcase(operation, key):
                return advice
        return self.instead["default"]
