"""What stands between a worker and its manager: a proxy that can be cut."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 65_536


class Line(Enum):
    """How the connection is."""

    UP = "up"
    REFUSED = "refused"
    """Connections are reset, and so is every new one."""
    SILENT = "silent"
    """Connections stay, nothing comes through; new ones are accepted and never answered."""


class Proxy:
    """Forwards to one manager; a thread of its own keeps it going.

    A worker asks its manager who the coordinator is and goes there; so the manager's address is replaced by
    the proxy's own, as an address translation would.
    """

    def __init__(self, manager: str) -> None:
        parts = urlsplit(manager)
        self._target = (str(parts.hostname), int(parts.port or 0))
        self._named = manager.encode()
        self._line = Line.UP
        self._transports: set[asyncio.WriteTransport] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        assert len(self.url) == len(manager), "the answers' lengths are told before the answers"

    def cut(self, how: Line) -> None:
        """From now on the line is as `how` says."""
        self._call(lambda: self._set(how))

    def mend(self) -> None:
        """The line is up again; connections that were silent until now are reset."""
        self._call(lambda: self._set(Line.UP))

    def close(self) -> None:
        """End it."""
        self._call(self._server.close)
        self._call(self._reset)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, function: Callable[[], None]) -> None:
        async def call() -> None:
            function()

        asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    async def _listen(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def _set(self, line: Line) -> None:
        self._line = line
        if line is not Line.SILENT:
            self._reset()

    def _reset(self) -> None:
        for transport in tuple(self._transports):
            transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._transports.add(writer.transport)
        try:
            if self._line is Line.REFUSED:
                return
            there, back = await asyncio.open_connection(*self._target)
            self._transports.add(back.transport)
            try:
                await self._pump_both((reader, writer), (there, back))
            finally:
                self._drop(back)
        except OSError:
            return
        finally:
            self._drop(writer)

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._transports.discard(writer.transport)
        writer.transport.abort()

    async def _pump_both(
        self,
        worker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        manager: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Until either side ends."""
        own = self.url.encode()
        pumps = {
            asyncio.create_task(self._pump(worker[0], manager[1], lambda data: data)),
            asyncio.create_task(
                self._pump(manager[0], worker[1], lambda data: data.replace(self._named, own))
            ),
        }
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Callable[[bytes], bytes]
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                if self._line is Line.UP:
                    writer.write(change(data))
                    await writer.drain()
