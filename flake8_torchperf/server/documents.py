"""Open documents: linted a moment after the last key, never with a result of an older text."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from flake8_torchperf.server.messages import Failed, Lint, TextFindings
from flake8_torchperf.server.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from flake8_torchperf.server.messages import Problem

# Changes that follow one another faster, in seconds, count as one: a key that is held, a macro. Who
# types fast strikes one every tenth of a second, and waits for nothing.
PAUSE = 0.025


class Document:
    """One open document; ``publish`` is called with the findings in its newest text."""

    def __init__(self, path: str, worker: Worker, publish: Callable[[Document], None]) -> None:
        self.path = path
        self.worker = worker
        self.text = ""
        self.version: int | None = None
        self.problems: tuple[Problem, ...] = ()
        self._publish = publish
        self._at_work: asyncio.Task[None] | None = None
        self._failed = ""
        self._changed = 0.0
        # Counts the runs; only the newest one may begin.
        self._newest = 0
        # True if other files have changed since the last run.
        self._moved = False

    def change(self, text: str, version: int | None) -> None:
        """Take a new text."""
        self.text, self.version = text, version
        now = time.monotonic()
        self.lint(PAUSE if now - self._changed < PAUSE else 0.0)
        self._changed = now

    def lint(self, pause: float = 0.0, *, moved: bool = False) -> None:
        """Lint the document's text as of the run, in place of a run that waits or is under way."""
        self.stop()
        self._moved = self._moved or moved
        self._at_work = asyncio.ensure_future(self._lint(pause, self._newest))

    def stop(self) -> None:
        """Discard the result of the current run, and start no waiting run."""
        self._newest += 1
        if self._at_work is not None:
            self._at_work.cancel()

    async def settled(self) -> tuple[Problem, ...]:
        """Return the findings in the current text."""
        while self._at_work is not None and not self._at_work.done():
            await asyncio.wait({self._at_work})
        return self.problems

    async def _lint(self, pause: float, number: int) -> None:
        await asyncio.sleep(pause)
        reply = await self.worker.ask(lambda: self._request(number))
        if reply is None:
            return
        self.problems = reply.problems if isinstance(reply, TextFindings) else ()
        self._publish(self)
        problem = reply.problem if isinstance(reply, Failed) else ""
        if problem and problem != self._failed:
            self.worker.log(f"{self.path}: {problem}")
        self._failed = problem

    def _request(self, number: int) -> Lint | None:
        """Return the request of a run whose turn has come; None if a newer run waits."""
        if number != self._newest:
            return None
        moved, self._moved = self._moved, False
        return Lint(self.path, self.text, moved)


class Documents:
    """All open documents, each with the process of the folder that it belongs to."""

    def __init__(self, tell: Callable[[str], None], log: Callable[[str], None]) -> None:
        self.folders: list[str] = []
        self._settings: Mapping[str, object] = {}
        self._tell = tell
        self._log = log
        self._open: dict[str, Document] = {}
        self._workers: dict[str, Worker] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def get(self, uri: str) -> Document | None:
        """Return an open document."""
        return self._open.get(uri)

    def open(self, uri: str, path: str, publish: Callable[[Document], None]) -> Document:
        """Take a document that was opened."""
        document = Document(path, self._worker(self._folder(path)), publish)
        self._open[uri] = document
        return document

    def close(self, uri: str) -> None:
        """Forget a document; the process of a folder without one ends."""
        document = self._open.pop(uri, None)
        if document is not None:
            document.stop()
            self._end_idle()

    def use_folders(self, folders: Iterable[str]) -> None:
        """Take other folders; documents that belong to another one now are linted there."""
        self.folders = list(folders)
        for document in self._open.values():
            folder = self._folder(document.path)
            if folder != document.worker.folder:
                document.worker = self._worker(folder)
                document.lint()
        self._end_idle()

    def use_settings(self, settings: Mapping[str, object]) -> None:
        """Take the editor's settings, and lint all documents with them."""
        if settings == self._settings:
            return
        self._settings = settings
        for worker in self._workers.values():
            worker.settings = settings
        self.lint_again(afresh=True)

    def lint_again(self, *, moved: bool = False, afresh: bool = False) -> None:
        """Lint all documents: other files changed, or, ``afresh``, came or went."""
        for worker in self._workers.values() if afresh else ():
            worker.restart()
        for document in self._open.values():
            document.lint(moved=moved)

    async def shut_down(self) -> None:
        """End all processes."""
        for document in self._open.values():
            document.stop()
        self._open = {}
        self._end_idle()
        await asyncio.gather(*self._ending)

    def _end_idle(self) -> None:
        used = {document.worker.folder for document in self._open.values()}
        for folder in [one for one in self._workers if one not in used]:
            ending = asyncio.ensure_future(self._workers.pop(folder).close())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def _worker(self, folder: str) -> Worker:
        if folder not in self._workers:
            self._workers[folder] = Worker(folder, self._tell, self._log, self._settings)
        return self._workers[folder]

    def _folder(self, path: str) -> str:
        """Return the innermost workspace folder that a file is in, or else the file's own."""
        inside = [one for one in self.folders if path.startswith(os.path.join(one, ""))]
        if inside:
            return max(inside, key=len)
        folder = os.path.dirname(path)
        while folder and not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        return folder or (self.folders[0] if self.folders else os.getcwd())
