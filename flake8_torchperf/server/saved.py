"""Problems of saved texts: a text in, the problems of an earlier run out, if they still apply.

Opening a file or saving another one requests findings that have not changed. The store is that of
``torchperf check``; text is stored only once it is saved.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from flake8_torchperf.cache.current import Current
from flake8_torchperf.cache.entries import SWEEP_EVERY, Store, in_words
from flake8_torchperf.cache.folder import cache_folder
from flake8_torchperf.cache.key import conditions
from flake8_torchperf.cache.memory import Memory
from flake8_torchperf.digest import digest
from flake8_torchperf.project.files import read_file
from flake8_torchperf.project.stores.shelf import keep_on
from flake8_torchperf.server.messages import Note, Offer, Problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from flake8_torchperf.cache.memory import Again
    from flake8_torchperf.options import Options

LOG = logging.getLogger(__name__)


class Saved:
    """The problems of saved texts, kept from request to request and from session to session."""

    def __init__(self, options: argparse.Namespace, ours: Options) -> None:
        self._store = Store(cache_folder(ours.cache_folder)) if ours.cache is not False else None
        keep_on(self._store)
        self._stamped: dict[str, tuple[tuple[int, int], str]] = {}
        # flake8's own options and the baseline also decide which findings are reported.
        theirs = [f"{name}={value!r}" for name, value in sorted(vars(options).items())]
        known = read_file(str(ours.baseline))[1] if ours.baseline is not None else ""
        self._conditions = conditions(ours, ["problems", known, *theirs])

    def recall(
        self, name: str, text: str, again: Again | None = None
    ) -> tuple[Problem, ...] | None:
        """Return the problems in a text; None if they are not known or an answer has changed.

        ``again`` asks the questions that only an analysis can answer.
        """
        if self._store is None:
            return None
        memory = self._memory(self._store)
        rows = memory.recall(memory.key(name, _digest(text)), again)
        if rows is None:
            return None
        try:
            return tuple(_restored(json.loads(str(row[0]))) for row in rows)
        except (ValueError, TypeError, IndexError):
            return None  # written by another program

    def keep(
        self, name: str, text: str, problems: Sequence[Problem], reads: dict[str, str]
    ) -> None:
        """Store the problems in a text if the file has the same content; log why that fails."""
        path = os.path.abspath(name)
        if self._store is None or Current(self._stamped).content(path) != _digest(text):
            return
        # No answer holds the lines of another module.
        if any(note.path not in ("", path) for one in problems for note in one.notes):
            return
        rows = [(json.dumps(astuple(one)),) for one in problems]
        memory = self._memory(self._store)
        try:
            self._store.prepare()
            memory.keep(memory.key(name, _digest(text)), rows, reads)
            self._store.sweep(SWEEP_EVERY)
        except OSError as error:
            LOG.warning("findings can't be stored: %s", in_words(error))
            self._store = None

    def _memory(self, store: Store) -> Memory:
        """Return a memory for one request: files may change before the next one."""
        return Memory(store, self._conditions, Current(self._stamped))


def _digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))


def _restored(values: list[Any]) -> Problem:
    """Return the problem with these values. Raises TypeError or ValueError if they are others."""
    code, name, message, cost, span, page, function, head, notes, measured, offers, *decided = (
        values
    )
    return Problem(
        code,
        name,
        message,
        cost,
        tuple(span),
        page,
        function,
        head,
        tuple(Note(*note) for note in notes),
        measured,
        tuple(Offer(*offer) for offer in offers),
        *decided,
    )
