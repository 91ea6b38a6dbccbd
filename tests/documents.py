"""The documents that users read, as tests hold them against the code.

The pages for maintainers (architecture) and the generated page (conventions) hold no examples to run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_FOR_USERS = frozenset({"architecture.md", "conventions.md"})
PAGES = [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in NOT_FOR_USERS]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# README.md and every page of docs/ for users, one after the other.
TEXT = "\n".join([README, *(page.read_text(encoding="utf-8") for page in PAGES)])

# A page of a rule as a team writes it for its own code.
HOUSE_RULE = """\
+++
code = "TPF701"
name = "house-rule"
family = "house rules"
scope = "hot"
priority = 50
message = "{expression} is slow {where}: {instead}"

[instead]
default = "use the cache"

[[match]]
functions = ["mylib.fetch"]
+++
# house-rule (TPF701)

## What it does

Reports fetches.

## Bad

See the wiki.

## Good

See the wiki.
"""

_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def with_links() -> list[Path]:
    """Every document whose links lead to files and headings of this repository."""
    folders = ("", "docs", "rules", "benchmarks", "benchmarks/judged", "benchmarks/results")
    return [path for folder in folders for path in sorted((ROOT / folder).glob("*.md"))]


def broken_links(document: Path) -> Iterator[str]:
    """The links of a document to a file that is not there, or to a heading that is not in it."""
    for name, heading in _LINK.findall(_CODE.sub("", document.read_text(encoding="utf-8"))):
        target = (document.parent / name).resolve() if name else document
        if not target.exists() or (heading and heading not in _anchors(target)):
            yield f"{name}#{heading}" if heading else name


def _anchors(document: Path) -> set[str]:
    """The anchors that GitHub makes of a document's headings."""
    text = _CODE.sub("", document.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
