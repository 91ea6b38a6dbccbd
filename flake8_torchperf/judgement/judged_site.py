"""Judged sites, from which findings are made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import is_
from typing import TYPE_CHECKING

from flake8_torchperf.values.values import tensor_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection, Iterable

    from flake8_torchperf.judgement.heat import Heat
    from flake8_torchperf.syntax.positions import Snippet
    from flake8_torchperf.values.cause import Cause
    from flake8_torchperf.values.site import SiteKind
    from flake8_torchperf.values.values import Tensor, Value


@dataclass(frozen=True, slots=True)
class Loop:
    """One enclosing loop.

    ``line`` is the 1-based line of the loop in the file (0 until the site is located), ``kind``
    is "for", "while" or "comprehension", ``over`` the source of what it iterates ("" for a
    while loop).
    """

    line: int
    kind: str
    over: str
    node: ast.AST | None = None


@dataclass(frozen=True, slots=True)
class JudgedSite:
    """A site with the heat that judgement gives it, and everything that a rule may test.

    ``operation`` is the field's name for what happens there ("item", "if", "print"). ``operand`` is
    the value read, its reason included; None if there is none (an explicit synchronisation).
    ``loops`` holds the enclosing loops, outermost first. ``covers`` lists nodes whose own findings
    this site replaces, so that each problem is reported once. ``compiled`` names the compiled or
    transformed code that holds the place: "of the compiled step". ``evidence`` holds features
    that only judgement sees (`worth/features.py`): all rows that apply, and what is known of the
    callers. ``leader`` is the wait on which this one follows with little or no work between, with
    its line in the file once the site is located. ``placed_at`` is the file and the line that put
    the operand on a device, where it isn't the function that does.
    """

    kind: SiteKind
    operation: str
    node: ast.AST
    operand: Value | None
    heat: Heat
    loops: tuple[Loop, ...] = ()
    function: str = "<module>"
    traits: frozenset[str] = field(default_factory=frozenset)
    covers: tuple[ast.AST, ...] = ()
    operand_node: ast.AST | None = None
    compiled: str = ""
    evidence: frozenset[str] = frozenset()
    leader: ast.AST | None = None
    leader_line: int = 0
    placed_at: tuple[str, int] | None = None

    @property
    def key(self) -> tuple[int, SiteKind]:
        """The key that tells a site from the others of its function: its node and its kind."""
        return id(self.node), self.kind

    @property
    def tensor(self) -> Tensor | None:
        """The tensor that is read, or may be on some path; None if there is none."""
        return None if self.operand is None else tensor_of(self.operand)

    @property
    def is_nested(self) -> bool:
        """True if the site is in a function inside another one."""
        return ".<locals>." in self.function

    def heated(self, heat: Heat) -> JudgedSite:
        """Return the same site with another heat."""
        return replace(self, heat=heat)

    def showing(self, features: Iterable[str]) -> JudgedSite:
        """Return the same site with further evidence."""
        return replace(self, evidence=self.evidence.union(features))

    def cooled(self, why: Cause) -> JudgedSite:
        """Return the same site made cold, for scope "all" only; its loops stay."""
        return replace(self, heat=self.heat.cooled(why))


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The judged sites of one piece of a file, and the snippet they stand in.

    ``queued`` holds the identities of the operators, subscripts and assignments that compute on
    tensors of the device, among them those of other pieces.
    """

    snippet: Snippet
    sites: tuple[JudgedSite, ...]
    queued: Collection[int] = frozenset()

    def updated(self, other: Judged) -> Judged:
        """Return these sites, in their order, each as ``other`` has it where it does."""
        there = {site.key: site for site in other.sites}
        return self.having(there.get(site.key, site) for site in self.sites)

    def having(self, sites: Iterable[JudgedSite]) -> Judged:
        """Return this with other sites; the same object if they are the same."""
        found = tuple(sites)
        same = len(found) == len(self.sites) and all(map(is_, found, self.sites))
        return self if same else replace(self, sites=found)
