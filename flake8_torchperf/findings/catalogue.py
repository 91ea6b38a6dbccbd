"""Loads folders of rule pages into an indexed `Catalogue`.

Pages are data; loading them executes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from flake8_torchperf.findings.page import (
    CatalogueError,
    PageError,
    PageText,
    read_rule,
    read_text,
)
from flake8_torchperf.findings.rule import PREVIEW, STABLE, Match, Rule
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.knowledge.conventions import FILE as CONVENTIONS
from flake8_torchperf.values.site import OWN_TRAITS, SiteKind

__all__ = [
    "Catalogue",
    "CatalogueError",
    "Match",
    "PageError",
    "Rule",
    "load_catalogue",
    "pages_folder",
]

_OURS = r"(?m)^name\s*=\s*flake8-torchperf\s*$"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every rule, by code; ``by_kind`` lists the rules for a kind of site: the first match wins.

    ``called_functions`` are the qualified names of the calls that pages match: call sites are
    recorded only for them. ``hot`` are the function-name globs that pages declare hot.
    """

    rules: tuple[Rule, ...]
    by_kind: Mapping[SiteKind, tuple[tuple[Rule, Match], ...]] = field(hash=False)
    called_functions: frozenset[str]
    hot: tuple[str, ...]

    def kinds_when_cold(self) -> frozenset[SiteKind]:
        """Return the kinds of sites that some rule reports in cold code as well."""
        return frozenset(
            kind
            for kind, pairs in self.by_kind.items()
            for _, match in pairs
            # Compiled and transformed code is examined in any case.
            if match.heat is Level.COLD and match.traits.isdisjoint(OWN_TRAITS)
        )

    def rule(self, code: str) -> Rule | None:
        """Return the rule with this code, or None."""
        return next((rule for rule in self.rules if rule.code == code), None)


@cache
def load_catalogue(extra_dirs: tuple[Path, ...] = ()) -> Catalogue:
    """Read our own pages and those of the repository's folders. Raises `CatalogueError`.

    Only the head of our own pages is checked, because the tests check the rest. A repository's
    pages are checked whole, so that a mistake is reported when the linter starts, not when a user
    asks for help.
    """
    rules = [read_rule(text, own=True) for text in _texts(pages_folder())]
    folders = {folder.resolve(): folder for folder in reversed(extra_dirs)}  # one given twice
    rules += [rule for folder in folders.values() for rule in _repository_rules(folder)]
    rules.sort(key=lambda rule: rule.code)
    _check_unique(rules)
    return index(rules)


@cache
def told_rules(extra_dirs: tuple[Path, ...], *, preview: bool) -> Catalogue:
    """Return the rules that are told: the stable ones, and with ``preview`` those in preview.

    The same holds for the matches of each rule. Raises `CatalogueError`.
    """
    told = {STABLE, PREVIEW} if preview else {STABLE}
    rules = (rule for rule in load_catalogue(extra_dirs).rules if rule.status in told)
    return index(rules if preview else map(_without_preview, rules))


def _without_preview(rule: Rule) -> Rule:
    if not any(match.in_preview for match in rule.matches):
        return rule
    return replace(rule, matches=tuple(one for one in rule.matches if not one.in_preview))


def _repository_rules(folder: Path) -> list[Rule]:
    from flake8_torchperf.findings.documentation import parse_documentation
    from flake8_torchperf.findings.vocabulary import check_words

    rules = []
    for text in _texts(folder, pageless=os.path.lexists(folder / CONVENTIONS)):
        rule = read_rule(text, own=False)
        check_words(text, rule)
        parse_documentation(text, rule)
        rules.append(rule)
    return rules


def index(rules: Iterable[Rule]) -> Catalogue:
    """Arrange rules for matching: per kind of site, the highest priority first."""
    by_code = tuple(rules)
    by_kind: dict[SiteKind, list[tuple[Rule, Match]]] = {}
    for rule in sorted(by_code, key=lambda rule: (-rule.priority, rule.code)):
        for match in rule.matches:
            by_kind.setdefault(match.kind, []).append((rule, match))
    calls = (match for _, match in by_kind.get(SiteKind.CALL, ()))
    return Catalogue(
        rules=by_code,
        by_kind={kind: tuple(pairs) for kind, pairs in by_kind.items()},
        called_functions=frozenset(name for match in calls for name in match.operations),
        hot=tuple(dict.fromkeys(glob for rule in by_code for glob in rule.hot)),
    )


def pages_folder() -> Path:
    """Return the folder of our pages: in the installed package, or next to it in a checkout.

    Another distribution may install a package named ``rules`` in site-packages. So the folder next
    to our package counts only if our own setup.cfg is next to it too.
    """
    package = Path(__file__).resolve().parents[1]
    if (package / "rules").is_dir():
        return package / "rules"
    checkout = package.parent
    try:
        ours = re.search(_OURS, (checkout / "setup.cfg").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        ours = None
    if ours and (checkout / "rules").is_dir():
        return checkout / "rules"
    raise CatalogueError(f"{package}: the rule pages are missing; install flake8-torchperf again")


def _texts(folder: Path, *, pageless: bool = False) -> list[PageText]:
    """Return the pages of a folder, which may be empty only if ``pageless``."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        problem = f"{folder}: {error.strerror}; name a folder of rule pages"
        raise CatalogueError(problem) from None
    pages = [name for name in names if name.endswith(".md") and name.lower() != "readme.md"]
    if not pages and not pageless:
        problem = "no rule pages; put pages named TPF7xx-name.md or a conventions.toml there"
        raise CatalogueError(f"{folder}: {problem}")
    paths = [folder / name for name in pages]
    return [PageText(path, read_text(path)) for path in paths]


def _check_unique(rules: list[Rule]) -> None:
    """Raise PageError for the second of two pages with the same code or name."""
    for attribute in ("code", "name"):
        seen: dict[str, Rule] = {}
        for rule in rules:
            value = rule.code if attribute == "code" else rule.name
            first = seen.setdefault(value, rule)
            if first is not rule:
                line = PageText(rule.path, read_text(rule.path)).line_of(attribute)
                problem = f"{attribute} {value!r} is taken by {first.path.name}; choose another"
                raise PageError(rule.path, line, problem)
