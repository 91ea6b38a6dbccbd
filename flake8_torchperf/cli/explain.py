"""``torchperf explain`` and ``torchperf rules``: rule pages in, text or JSON out."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from flake8_torchperf.cli.parser import add_parser, fail
from flake8_torchperf.cli.settings.command_line import add_settings, settings
from flake8_torchperf.findings.catalogue import Catalogue, Rule, load_catalogue
from flake8_torchperf.findings.chosen import ALL, beginning
from flake8_torchperf.findings.documentation import Documentation, read_documentation
from flake8_torchperf.knowledge.conventions import Convention, load_conventions
from flake8_torchperf.options import near
from flake8_torchperf.reserved import INTERNAL_ERROR, STRAY_CONTRACT

if TYPE_CHECKING:
    import argparse

# Codes that are not rules and have no pages.
CODES = {
    INTERNAL_ERROR: {
        "code": INTERNAL_ERROR,
        "name": "file-not-analysed",
        "text": f"{INTERNAL_ERROR} is no rule: it says that a file could not be analysed, and its "
        "message why. The file is otherwise left alone.",
    },
    STRAY_CONTRACT: {
        "code": STRAY_CONTRACT,
        "name": "stray-contract",
        "text": f"{STRAY_CONTRACT} is no rule: it says that a comment begins with `# torchperf:` "
        "and states no contract, because its word is misspelt or it stands at no function. Write "
        "`# torchperf: sync-free` on a line of the function's signature, on a decorator, or on "
        "the line above.",
    },
}

JUDGED = Path(__file__).parents[1] / "findings" / "judged.json"

_REPORTED = {
    "loop": "inside loops",
    "hot": "in hot code",
    "all": "only with `--torchperf-scope=all`",
}


_CONVENTION = """\
# {row.id} (convention)

- applies to: {row.applies_to}
- pattern: `{row.pattern}`, such as `{row.example}`
- effect: {row.effect}

{row.reason}

## Evidence

{evidence}"""


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``explain`` and ``rules``."""
    parser = add_parser(
        commands,
        "explain",
        "show the page of a rule: what it finds, why that is slow, what to write instead",
        "torchperf explain TPF203",
    )
    parser.add_argument(
        "code",
        nargs="+",
        help="a code (TPF203), the beginning of codes (TPF2), a group (reads), a rule's name or a "
        "convention's id",
    )
    _add_common(parser)
    parser.set_defaults(
        run=lambda a: explain(a.code, format=a.format, rules=settings(a, "explain").rules)
    )

    parser = add_parser(
        commands, "rules", "list every rule", "torchperf rules --format json | jq '.[].code'"
    )
    _add_common(parser)
    parser.set_defaults(run=lambda a: list_rules(format=a.format, rules=settings(a, "rules").rules))


def explain(
    codes: Sequence[str],
    *,
    format: str = "text",
    rules: Sequence[Path] = (),
    out: TextIO | None = None,
) -> int:
    """Show the pages of ``codes`` and return the exit status.

    ``rules`` are folders with a repository's own pages and conventions. Raises `CatalogueError` or
    `ConventionError` for a broken one.
    """
    out = out or sys.stdout
    catalogue = load_catalogue(tuple(rules))
    conventions = {row.id: row for row in load_conventions(tuple(rules)).rows}
    pages: list[Documentation | Convention | dict[str, str]] = []
    for code in codes:
        family = _family(catalogue, code)
        if family:
            pages.append(_of_family(code, family))
            continue
        rule = _find(catalogue, code)
        if rule is None and code.lower() in conventions:
            pages.append(conventions[code.lower()])
            continue
        if rule is None and code.upper() not in CODES:
            known = [rule.code for rule in catalogue.rules]
            known += [*(rule.name for rule in catalogue.rules), *conventions] if "-" in code else []
            return fail(f"there is no rule {code or repr(code)}{_suggestion(code, known)}")
        pages.append(read_documentation(rule) if rule else CODES[code.upper()])
    if format == "json":
        data = [page if isinstance(page, dict) else _as_data(page) for page in pages]
        print(json.dumps(data, indent=2), file=out)
        return 0
    for page in pages:
        address = f"\n\nPage: {page.rule.address}" if isinstance(page, Documentation) else ""
        _show(page["text"] if isinstance(page, dict) else markdown(page) + address, out)
    return 0


def list_rules(*, format: str = "text", rules: Sequence[Path] = ()) -> int:
    """Show one line per rule and return the exit status. Raises `CatalogueError`."""
    table = [
        {
            "code": rule.code,
            "name": rule.name,
            "family": rule.family,
            "scope": rule.scope,
            "status": rule.status,
            "since": rule.since,
        }
        for rule in load_catalogue(tuple(rules)).rules
    ]
    if format == "json":
        print(json.dumps(table, indent=2))
        return 0
    header = {key: key for key in ("code", "name", "family", "scope", "status", "since")}
    widths = {key: max(len(row[key]) for row in [header, *table]) for key in header}
    for row in [header, *table]:
        print("  ".join(row[key].ljust(widths[key]) for key in header).rstrip())
    return 0


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    add_settings(parser, only=("rules",))


def _family(catalogue: Catalogue, word: str) -> list[Rule]:
    """Return the rules of a group ("reads"), or of a code cut short ("TPF2"); else nothing."""
    code = beginning(word)
    if len(code) >= WHOLE or not code.startswith(ALL):
        return []
    return [rule for rule in catalogue.rules if rule.code.startswith(code)]


def _of_family(word: str, rules: list[Rule]) -> dict[str, str]:
    """Return a page that lists rules, with the first paragraph of each one's page."""
    parts = [f"# {beginning(word)}: {', '.join(dict.fromkeys(rule.family for rule in rules))}"]
    for rule in rules:
        about = read_documentation(rule).sections["What it does"].split("\n\n")[0]
        parts.append(f"## {rule.name} ({rule.code})\n\n{about}")
    return {"code": beginning(word), "name": rules[0].family, "text": "\n\n".join(parts)}


# The length of a whole code.
WHOLE = len("TPF101")


def _find(catalogue: Catalogue, code: str) -> Rule | None:
    by_name = (rule for rule in catalogue.rules if rule.name == code.lower())
    return catalogue.rule(code.upper()) or next(by_name, None)


def _suggestion(code: str, known: list[str]) -> str:
    """Return the nearest code or name; where nothing is near, the command that lists them all."""
    return near(code if "-" in code else code.upper(), known) or "; torchperf rules lists them"


def _show(text: str, out: TextIO) -> None:
    if out.isatty() and find_spec("rich"):
        from rich.console import Console
        from rich.markdown import Markdown

        Console(file=out).print(Markdown(text))
    else:
        print(text, file=out)


def markdown(page: Documentation | Convention) -> str:
    """Return a page as Markdown, for the terminal and for the documentation's site."""
    if isinstance(page, Convention):
        return _CONVENTION.format(row=page, evidence="\n".join(f"- {one}" for one in page.evidence))
    rule = page.rule
    facts = [f"- family: {rule.family}", f"- reported: {_REPORTED[rule.scope]}"]
    if page.evidence is not None:
        needs = f", on a {page.evidence.needs.upper()} device" if page.evidence.needs else ""
        counted = page.evidence.counter.replace("_", " ")
        per = "per call" if page.evidence.law == "call" else "growing with the input"
        facts.append(f"- confirmed by: {counted}, {per}{needs}")
    if rule.own:
        facts.append(f"- judged: {_in_words(judged().get(rule.code))}")
    for fix in page.fixes:
        facts.append(f"- fix: {fix.name} ({fix.safety}){f'; {fix.changes}' if fix.changes else ''}")
    parts = [f"# {rule.name} ({rule.code})", "\n".join(facts)]
    parts += [f"## {title}\n\n{body}" for title, body in page.sections.items()]
    return "\n\n".join(parts)


@cache
def judged() -> Mapping[str, Mapping[str, int]]:
    """Return the verdicts on the findings of each rule in samples of unknown applications.

    A is worth telling, B true but of little worth, C wrong (docs/rule-life.md); "samples" is the
    number of samples that hold the rule. `tools/update_readme.py` writes the file.
    """
    counts: dict[str, dict[str, int]] = json.loads(JUDGED.read_text(encoding="utf-8"))
    return counts


def _in_words(verdicts: Mapping[str, int] | None) -> str:
    if verdicts is None:
        return "no finding in the samples of applications"
    total = sum(verdicts[one] for one in "ABC")
    findings = "1 finding" if total == 1 else f"{total} findings"
    samples = "1 sample" if verdicts["samples"] == 1 else f"{verdicts['samples']} samples"
    worth = f"{verdicts['A']} worth telling (A), {verdicts['B']} true but of little worth (B)"
    return f"{findings} in {samples} of applications: {worth}, {verdicts['C']} wrong (C)"


def _as_data(page: Documentation | Convention) -> dict[str, Any]:
    if isinstance(page, Convention):
        return asdict(page)
    rule = page.rule
    return {
        "code": rule.code,
        "name": rule.name,
        "family": rule.family,
        "scope": rule.scope,
        "message": rule.message,
        "instead": dict(rule.instead),
        "evidence": asdict(page.evidence) if page.evidence else None,
        "fixes": [{**asdict(fix), "allows": sorted(fix.allows)} for fix in page.fixes],
        "sections": dict(page.sections),
        "path": str(rule.path),
        "url": rule.address,
        "judged": judged().get(rule.code) if rule.own else None,
    }
