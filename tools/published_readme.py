"""README.md as package indexes show it: links lead to the documentation site.

An index has none of the files of the repository that the README links to.
"""

from __future__ import annotations

import re

# As the package's own messages have it; a build imports no part of the package.
SITE = "https://flake8-torchperf.readthedocs.io/en/latest/"
_LINK = re.compile(r"(\[[^\]]*\])\(([^)\s]+)\)")
_STATIC = "docs/_static/"


def published(text: str) -> str:
    """Return the text with its links to files as links to the pages of the site."""
    return _LINK.sub(lambda link: _led_to_the_site(link[1], link[2]), text)


def _led_to_the_site(words: str, target: str) -> str:
    path, mark, heading = target.partition("#")
    if "://" in target:
        return f"{words}({target})"
    if path.startswith(_STATIC):
        return f"{words}({SITE}_static/{path.removeprefix(_STATIC)})"
    if path and not path.endswith(".md"):
        return words[1:-1]  # a file that is no page of the site
    page = path.removesuffix(".md") or "README"
    return f"{words}({SITE}{page}.html{mark}{heading})"
