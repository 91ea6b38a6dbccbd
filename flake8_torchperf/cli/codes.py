"""The codes that a command line and flake8's configuration name: each must be one of ours.

flake8's files may contain codes of other plugins: `check` and `fix` share them with flake8.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flake8.utils import parse_comma_separated_list

from flake8_torchperf.cli.check_files import UNREADABLE
from flake8_torchperf.findings.chosen import GROUPS
from flake8_torchperf.reserved import RESERVED

if TYPE_CHECKING:
    import argparse
    import configparser
    from collections.abc import Iterable, Iterator, Mapping, Sequence

FAMILY = "TPF"
PER_FILE = "per-file-ignores"
CODE_OPTIONS = ("select", "ignore", "extend-select", "extend-ignore", PER_FILE)
# Letters that are taken for digits.
_DIGITS = str.maketrans("LIOSBZ", "110582")
_PAGE = re.compile(r"(TPF\d{3})-(.+)\.md")
# The words of a value as "a.py, b.py: TPF101": names, colons and codes.
_WORDS = re.compile(r"[^\s,:]+|:")
# A code whose similarity (difflib's ratio) is below this is taken for another plugin's.
_ALIKE = 0.65
_LIKE_A_CODE = re.compile(r"[A-Za-z]+[0-9]+[A-Za-z0-9]*|[A-Z]+")


class CodeError(ValueError):
    """A code that no rule has. The text is one line: which, where, and the nearest code."""


def with_groups(argv: Sequence[str]) -> list[str]:
    """Return a command line on which groups of rules are written as the beginnings of their codes.

    flake8 takes nothing but codes: ``--select reads,TPF5`` becomes ``--select TPF1,TPF5``.
    """
    done: list[str] = []
    listing = False
    for word in argv:
        option, equals, value = word.partition("=")
        if listing:
            word = _in_codes(word)
        elif option in _LISTING and equals:
            word = f"{option}={_in_codes(value)}"
        listing = not listing and option in _LISTING and not equals
        done.append(word)
    return done


_LISTING = frozenset(f"--{name}" for name in CODE_OPTIONS if name != PER_FILE)


def _in_codes(value: str) -> str:
    return ",".join(GROUPS.get(word.strip(), word) for word in value.split(","))


def check_given(namespace: argparse.Namespace, rules: Sequence[Path]) -> None:
    """Check every code that the command line alone names. Raises `CodeError`."""
    _check(_listed("--{}", vars(namespace)), rules)


def check_configured(
    cfg: configparser.RawConfigParser, options: argparse.Namespace | None, rules: Sequence[Path]
) -> None:
    """Check the codes in flake8's files, or from elsewhere, that begin like ours.

    Raises `CodeError`. ``options`` are the parsed options, None if flake8 refused to parse them.
    """
    found = dict(cfg["flake8"]) if "flake8" in cfg else {}
    found = {name.replace("-", "_"): value for name, value in found.items()}
    named = [*_listed("flake8's configuration: {}", found)]
    if options is not None:
        named += _listed("{}", vars(options))
    _check(((where, word) for where, word in named if word.upper().startswith(FAMILY)), rules)


def _listed(where: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the codes that options list, each with the name of its option."""
    for name in CODE_OPTIONS:
        value = values.get(name.replace("-", "_"))
        if not value:
            continue
        if name == PER_FILE:
            words = _codes_of_files(value if isinstance(value, str) else "\n".join(value))
        elif isinstance(value, str):
            words = parse_comma_separated_list(value)
        else:
            words = value
        for word in words:
            yield where.format(name), word


def _codes_of_files(value: str) -> list[str]:
    """Return the codes of a value as "a.py, b.py: TPF101 c.py: TPF2"."""
    words = _WORDS.findall(value)
    first = words.index(":") if ":" in words else len(words)
    return [
        word
        for at, word in enumerate(words)
        if at > first and _LIKE_A_CODE.fullmatch(word) and words[at + 1 : at + 2] != [":"]
    ]


def _check(named: Iterable[tuple[str, str]], rules: Sequence[Path]) -> None:
    known: dict[str, str] = {}
    for where, word in named:
        if not word or word == FAMILY:
            continue
        known = known or _known(rules)
        if not any(code.startswith(word) for code in known):
            raise CodeError(f"{where}: no rule has the code {word}{_nearest(word, known)}")


def nearest_code(word: str, rules: Sequence[Path]) -> str:
    """Return the end of a message on a word that is no code: the nearest code."""
    return _nearest(word, _known(rules))


def _known(rules: Sequence[Path]) -> dict[str, str]:
    """Return the names of all rules by code; "" for codes that no page describes."""
    return {**dict.fromkeys((*RESERVED, *UNREADABLE), ""), **_own(), **_added(rules)}


def _own() -> dict[str, str]:
    """Return our rules' names by code, from the pages' file names: reading the pages is slower."""
    package = Path(__file__).resolve().parents[1]
    folder = next(f for f in (package / "rules", package.parent / "rules") if f.is_dir())
    pages = filter(None, map(_PAGE.fullmatch, os.listdir(folder)))
    return {page[1]: page[2] for page in pages}


def _added(rules: Sequence[Path]) -> dict[str, str]:
    """Return the names of the rules in folders of a user's own, by code."""
    if not rules:
        return {}
    from flake8_torchperf.findings.catalogue import load_catalogue

    return {rule.code: rule.name for rule in load_catalogue(tuple(rules)).rules}


def _nearest(word: str, known: Mapping[str, str]) -> str:
    """Return the code that was probably meant."""
    from difflib import SequenceMatcher  # only where there is a mistake

    by_name = {name: code for code, name in known.items() if name}
    if word.lower() in by_name:
        return f"; did you mean {by_name[word.lower()]}?"
    bare = word.upper()
    if bare.startswith(FAMILY):
        bare = FAMILY + bare.removeprefix(FAMILY).translate(_DIGITS)
    if any(code.startswith(bare) for code in known):
        return f"; did you mean {bare}?"

    def likeness(code: str) -> tuple[int, float]:
        same = len(os.path.commonprefix([bare, code]))  # noqa: RUF071 - characters
        return same, SequenceMatcher(None, bare, code).ratio()

    code = max(sorted(known), key=likeness)
    if bare[:1] == FAMILY[0] and likeness(code)[1] >= _ALIKE:
        return f"; did you mean {code}?"
    return "; torchperf rules lists them"
