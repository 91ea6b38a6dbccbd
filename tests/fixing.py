"""Fix a program written in a test, as ``torchperf fix`` does, and hold the text against another."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping

import pytest
from linting import ALL, PRELUDE

from flake8_torchperf.findings.finding import Finding
from flake8_torchperf.fixes.engine.lines.width import wrapped
from flake8_torchperf.fixes.engine.rounds import Choice, FixedText, fixed
from flake8_torchperf.linter import lint
from flake8_torchperf.options import Options

SAFE = Choice()
UNSAFE = Choice(unsafe=True)
# With --diff, which shows suggested fixes too.
SHOWN = Choice(unsafe=True, suggested=None)
_MARKS = re.compile(r"  # TPF\d{3}(, TPF\d{3})*$", re.MULTILINE)


def rows(table: Mapping[str, object]) -> pytest.MarkDecorator:
    """Parametrize a test with the rows of a table, each under its name."""
    return pytest.mark.parametrize("row", list(table.values()), ids=list(table))


def outcome(
    source: str, choice: Choice = SAFE, options: Options = ALL, code: str = ""
) -> FixedText:
    """What becomes of a text; ``code`` limits the fixes to those of one rule."""

    def find(text: str) -> list[Finding]:
        found = lint(text, "model.py", options, choice.safeties)
        return [f for f in found if not code or f.code == code]

    return fixed(source, find, choice)


def unmarked(source: str) -> str:
    """A text without the comments that say which rule reports a line."""
    return _MARKS.sub("", source)


def check_fix(before: str, after: str, choice: Choice = SAFE, *, code: str = "") -> None:
    """Assert that a body of code, behind `PRELUDE`, becomes another one; "" if it stays the same.

    A second run must change nothing. Lines of ``before`` may end with a ``# TPF101``.
    """
    given = PRELUDE + unmarked(textwrap.dedent(before))
    wanted = PRELUDE + textwrap.dedent(after) if after else given
    wanted, _ = wrapped(given, wanted)  # tests write on one line what is too long for it
    done = outcome(given, choice, code=code)
    assert done.text == wanted
    ast.parse(done.text)
    assert not outcome(done.text, choice, code=code).changes
