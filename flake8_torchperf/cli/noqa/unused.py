"""``check --unused-noqa``: the comments that name our codes and silence none of our findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flake8_torchperf.cli.check_files import STDIN, UNREADABLE, content_of, display_name
from flake8_torchperf.cli.codes import FAMILY, nearest_code
from flake8_torchperf.cli.notebooks.notebook_names import is_notebook
from flake8_torchperf.fixes.engine.noqa import line_ends, noqa_comments
from flake8_torchperf.fixes.engine.source_files import NotWrittenError, decoded
from flake8_torchperf.history.finding_record import FindingRecord
from flake8_torchperf.plugin import TorchPerfPlugin
from flake8_torchperf.reserved import INTERNAL_ERROR, UNUSED_NOQA
from flake8_torchperf.suppression import Suppression

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from flake8_torchperf.fixes.engine.noqa import NoqaComment


# A code of ours, or the beginning of some.
_CODE = re.compile(rf"{FAMILY}\d+")


class UnusedNoqa:
    """Finds, file by file, the comments that silence nothing."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._suppression = Suppression(options)
        self._stdin = display_name(STDIN, options)

    def records(self, name: str, found: Sequence[FindingRecord]) -> list[FindingRecord]:
        """Return records for the comments of a file, of which ``found`` is all that is found.

        A code that the run does not select is not judged, nor is a file that was not analysed.
        """
        if is_notebook(name) or any(one.code in (*UNREADABLE, INTERNAL_ERROR) for one in found):
            return []
        text = _text(STDIN if name == self._stdin else name)
        if FAMILY not in text.upper():
            return []
        comments = [
            one for one in noqa_comments(text) if any(map(_is_ours, (*one.codes, one.misspelt)))
        ]
        ends = line_ends(text) if comments else {}
        codes_at = [(ends.get(one.line, one.line), one.code) for one in found]
        unused = [(one, self._unused(name, one, codes_at)) for one in comments]
        return [
            *(_silencing_nothing(comment, codes) for comment, codes in unused if codes),
            *(_misspelt(one, word) for one in comments for word in _mistakes(one)),
        ]

    def _unused(
        self, name: str, comment: NoqaComment, found: Sequence[tuple[int, str]]
    ) -> list[str]:
        here = [code for line, code in found if line == comment.line]
        return [
            code
            for code in comment.codes
            if _CODE.fullmatch(code)
            and self._suppression.selects(code, name)
            and not any(one.startswith(code) for one in here)
        ]


def _mistakes(comment: NoqaComment) -> list[str]:
    """Return the words of a comment that are meant for our codes and are none, as written."""
    words = [*comment.codes, comment.misspelt]
    return [word for word in words if _is_ours(word) and not _CODE.fullmatch(word)]


def _misspelt(comment: NoqaComment, word: str) -> FindingRecord:
    """Return the record for a word that is no code; flake8 reads a shorter one, or none."""
    hint = nearest_code(word, TorchPerfPlugin.options().rules)
    return _record(comment, f"`# noqa: {word}`: no rule has this code{hint}")


def _is_ours(code: str) -> bool:
    return code.upper().startswith(FAMILY)


def _text(filename: str) -> str:
    data = content_of(filename)
    if data is None:
        return ""
    try:
        return decoded(filename, data).text
    except NotWrittenError:
        return ""  # flake8 reports a file that is not text


def _silencing_nothing(comment: NoqaComment, codes: Sequence[str]) -> FindingRecord:
    named = ", ".join(codes)
    words = f"`# noqa: {named}` silences nothing; remove {'it' if len(codes) == 1 else 'them'}"
    return _record(comment, words)


def _record(comment: NoqaComment, words: str) -> FindingRecord:
    # Its own line holds the very comment.
    return FindingRecord(comment.line, comment.column, f"{UNUSED_NOQA} {words}", statement="")
