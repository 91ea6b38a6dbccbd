"""A notebook's code as a source that fixes can change: cells in, the same cells with new lines out.

Only the sources of changed cells differ afterwards; outputs, metadata and layout are kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import product
from typing import Any

from flake8_torchperf.cli.notebooks.source import Notebook, is_python, joined
from flake8_torchperf.fixes.engine.source_files import FileText, NotWrittenError

# The layouts that programs write: Jupyter indents by one space and escapes nothing.
_INDENTS = (1, 2, 4, None)


@dataclass(frozen=True, slots=True)
class NotebookSource(FileText):
    """The code cells of a notebook as one text. ``cells`` are their own texts, magics included."""

    book: Notebook | None = None
    cells: tuple[str, ...] = ()

    def encoded(self, text: str) -> bytes:
        """Return the notebook with a changed text. Raises NotWrittenError if a cell can't take it.

        A change must lie in one cell, and must leave lines alone that only IPython reads.
        """
        if text == self.text:
            return self.data
        changed = self._changed(text)
        data = json.loads(self.data)
        code = [cell for cell in data["cells"] if cell["cell_type"] == "code"]
        for cell, new, old in zip(code, changed, self.cells, strict=True):
            if new != old:
                lines = new.splitlines(keepends=True)
                cell["source"] = lines if isinstance(cell["source"], list) else new
        return _as_laid_out(data, self.data)

    def _changed(self, text: str) -> list[str]:
        """Return the texts of all cells after a change."""
        assert self.book is not None
        raw = [cell.splitlines(keepends=True) for cell in self.cells]
        old, new = list(self.book.lines), text.splitlines(keepends=True)
        parts = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        for tag, first, end, start, stop in reversed(parts):
            if tag == "equal":
                continue
            cell, line = self.book.place(first + 1)
            last, _ = self.book.place(max(first, end - 1) + 1)
            if cell != last:
                raise NotWrittenError("is not changed: a fix would change two cells at once")
            lines = raw[cell - 1]
            begin, count = line - 1, end - first
            given = [_ended(one) for one in lines[begin : begin + count]]
            if given != old[first:end]:
                raise NotWrittenError("is not changed: a fix would change a line of IPython's own")
            lines[begin : begin + count] = new[start:stop]
        return [
            _as_before("".join(map(_ended, lines)), before)
            for lines, before in zip(raw, self.cells, strict=True)
        ]


def notebook_source(path: str, data: bytes) -> NotebookSource:
    """Return the code in a notebook's bytes. Raises NotWrittenError if they are no notebook."""
    try:
        content = json.loads(data)
        cells = tuple(_text(one["source"]) for one in content["cells"] if _is_code(one))
        python = is_python(content.get("metadata", {}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise NotWrittenError("is no notebook of format 4") from None
    book = joined(cells if python else ())
    text = "".join(book.lines)
    return NotebookSource(path, data, text, "utf-8", b"", book, cells if python else ())


def _is_code(cell: Any) -> bool:
    return bool(cell["cell_type"] == "code")


def _text(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n"


def _as_before(text: str, before: str) -> str:
    """Return a cell's text, which ends with a line break only if it did before."""
    return text if before.endswith("\n") else text.removesuffix("\n")


def _as_laid_out(content: Any, before: bytes) -> bytes:
    """Return the notebook in the layout that it had. Raises NotWrittenError if none fits."""
    known = json.loads(before)
    for indent, plain, end in product(_INDENTS, (True, False), ("\n", "")):

        def written(value: Any, indent: int | None = indent, plain: bool = plain) -> str:
            return json.dumps(value, indent=indent, ensure_ascii=not plain)

        if f"{written(known)}{end}".encode() == before:
            return f"{written(content)}{end}".encode()
    raise NotWrittenError("is laid out as no program does; save it once in Jupyter")
