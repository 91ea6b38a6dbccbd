"""The language server: it answers the protocol's messages about open documents."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.uris import to_fs_path, uri_scheme

from flake8_torchperf import __version__
from flake8_torchperf.configuration import SETTINGS_FILES
from flake8_torchperf.options import OptionError
from flake8_torchperf.server import actions, marks, present
from flake8_torchperf.server.documents import Document, Documents
from flake8_torchperf.server.messages import Count, Counted, Explain, Problem, Text
from flake8_torchperf.server.settings import sent
from flake8_torchperf.server.text import Units

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# URI schemes of documents that are linted; the cells of a notebook, for example, are not modules.
_SCHEMES = ("file", "untitled")
# The file name of `check -`, used for documents that have no file yet.
_NO_FILE = "stdin"
# The command that writes the contract at the function that holds a line: a URI and the line.
MARK_SYNC_FREE = "torchperf.server.markSyncFree"
WATCHED = (
    "**/*.py",
    *(f"**/{name}" for name in SETTINGS_FILES),
    "**/*.toml",
    "**/*.md",
    "**/*.json",
)


class ServerProtocol(LanguageServerProtocol):
    """pygls's protocol, which answers every request and forgets what is finished.

    pygls keeps a kilobyte for every notification that it has handled, and so for every key. It
    leaves a request whose parameters it can't read without an answer, and an editor waits for it.
    """

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return the message; a request that can't be read is answered with an error."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and data.get("id") is not None:
                self._send_response(data["id"], None, error.to_response_error())
            raise

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(
        self, params: types.DidChangeTextDocumentParams
    ) -> Iterator[Any]:
        """Take a changed text; one of a document that is not open is ignored, as late ones are."""
        if params.text_document.uri in self.workspace.text_documents:
            yield from super().lsp_text_document__did_change(params)

    def _execute_handler(self, msg_id: Any, *arguments: Any, **named: Any) -> None:
        super()._execute_handler(msg_id, *arguments, **named)
        done = self._request_futures.get(msg_id)
        if done is not None and done.done():
            self._request_futures.pop(msg_id)


class Server(LanguageServer):
    """A language server with the documents that it has open.

    It asks for whole texts: pygls counts lines where form feeds and Unicode separators end them,
    as neither Python nor the protocol does, and would put changes into the wrong place.
    """

    def __init__(self) -> None:
        super().__init__(
            "torchperf",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
            protocol_cls=ServerProtocol,
        )
        self.documents = Documents(self.tell, self.log)
        self.is_shut_down = False

    @property
    def client(self) -> actions.Client:
        """The abilities of the editor."""
        edit = getattr(self.client_capabilities.workspace, "workspace_edit", None)
        versions = bool(getattr(edit, "document_changes", None))
        operations = getattr(edit, "resource_operations", None) or ()
        creates = versions and types.ResourceOperationKind.Create in operations
        return actions.Client(self.encoding, versions, creates)

    @property
    def encoding(self) -> str:
        """The units of columns."""
        return str(self.workspace.position_encoding or types.PositionEncodingKind.Utf16)

    def publish(self, uri: str, document: Document) -> None:
        """Show the findings in a document's text."""
        units = Units(document.text, self.encoding)
        found = [present.diagnostic(one, uri, units) for one in document.problems]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, self._supported(found), document.version)
        )

    def at(
        self, document: Document, uri: str, problems: Iterable[Problem], place: types.Range
    ) -> list[tuple[Problem, types.Diagnostic]]:
        """Return the findings that touch a range."""
        units = Units(document.text, self.encoding)
        found = []
        for problem in problems:
            diagnostic = present.diagnostic(problem, uri, units)
            if _touch(diagnostic.range, place):
                self._supported([diagnostic])
                found.append((problem, diagnostic))
        return found

    def _supported(self, found: list[types.Diagnostic]) -> list[types.Diagnostic]:
        """Remove the parts of diagnostics that the editor does not support."""
        text = self.client_capabilities.text_document
        known = getattr(text, "publish_diagnostics", None)
        for one in found:
            if not getattr(known, "related_information", None):
                one.related_information = None
            if not getattr(known, "code_description_support", None):
                one.code_description = None
        return found

    def take_settings(self, settings: object) -> None:
        """Use the settings that the editor sent; after a mistake, the earlier ones stay."""
        try:
            values = sent(settings)
        except OptionError as error:
            self.tell(f"{error}; the editor's settings are not used until it is corrected")
            return
        if values is not None:
            self.documents.use_settings(values)

    def refresh_counts(self) -> None:
        """Let the editor ask again for what a profile says, if it can."""
        lenses = getattr(self.client_capabilities.workspace, "code_lens", None)
        if getattr(lenses, "refresh_support", None):
            self.workspace_code_lens_refresh(None)

    def tell(self, words: str) -> None:
        """Show the user one line."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Error, words))

    def log(self, words: str) -> None:
        """Write one line to the log."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, words))


def _touch(one: types.Range, other: types.Range) -> bool:
    return one.start <= other.end and other.start <= one.end


def _is_python(item: types.TextDocumentItem) -> bool:
    return item.language_id == "python" and uri_scheme(item.uri) in _SCHEMES


def make_server() -> Server:
    """Return the server with all that it answers."""
    server = Server()
    _watch(server)
    _edit(server)
    _answer_hovers(server)
    _answer_actions(server)
    _answer_counts(server)
    _answer_commands(server)
    return server


def _watch(server: Server) -> None:
    """Follow changes of folders, configuration and other files, and end on shutdown."""

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        server.take_settings(params.initialization_options)

    @server.feature(types.INITIALIZED)
    def initialized(_params: types.InitializedParams) -> None:
        server.documents.use_folders(_folders(server))
        workspace = server.client_capabilities.workspace
        watching = getattr(workspace, "did_change_watched_files", None)
        if getattr(watching, "dynamic_registration", None):
            options = types.DidChangeWatchedFilesRegistrationOptions(
                [types.FileSystemWatcher(pattern) for pattern in WATCHED]
            )
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            registration = types.Registration("watched-files", method, options)
            server.client_register_capability(types.RegistrationParams([registration]))

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(_params: types.DidChangeWorkspaceFoldersParams) -> None:
        server.documents.use_folders(_folders(server))

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(params: types.DidChangeWatchedFilesParams) -> None:
        changed = types.FileChangeType.Changed
        came_or_went = any(event.type != changed for event in params.changes)
        server.documents.lint_again(moved=True, afresh=came_or_went)
        server.refresh_counts()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def settings_changed(params: types.DidChangeConfigurationParams) -> None:
        server.take_settings(params.settings)
        server.documents.lint_again(moved=True)
        server.refresh_counts()

    @server.feature(types.SHUTDOWN)
    async def shut_down(_params: None) -> None:
        await server.documents.shut_down()
        server.is_shut_down = True


def _folders(server: Server) -> list[str]:
    known = [to_fs_path(uri) for uri in server.workspace.folders]
    root = server.workspace.root_path
    return [path for path in known if path] or ([root] if root else [])


def _edit(server: Server) -> None:
    """Follow documents that are opened, changed, saved and closed."""

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        if _is_python(item):
            path = to_fs_path(item.uri) or _NO_FILE
            document = server.documents.open(
                item.uri, path, lambda document: server.publish(item.uri, document)
            )
            document.change(item.text, item.version)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        document = server.documents.get(uri)
        if document is not None:
            text = server.workspace.get_text_document(uri).source
            document.change(text, version)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(_params: types.DidSaveTextDocumentParams) -> None:
        server.documents.lint_again(moved=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        if server.documents.get(uri) is not None:
            server.documents.close(uri)
            server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def _answer_hovers(server: Server) -> None:
    """Answer hovers over findings."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        if document is None:
            return None
        place = types.Range(params.position, params.position)
        found = server.at(document, uri, await document.settled(), place)
        parts = []
        for problem, _ in found:
            page = await document.worker.ask(partial(Explain, problem.code))
            parts.append(present.hover(problem, page.text if isinstance(page, Text) else ""))
        if not parts:
            return None
        contents = types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(parts))
        return types.Hover(contents, found[0][1].range)


def _answer_actions(server: Server) -> None:
    """Offer actions for findings, with their edits at once or when one is chosen."""
    options = types.CodeActionOptions(list(actions.ACTION_KINDS), resolve_provider=True)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        if document is None:
            return []
        problems = await document.settled()
        here = server.at(document, uri, problems, params.range)
        only = params.context.only

        def wanted(kind: str) -> bool:
            return only is None or any(kind == one or kind.startswith(f"{one}.") for one in only)

        found = actions.offered(here, document, uri, wanted, server.client)
        if _resolves(server):
            return found
        kept = []
        for action in found:
            try:
                action.edit = await actions.edit(_data(action), document, server.client)
            except actions.NoEditError:
                continue  # an action that can't be done is not offered
            kept.append(action)
        return kept

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve(action: types.CodeAction) -> types.CodeAction:
        data = _data(action)
        document = server.documents.get(data.get("uri", ""))
        if document is None or document.version != data.get("version"):
            return action  # of an older text: it has no edit any more
        try:
            action.edit = await actions.edit(data, document, server.client)
        except actions.NoEditError as error:
            server.tell(str(error))
        return action


def _answer_counts(server: Server) -> None:
    """Show what a profile says, above each statement that waited."""

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def counts(params: types.CodeLensParams) -> list[types.CodeLens]:
        uri = params.text_document.uri
        document = server.documents.get(uri)
        if document is None:
            return []
        text = document.text
        reply = await document.worker.ask(partial(Count, document.path, text))
        units = Units(text, server.encoding)
        found = reply.lines if isinstance(reply, Counted) else ()
        # Words without a command: there is nothing to click.
        return [types.CodeLens(units.line(line), types.Command(words, "")) for line, words in found]


def _answer_commands(server: Server) -> None:
    """Carry out the commands that need no finding."""

    @server.command(MARK_SYNC_FREE)
    async def mark_sync_free(uri: str, line: int) -> None:
        document = server.documents.get(uri)
        head = None if document is None else marks.head_of(document.text, line)
        if document is None or head is None:
            server.tell("the cursor is in no function of an open Python file")
            return
        data: actions.Data = {"uri": uri, "version": document.version, "does": actions.MARK}
        try:
            edit = await actions.edit({**data, "head": head}, document, server.client)
        except actions.NoEditError as error:
            server.tell(str(error))
            return
        await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit))


def _data(action: types.CodeAction) -> actions.Data:
    data: Any = action.data
    return data if isinstance(data, dict) else {}


def _resolves(server: Server) -> bool:
    """True if the editor asks for the edit of an action only once it is chosen."""
    text = server.client_capabilities.text_document
    support = getattr(getattr(text, "code_action", None), "resolve_support", None)
    return support is not None and "edit" in support.properties


def serve() -> int:
    """Serve on standard input and output; returns the exit status, 1 without a shutdown request."""
    # An editor starts it in the user's folder, from which nothing is to be imported.
    sys.path[:] = [path for path in sys.path if path not in ("", os.getcwd())]
    server = make_server()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # printed text must not mix with the protocol's messages
    server.start_io(sys.stdin.buffer, answers)
    return 0 if server.is_shut_down else 1
