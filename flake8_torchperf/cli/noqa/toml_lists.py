"""Add an item to a list of a TOML file: a text in, the changed text out.

All other characters are kept, so the caller parses the result before it is written.
"""

from __future__ import annotations

import re

_NEXT_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def header_of(table: str) -> re.Pattern[str]:
    """Return the pattern of the line that begins a table, such as ``tool.torchperf``."""
    name = r"[ \t]*\.[ \t]*".join(map(re.escape, table.split(".")))
    return re.compile(rf"^[ \t]*\[[ \t]*{name}[ \t]*\][^\n]*\n?", re.MULTILINE)


def with_item(text: str, table: str, key: str, item: str) -> str:
    """Return the text with an item at the front of a list; adds the list and table if missing.

    ``item`` is written as in TOML. The table "" is the part before all tables.
    """
    found = header_of(table).search(text) if table else re.compile("").match(text)
    if found is None:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}[{table}]\n{key} = [{item}]\n"
    following = _NEXT_TABLE.search(text, found.end())
    end = following.start() if following else len(text)
    listed = re.compile(rf"^[ \t]*{re.escape(key)}[ \t]*=[ \t]*\[\s*", re.MULTILINE).search(
        text, found.end(), end
    )
    if listed is None:
        gap = "" if not found.group() or found.group().endswith("\n") else "\n"
        return f"{text[: found.end()]}{gap}{key} = [{item}]\n{text[found.end() :]}"
    comma = "" if text[listed.end() :].startswith("]") else ", "
    return f"{text[: listed.end()]}{item}{comma}{text[listed.end() :]}"
