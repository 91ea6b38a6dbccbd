"""The process that lints for one folder, as the server sees it.

It is started when first needed. It is started again if its configuration changed, it took too
long, or it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
from typing import TYPE_CHECKING

from flake8_torchperf.configuration import configuration_files
from flake8_torchperf.own_process import own_command
from flake8_torchperf.server.child import LENGTH, packed
from flake8_torchperf.server.messages import Failed, FirstReply
from flake8_torchperf.server.settings import stamps

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping

    from flake8_torchperf.server.messages import Reply, Request

# Seconds for one text; the slowest of real files take three.
PATIENCE = 60.0


class Worker:
    """Lints for the files below one folder.

    ``tell`` takes lines for the user, ``log`` lines for debugging. ``settings`` are the editor's,
    which win over those of the folder's files.
    """

    def __init__(
        self,
        folder: str,
        tell: Callable[[str], None],
        log: Callable[[str], None],
        settings: Mapping[str, object],
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.log = log
        self._tell = tell
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._known: dict[str, tuple[int, int]] = {}
        self._said = ""
        self._unusable = ""
        self._closed = False

    async def ask(self, request: Callable[[], Request | None]) -> Reply | None:
        """Return the reply to what ``request`` returns when its turn comes; None without a request.

        A caller may stop waiting for the reply: the exchange still completes.
        """
        return await asyncio.shield(asyncio.ensure_future(self._exchange(request)))

    def restart(self) -> None:
        """Use another process from the next request on."""
        self._known = {}

    async def close(self) -> None:
        """End the process, at once if it is at work."""
        self._closed = True
        await self._end()

    async def _exchange(self, request: Callable[[], Request | None]) -> Reply | None:
        async with self._turn:
            message = request()
            if message is None or self._closed:
                return None
            try:
                problem = await self._prepare()
                if problem:
                    return Failed(problem)
                return await asyncio.wait_for(self._round(message), PATIENCE)
            except asyncio.TimeoutError:
                await self._end()
                return Failed(f"no answer within {PATIENCE:g} s")
            except (EOFError, OSError) as error:
                await self._end()
                return None if self._closed else Failed(f"the linting process ended: {error}")

    async def _prepare(self) -> str:
        """Start a process with the current configuration unless one runs; return why it can't."""
        if self._known and stamps(self._known) == self._known:
            if self._unusable:
                return self._unusable
            if self._process is not None and self._process.returncode is None:
                return ""
        await self._end()
        known = stamps(configuration_files(self.folder))
        self._process = await asyncio.create_subprocess_exec(
            *own_command("flake8_torchperf.server.child", json.dumps(dict(self.settings))),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=self.folder,
        )
        ready = await asyncio.wait_for(self._receive(), PATIENCE)
        assert isinstance(ready, FirstReply)
        self._known = {**stamps(ready.watched), **known}
        self._unusable = "" if ready.usable else ready.said
        if ready.said and ready.said != self._said:
            self._tell(ready.said)
        self._said = ready.said
        return self._unusable

    async def _round(self, request: Request) -> Reply:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(packed(request))
        await self._process.stdin.drain()
        return await self._receive()

    async def _receive(self) -> Reply:
        assert self._process is not None
        assert self._process.stdout is not None
        (length,) = LENGTH.unpack(await self._process.stdout.readexactly(LENGTH.size))
        reply: Reply = pickle.loads(await self._process.stdout.readexactly(length))
        return reply

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
