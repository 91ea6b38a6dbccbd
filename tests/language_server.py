"""A client of a language server over standard input and output: as much as the tests need."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any


class LanguageServer:
    """A running server, initialised for one folder; it is ended after ``seconds`` at the latest."""

    def __init__(
        self, command: Sequence[str | Path], folder: Path, env: dict[str, str], seconds: float = 90
    ) -> None:
        self._process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=env,
        )
        self._end = threading.Timer(seconds, self._process.kill)
        self._end.start()
        self._requests = 0
        self.request("initialize", {"rootUri": folder.as_uri(), "capabilities": {}})
        self.notify("initialized", {})

    def __enter__(self) -> LanguageServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.request("shutdown", {})
            self.notify("exit", {})
            self._process.wait()
        self._end.cancel()
        self._process.kill()
        self._process.communicate()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def request(self, method: str, params: dict[str, Any]) -> Any:
        message = self.messages(method, params)[-1]
        assert "error" not in message, message
        return message["result"]

    def messages(self, method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """What the server sends until it has answered a request, the answer last."""
        self._requests += 1
        self._send({"id": self._requests, "method": method, "params": params})
        received = [self._receive()]
        while received[-1].get("id") != self._requests:
            received.append(self._receive())
        return received

    def diagnostics(self, uri: str, version: int) -> list[dict[str, Any]]:
        """What the server publishes for this version of the document."""
        while True:
            message = self._receive()
            if message.get("method") == "textDocument/publishDiagnostics":
                published = message["params"]
                if (published["uri"], published.get("version")) == (uri, version):
                    return list(published["diagnostics"])

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline():
            if line == b"\r\n":
                return dict(json.loads(self._process.stdout.read(length)))
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        raise AssertionError("the language server ended")
