"""Finds the lines of a file that may spend freely: those with the comment that flake8 skips.

Reads `# noqa` as flake8 does (flake8.defaults, flake8.style_guide): a comment anywhere on a
statement's lines covers all of them.
"""

from __future__ import annotations

import functools
import io
import linecache
import re
import tokenize

_NOQA = re.compile(
    r"#\s*noqa(?::[\s]?(?P<codes>[A-Z][0-9]*(?:[,\s]+[A-Z][0-9]*|[A-Z0-9,\s])*))?",
    re.IGNORECASE,
)
_ENDS = frozenset({tokenize.NEWLINE, tokenize.ENDMARKER})


@functools.lru_cache(maxsize=256)
def allowed_lines(path: str) -> frozenset[int]:
    """Return the lines of a Python file whose statement carries `# noqa` or `# noqa: TPF...`."""
    source = "".join(linecache.getlines(path))
    if "noqa" not in source.lower():
        return frozenset()
    allowed: set[int] = set()
    first: int | None = None
    spends = False
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in _ENDS:
                if spends and first is not None:
                    allowed.update(range(first, token.end[0] + 1))
                first, spends = None, False
            elif token.type == tokenize.COMMENT:
                spends = spends or _covers(token.string)
            elif first is None and token.string.strip():
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        # A file that ran but no longer parses has changed since: use the tokens read so far.
        return frozenset(allowed)
    return frozenset(allowed)


def _covers(comment: str) -> bool:
    found = _NOQA.search(comment)
    if found is None:
        return False
    codes = found["codes"]
    if codes is None:
        return True
    return any(code.upper().startswith(("TPF", "ALL")) for code in re.split(r"[,\s]+", codes))
