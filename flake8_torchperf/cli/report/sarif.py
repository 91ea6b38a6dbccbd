"""``--format sarif``: SARIF 2.1.0, which GitHub code scanning and editors read.

The format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from flake8_torchperf import __version__
from flake8_torchperf.cli.report.reported import LEAST, MIDDLE, WORST, Gathered, rules
from flake8_torchperf.cli.report.safe_fixes import replacements
from flake8_torchperf.findings.documentation import read_documentation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flake8_torchperf.cli.report.reported import Reported
    from flake8_torchperf.cli.report.safe_fixes import Replacement
    from flake8_torchperf.findings.rule import Rule

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {WORST: "error", MIDDLE: "warning", LEAST: "note"}


class Report(Gathered):
    """One run, with the rules that have findings, and the replacements of safe fixes."""

    def text(self, found: Sequence[Reported]) -> str:
        """Return the document."""
        known = rules()
        codes = sorted({one.code for one in found})
        fixes = replacements(found)
        driver = {
            "name": "flake8-torchperf",
            "version": __version__,
            "rules": [_rule(code, known.get(code)) for code in codes],
        }
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "originalUriBaseIds": {
                "SRCROOT": {"description": {"text": "The folder in which the command ran."}}
            },
            "results": [_result(one, codes, fixes) for one in found],
        }
        return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(code: str, rule: Rule | None) -> dict[str, Any]:
    if rule is None:
        return {"id": code}
    page = read_documentation(rule)
    what = page.sections["What it does"]
    parts = [f"## {title}\n\n{body}" for title, body in page.sections.items()]
    # The address of a repository's own page is that of a file on this machine.
    address = {"helpUri": rule.address} if rule.own else {}
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": _first_sentence(what)},
        "fullDescription": {"text": _one_line(what)},
        **address,
        "help": {"text": "\n\n".join(parts), "markdown": "\n\n".join(parts)},
        "defaultConfiguration": {"level": _LEVELS[MIDDLE]},
        "properties": {"tags": ["performance", rule.family]},
    }


def _result(
    one: Reported, codes: Sequence[str], fixes: Mapping[Reported, Replacement]
) -> dict[str, Any]:
    region = {
        "startLine": one.line,
        "startColumn": one.column,
        "endLine": one.end_line,
        "endColumn": one.end_column,
    }
    location = {
        "physicalLocation": {"artifactLocation": _file(one.path), "region": region},
        "logicalLocations": [{"fullyQualifiedName": one.told.function, "kind": "function"}],
    }
    result: dict[str, Any] = {
        "ruleId": one.code,
        "ruleIndex": codes.index(one.code),
        "level": _LEVELS[one.level],
        "rank": round(one.told.worth * 100, 1),
        "message": {"text": one.message},
        "locations": [location],
        "partialFingerprints": {"torchperf/v1": one.fingerprint},
    }
    if one.told.cost:
        result["properties"] = {"cost": one.told.cost, "residence": one.told.residence}
    if one in fixes:
        result["fixes"] = [_fix(one.path, fixes[one])]
    return result


def _file(path: str) -> dict[str, str]:
    if path.startswith("/") or path[1:2] == ":":
        return {"uri": f"file:///{quote(path.lstrip('/'))}"}
    return {"uri": quote(path), "uriBaseId": "SRCROOT"}


def _fix(path: str, new: Replacement) -> dict[str, Any]:
    deleted = {
        "startLine": new.line,
        "startColumn": 1,
        "endLine": new.end_line,
        "endColumn": 1,
    }
    replacement = {"deletedRegion": deleted, "insertedContent": {"text": new.text}}
    change = {"artifactLocation": _file(path), "replacements": [replacement]}
    return {"description": {"text": f"safe fix: {new.name}"}, "artifactChanges": [change]}


def _first_sentence(text: str) -> str:
    sentence, stop, _ = _one_line(text).partition(". ")
    return f"{sentence}." if stop else sentence


def _one_line(text: str) -> str:
    return " ".join(text.split())
