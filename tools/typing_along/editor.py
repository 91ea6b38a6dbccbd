"""An editor without a window: a client of the language server, over standard input and output."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

SERVER = (sys.executable, "-m", "flake8_torchperf.cli.main", "server")
# Seconds to wait for any reply of the server.
PATIENCE = 60.0


def capabilities() -> types.ClientCapabilities:
    """Return the capabilities of an editor that supports all that the server offers."""
    text = types.TextDocumentClientCapabilities(
        publish_diagnostics=types.PublishDiagnosticsClientCapabilities(
            related_information=True, code_description_support=True, version_support=True
        ),
        code_action=types.CodeActionClientCapabilities(
            resolve_support=types.ClientCodeActionResolveOptions(["edit"]), data_support=True
        ),
        hover=types.HoverClientCapabilities(),
    )
    workspace = types.WorkspaceClientCapabilities(
        workspace_edit=types.WorkspaceEditClientCapabilities(
            document_changes=True, resource_operations=[types.ResourceOperationKind.Create]
        ),
        workspace_folders=True,
    )
    return types.ClientCapabilities(workspace=workspace, text_document=text)


@dataclass
class Published:
    """Diagnostics as they came, and when."""

    version: int | None
    diagnostics: Sequence[types.Diagnostic]
    at: float


@dataclass
class Buffer:
    """An open file: the editor's text, and the diagnostics published for it."""

    uri: str
    text: str
    version: int = 0
    published: list[Published] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Editor:
    """A client with open files."""

    def __init__(self, client: LanguageClient) -> None:
        self.client = client
        self.buffers: dict[str, Buffer] = {}
        self.messages: list[str] = []
        self.logged: list[str] = []
        self.registered: list[types.Registration] = []
        self.edits: list[types.WorkspaceEdit] = []

        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self._publish))
        client.feature(types.WINDOW_SHOW_MESSAGE)(partial(self._show))
        client.feature(types.WINDOW_LOG_MESSAGE)(partial(self._log))
        client.feature(types.CLIENT_REGISTER_CAPABILITY)(partial(self._register))
        client.feature(types.WORKSPACE_APPLY_EDIT)(partial(self._apply))

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        buffer = self.buffers.get(params.uri)
        if buffer is not None:
            now = time.perf_counter()
            buffer.published.append(Published(params.version, params.diagnostics, now))
            buffer.news.set()

    def _show(self, params: types.ShowMessageParams) -> None:
        self.messages.append(params.message)

    def _log(self, params: types.LogMessageParams) -> None:
        self.logged.append(params.message)

    def _register(self, params: types.RegistrationParams) -> None:
        self.registered += params.registrations

    def _apply(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.edits.append(params.edit)
        return types.ApplyWorkspaceEditResult(True)

    @property
    def process(self) -> int:
        """The number of the server's process."""
        server: Any = self.client._server
        return int(server.pid)

    def open(self, path: Path | str, text: str) -> Buffer:
        """Open a file with this text, which may differ from the saved file."""
        uri = path if isinstance(path, str) else path.as_uri()
        buffer = self.buffers[uri] = Buffer(uri, text, 1)
        item = types.TextDocumentItem(uri, "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return buffer

    def change(self, buffer: Buffer, text: str) -> None:
        """Give a file another text."""
        buffer.text, buffer.version = text, buffer.version + 1
        identifier = types.VersionedTextDocumentIdentifier(buffer.version, buffer.uri)
        changes = [types.TextDocumentContentChangeWholeDocument(text)]
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, changes))

    def save(self, buffer: Buffer, path: Path) -> None:
        """Write a file, and say so."""
        path.write_text(buffer.text, encoding="utf-8")
        identifier = types.TextDocumentIdentifier(buffer.uri)
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(identifier))

    async def diagnostics(self, buffer: Buffer) -> Sequence[types.Diagnostic]:
        """Return the diagnostics that are published for the file's current text."""
        return (await self.published(buffer)).diagnostics

    async def published(self, buffer: Buffer, beyond: int = 0) -> Published:
        """Return the publication for the file's current text, after ``beyond`` earlier ones."""
        end = time.perf_counter() + PATIENCE
        while True:
            buffer.news.clear()
            last = buffer.published[-1] if len(buffer.published) > beyond else None
            if last is not None and last.version == buffer.version:
                return last
            await asyncio.wait_for(buffer.news.wait(), end - time.perf_counter())

    async def hover(self, buffer: Buffer, place: types.Position) -> str:
        """Return the text that is shown over a place; "" if there is none."""
        identifier = types.TextDocumentIdentifier(buffer.uri)
        found = await self.client.text_document_hover_async(types.HoverParams(identifier, place))
        contents = None if found is None else found.contents
        return contents.value if isinstance(contents, types.MarkupContent) else ""

    async def actions(
        self, buffer: Buffer, place: types.Range, only: Sequence[str] | None = None
    ) -> dict[str, types.CodeAction]:
        """Return the actions that are offered for a range, by title."""
        identifier = types.TextDocumentIdentifier(buffer.uri)
        context = types.CodeActionContext([], only)
        params = types.CodeActionParams(identifier, place, context)
        found = await self.client.text_document_code_action_async(params)
        return {one.title: one for one in found or () if isinstance(one, types.CodeAction)}

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        """Return the same action with its edit."""
        return await self.client.code_action_resolve_async(action)


@asynccontextmanager
async def editor(
    *folders: Path,
    client: LanguageClient | None = None,
    able: types.ClientCapabilities | None = None,
    server: Sequence[str] = SERVER,
    settings: object = None,
) -> AsyncIterator[Editor]:
    """Yield an editor with these folders open; its server must end by itself afterwards.

    The server gets ``settings`` as it starts.
    """
    client = client or LanguageClient("typing-along", "1")
    found = Editor(client)
    await client.start_io(*server)
    opened = [types.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders]
    params = types.InitializeParams(
        able or capabilities(), workspace_folders=opened, initialization_options=settings
    )
    await asyncio.wait_for(client.initialize_async(params), PATIENCE)
    client.initialized(types.InitializedParams())
    yield found
    await asyncio.wait_for(client.shutdown_async(None), PATIENCE)
    process: Any = client._server
    client.exit(None)
    status = await asyncio.wait_for(process.wait(), PATIENCE)
    stop: Any = client.stop
    await stop()
    if status:
        raise RuntimeError(f"the server ended with status {status}")


def applied(text: str, edits: Sequence[types.TextEdit]) -> str:
    """Return a text after edits of whole lines or of ASCII, as the protocol describes them."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for edit in sorted(edits, key=lambda one: one.range.start, reverse=True):
        start = starts[edit.range.start.line] + edit.range.start.character
        end = starts[edit.range.end.line] + edit.range.end.character
        text = text[:start] + edit.new_text + text[end:]
    return text
