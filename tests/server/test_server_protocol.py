"""Messages that an editor should not send: each request is answered, and no error pops up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from check_run import COMMAND
from language_server import LanguageServer
from lsprotocol import types

PROGRAM = (*COMMAND, "server")
POPS_UP = "window/showMessage"


@pytest.fixture
def server(tmp_path: Path) -> LanguageServer:
    return LanguageServer(PROGRAM, tmp_path, dict(os.environ))


def document(folder: Path) -> dict[str, Any]:
    return {"uri": (folder / "model.py").as_uri(), "version": 1}


@pytest.mark.parametrize(
    "method",
    [
        "textDocument/hover",
        "textDocument/codeAction",
        "textDocument/codeLens",
        "codeAction/resolve",
    ],
)
def test_a_request_with_unusable_parameters_is_answered(
    server: LanguageServer, method: str
) -> None:
    with server:
        answer = server.messages(method, {})[-1]
        assert answer["error"]["code"] == types.ErrorCodes.InvalidParams
        assert "result" not in answer
        # The next request is answered as ever.
        identifier = {"uri": "file:///nowhere.py"}
        place = {"textDocument": identifier, "position": {"line": 0, "character": 0}}
        assert server.request("textDocument/hover", place) is None


def test_a_change_after_the_document_was_closed_is_ignored(
    server: LanguageServer, tmp_path: Path
) -> None:
    opened = document(tmp_path)
    with server:
        text = {**opened, "languageId": "python", "text": "x = 1\n"}
        server.notify("textDocument/didOpen", {"textDocument": text})
        server.diagnostics(opened["uri"], 1)
        server.notify("textDocument/didClose", {"textDocument": {"uri": opened["uri"]}})
        late = {"textDocument": {**opened, "version": 2}, "contentChanges": [{"text": "x = 2\n"}]}
        server.notify("textDocument/didChange", late)
        place = {"textDocument": {"uri": opened["uri"]}, "position": {"line": 0, "character": 0}}
        received = server.messages("textDocument/hover", place)
        assert received[-1]["result"] is None
        assert [one for one in received if one.get("method") == POPS_UP] == []
        # It can be opened again.
        server.notify("textDocument/didOpen", {"textDocument": {**text, "version": 3}})
        assert server.diagnostics(opened["uri"], 3) == []
