"""One end of the line between a worker and the process of a task: a socket that speaks messages."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from worker.isolation.framing import Unframer, frame

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

T = TypeVar("T")

_AT_ONCE = 65_536


class Channel(Generic[T]):
    """Sends messages, and receives those of type `T`; all of it in the event loop."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, unframer: Unframer[T]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._unframer = unframer

    @classmethod
    async def over(cls, connected: socket.socket, received: Any) -> Channel[T]:
        """Over a connected socket, which it takes over; `received` is `T`."""
        reader, writer = await asyncio.open_unix_connection(sock=connected)
        return cls(reader, writer, Unframer(msgspec.msgpack.Decoder(received)))

    def send(self, message: msgspec.Struct) -> None:
        """Have it sent. Never blocks; nothing comes of it where the other end is gone."""
        if not self._writer.is_closing():
            self._writer.write(frame(message))

    async def sent(self) -> None:
        """Wait until what was sent is on its way, or the other end is gone."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def messages(self) -> AsyncIterator[T]:
        """What the other end says, until it is gone.

        Raises:
            FrameError: it speaks another language.
        """
        with contextlib.suppress(ConnectionError):
            while received := await self._reader.read(_AT_ONCE):
                for message in self._unframer.feed(received):
                    yield message

    def close(self) -> None:
        """Say no more, and hear no more."""
        self._writer.close()
