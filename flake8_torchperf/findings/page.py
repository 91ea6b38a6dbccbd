"""Reads one rule page, a Markdown file with TOML front matter, into a `Rule`.

Linting needs only the head of the front matter (everything before ``[evidence]``), so only that is
parsed here; `documentation` reads the rest.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Formatter
from typing import Any

from flake8_torchperf.findings.rule import (
    PREVIEW,
    RETIRED,
    SAFETIES,
    SEVERITY_WORDS,
    STABLE,
    STATUSES,
    ChainStep,
    Match,
    Rule,
)
from flake8_torchperf.judgement.heat import Level
from flake8_torchperf.reserved import RESERVED
from flake8_torchperf.special_files import refuse_special
from flake8_torchperf.values.site import SiteKind

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FENCE = "+++"
PLACEHOLDERS = (
    "expression",
    "operand",
    "operation",
    "where",
    "loop",
    "function",
    "instead",
    "compiled",
)
HEAD_KEYS = (
    "code",
    "name",
    "family",
    "scope",
    "priority",
    "message",
    "instead",
    "match",
    "hot",
    "fixes",
    "since",
    "status",
    "severity",
)
REQUIRED_KEYS = ("code", "name", "family", "scope", "priority", "message", "instead")
MATCH_KEYS = (
    "kind",
    "operations",
    "functions",
    "chain",
    "heat",
    "traits",
    "not_traits",
    "dtype",
    "not_device",
    "scope",
    "status",
)
LEVEL_NAMES = {"cold": Level.COLD, "hot": Level.HOT, "step": Level.STEP, "loop": Level.LOOP}
SITE_KINDS = tuple(kind.value for kind in SiteKind)
DTYPE_CLASSES = ("bool", "int", "float", "complex")
DEVICE_SIDES = ("host", "device")

# No pattern is compiled at import: linting needs them only to report a mistake in a page.
_TOML_PLACE = r"\s*\(at (?:line (\d+), column \d+|end of document)\)$"
_TAILS = ("[evidence]", "[example]")
_NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_GLOB = frozenset("*?[")


class CatalogueError(Exception):
    """The rules cannot be loaded; ``str()`` is one line: where, what is wrong, what to do."""


class PageError(CatalogueError):
    """A mistake in a rule page; ``str()`` is one line: file, line, what is wrong, what to do."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        self.path, self.line, self.problem = path, line, problem
        super().__init__(f"{path}:{line}: {' '.join(problem.split())}")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of a message on an unknown word: the known word closest to it, or them all."""
    import difflib  # needed only to report a mistake

    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(names)}"


class PageText:
    """The text of one page, split once: head and tail of the front matter, and the body.

    ``tail_line`` and ``body_line`` are the 1-based lines on which those parts begin.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        if not text.startswith(FENCE + "\n"):
            raise PageError(path, 1, f"no front matter; begin the page with a line {FENCE!r}")
        end = text.find(f"\n{FENCE}\n", len(FENCE))
        if end < 0:
            problem = f"the front matter does not end; close it with a line {FENCE!r}"
            raise PageError(path, 1, problem)
        front = text[len(FENCE) + 1 : end + 1]
        cuts = [front.find(f"\n{table}\n") for table in _TAILS]
        start = min((cut + 1 for cut in cuts if cut >= 0), default=len(front))
        self.head, self.tail = front[:start], front[start:]
        self.tail_line = 2 + self.head.count("\n")
        self.body = text[end + len(FENCE) + 2 :]
        self.body_line = self.tail_line + self.tail.count("\n") + 1

    def toml(self, part: str, first_line: int) -> dict[str, Any]:
        """Parse ``part`` of the front matter, which begins on ``first_line`` of the page."""
        try:
            data: dict[str, Any] = tomllib.loads(part)
        except tomllib.TOMLDecodeError as error:
            message = str(error)
            place = re.search(_TOML_PLACE, message)
            line = int(place[1]) - 1 if place and place[1] else part.count("\n")
            reason = re.sub(_TOML_PLACE, "", message)
            problem = f"not valid TOML: {reason}; correct the front matter"
            raise PageError(self.path, first_line + line, problem) from None
        return data

    def line_of(self, key: str, table: str = "", index: int = 0) -> int:
        """Return the line that sets ``key`` in the ``index``-th ``table``; 1 if it is not found."""
        header = re.compile(r"\s*\[\[?\s*([\w.-]+)\s*\]?\]")
        setting = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=")
        current, seen, fallback = "", -1, 1
        for number, line in enumerate((self.head + self.tail).splitlines(), start=2):
            found = header.match(line)
            if found:
                current = found[1]
                seen += current == table
                if current == table and seen == index:
                    fallback = number
                if not table and current == key:
                    return number
            elif current == table and (not table or seen == index) and setting.match(line):
                return number
        return fallback

    def error(self, problem: str, key: str, table: str = "", index: int = 0) -> PageError:
        """Return a `PageError` at the line that sets ``key``."""
        return PageError(self.path, self.line_of(key, table, index), problem)


def read_text(path: Path) -> str:
    """Return the page's text; raise PageError if the file cannot be read."""
    try:
        refuse_special(path)
        with open(path, encoding="utf-8-sig") as file:  # editors on Windows add a byte order mark
            return file.read()
    except UnicodeDecodeError:
        raise PageError(path, 1, "not UTF-8 text; save the page as UTF-8") from None
    except OSError as error:
        raise PageError(path, 1, f"cannot be read: {error.strerror}") from None


def read_rule(text: PageText, own: bool) -> Rule:
    """Check the head of a page and make its `Rule`. Raises `PageError`.

    ``own`` is False for a page of the user's repository: its code must then be TPF700 or above.
    """
    data = text.toml(text.head, 2)
    check_keys(text, data, HEAD_KEYS)
    for key in REQUIRED_KEYS:
        if key not in data:
            raise PageError(text.path, 1, f"{key!r} is missing; add it to the front matter")
    rule = Rule(
        code=_code(text, own, string(text, data, "code")),
        name=string(text, data, "name"),
        family=string(text, data, "family"),
        scope=choice(text, data, "scope", ("loop", "hot", "all")),
        priority=_priority(text, data),
        message=string(text, data, "message"),
        instead=_instead(text, data["instead"]),
        matches=_matches(text, data),
        hot=strings(text, data, "hot"),
        path=text.path,
        own=own,
        fixes=_fixes(text, data),
        since=string(text, data, "since") if "since" in data else "",
        status=choice(text, data, "status", STATUSES) if "status" in data else STABLE,
        severity=choice(text, data, "severity", SEVERITY_WORDS) if "severity" in data else "",
    )
    if not _NAME_LETTERS.issuperset(rule.name) or "" in rule.name.split("-"):
        raise text.error(f"{rule.name!r} is no name; write lower-case-words-with-hyphens", "name")
    if text.path.name != f"{rule.code}-{rule.name}.md":
        raise PageError(text.path, 1, f"rename the file to {rule.code}-{rule.name}.md")
    _check_placeholders(text, rule.message, "message", "", PLACEHOLDERS)
    if rule.status == RETIRED:
        return rule
    if not rule.matches and not rule.hot:
        raise PageError(text.path, 1, "no [[match]]; add one before [evidence]")
    return rule


def check_keys(
    text: PageText, data: Mapping[str, Any], known: tuple[str, ...], table: str = "", index: int = 0
) -> None:
    """Raise PageError for an unknown key, naming the nearest known one."""
    for key in data:
        if key not in known:
            where = f" in [{table}]" if table else ""
            raise text.error(f"unknown key {key!r}{where}{nearest(key, known)}", key, table, index)


def string(
    text: PageText, data: Mapping[str, Any], key: str, table: str = "", index: int = 0
) -> str:
    """Return the text set by ``key``; raise PageError if it is anything else."""
    value = data[key]
    if not isinstance(value, str):
        raise text.error(f"{key!r} must be text in quotes", key, table, index)
    if "\n" in value and key != "setup":
        raise text.error(f"{key!r} must be on one line", key, table, index)
    return value


def strings(
    text: PageText, data: Mapping[str, Any], key: str, table: str = "", index: int = 0
) -> tuple[str, ...]:
    """Return the list of texts set by ``key``, empty if it is not set."""
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        problem = f'{key!r} must be a list of texts, such as {key} = ["a", "b"]'
        raise text.error(problem, key, table, index)
    return tuple(value)


def choice(
    text: PageText,
    data: Mapping[str, Any],
    key: str,
    known: tuple[str, ...],
    table: str = "",
    index: int = 0,
) -> str:
    """Return the text set by ``key``, which must be one of ``known``."""
    value = string(text, data, key, table, index)
    if value not in known:
        raise text.error(f"unknown {key} {value!r}{nearest(value, known)}", key, table, index)
    return value


def _code(text: PageText, own: bool, code: str) -> str:
    if not (code.startswith("TPF") and len(code) == 6 and code[3:].isdecimal() and code.isascii()):
        raise text.error(f"{code!r} is no code; write TPF and three digits", "code")
    if code in RESERVED:
        problem = f"{code} is reserved for {RESERVED[code]}; take another"
        raise text.error(problem, "code")
    if not own and code[3] not in "789":
        problem = f"{code} is kept for the plugin's own rules; take TPF700-TPF899 or TPF902-TPF999"
        raise text.error(problem, "code")
    return code


def _priority(text: PageText, data: Mapping[str, Any]) -> int:
    value = data["priority"]
    if type(value) is not int or not 0 <= value <= 100:
        raise text.error("'priority' must be a whole number from 0 to 100", "priority")
    return int(value)


def _fixes(text: PageText, data: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return safety and name of each fix that the page offers, the safest first."""
    table = data.get("fixes", {})
    if not isinstance(table, dict):
        raise text.error("'fixes' is a table; write [fixes]", "fixes")
    check_keys(text, table, SAFETIES, "fixes")
    return tuple(
        (safety, name) for safety in SAFETIES for name in strings(text, table, safety, "fixes")
    )


def _instead(text: PageText, table: Any) -> dict[str, str]:
    if not isinstance(table, dict) or "default" not in table:
        problem = "[instead] needs the key 'default': the advice for every other operation"
        raise text.error(problem, "instead")
    advice: dict[str, str] = {}
    known = tuple(name for name in PLACEHOLDERS if name != "instead")
    for operations in table:
        words = string(text, table, operations, "instead")
        _check_placeholders(text, words, operations, "instead", known)
        advice.update(dict.fromkeys(operations.split("|"), words))
    return advice


def _check_placeholders(
    text: PageText, template: str, key: str, table: str, known: tuple[str, ...]
) -> None:
    if "{" not in template and "}" not in template:
        return
    try:
        fields = list(Formatter().parse(template))
    except ValueError as error:
        raise text.error(f"{key!r}: {error}; write {{{{ for a brace", key, table) from None
    for _, name, spec, conversion in fields:
        if name is None:
            continue
        if name not in known:
            problem = f"unknown placeholder {{{name}}} in {key!r}{nearest(name, known)}"
            raise text.error(problem, key, table)
        if spec or conversion:
            problem = f"placeholder {{{name}}} in {key!r} takes no format; write it alone"
            raise text.error(problem, key, table)


def _matches(text: PageText, data: Mapping[str, Any]) -> tuple[Match, ...]:
    tables = data.get("match", [])
    if not isinstance(tables, list):
        raise text.error("write [[match]] with two brackets: a rule may have several", "match")
    return tuple(_match(text, table, index) for index, table in enumerate(tables))


def _match(text: PageText, table: Mapping[str, Any], index: int) -> Match:
    at = ("match", index)
    check_keys(text, table, MATCH_KEYS, *at)
    functions = strings(text, table, "functions", *at)
    for name in functions:
        parts = name.split(".")
        if len(parts) < 2 or not all(part.isidentifier() for part in parts):
            problem = f"{name!r} is no qualified name; write it as 'package.module.function'"
            raise text.error(problem, "functions", *at)
    operations = strings(text, table, "operations", *at)
    globs = tuple(one for one in operations if not _GLOB.isdisjoint(one))
    heat = choice(text, table, "heat", tuple(LEVEL_NAMES), *at) if "heat" in table else ""
    return Match(
        kind=_kind(text, table, index, functions),
        operations=frozenset(functions) | frozenset(operations).difference(globs),
        operation_globs=globs,
        chain=tuple(_step(one) for one in strings(text, table, "chain", *at)),
        heat=LEVEL_NAMES[heat] if heat else None,
        traits=frozenset(strings(text, table, "traits", *at)),
        not_traits=frozenset(strings(text, table, "not_traits", *at)),
        dtype=choice(text, table, "dtype", DTYPE_CLASSES, *at) if "dtype" in table else "",
        not_device=choice(text, table, "not_device", DEVICE_SIDES, *at)
        if "not_device" in table
        else "",
        only_in_all="scope" in table and choice(text, table, "scope", ("all",), *at) == "all",
        in_preview="status" in table and bool(choice(text, table, "status", (PREVIEW,), *at)),
    )


def _kind(
    text: PageText, table: Mapping[str, Any], index: int, functions: tuple[str, ...]
) -> SiteKind:
    if functions:
        if "operations" in table or table.get("kind", "Call") != SiteKind.CALL.value:
            problem = "'functions' stands for kind = \"Call\" and its operations; leave those out"
            raise text.error(problem, "functions", "match", index)
        return SiteKind.CALL
    if "kind" not in table:
        problem = "[[match]] needs a 'kind' or 'functions'"
        raise text.error(problem, "kind", "match", index)
    kind = SiteKind(choice(text, table, "kind", SITE_KINDS, "match", index))
    if kind is SiteKind.CALL:
        problem = "kind \"Call\" needs 'functions': the qualified names of what is called"
        raise text.error(problem, "kind", "match", index)
    return kind


def _step(words: str) -> ChainStep:
    optional = words.endswith("?")
    return ChainStep(frozenset(words.rstrip("?").split("|")), optional)
