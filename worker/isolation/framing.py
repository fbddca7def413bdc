"""Messages as bytes: four of the length, then MessagePack. Rules without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")

LENGTH_BYTES: Final = 4
MOST_BYTES: Final = 64 * 2**20
"""Of a message; far more than a definition, which has one megabyte at most, together with a cause."""

_encoder = msgspec.msgpack.Encoder()


class FrameError(Exception):
    """What was received is no message: the two sides do not speak the same language."""


def frame(message: msgspec.Struct) -> bytes:
    """`message` as it is sent."""
    body = _encoder.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class Unframer(Generic[T]):
    """Makes messages of what is received, however that is cut."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[T]) -> None:
        self._decoder = decoder
        self._received = bytearray()

    def feed(self, received: bytes) -> Iterator[T]:
        """The messages that are whole now.

        Raises:
            FrameError: it is none.
        """
        self._received += received
        while (body := self._next()) is not None:
            try:
                yield self._decoder.decode(body)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise FrameError(f"not a message: {error}") from None

    def _next(self) -> bytes | None:
        if len(self._received) < LENGTH_BYTES:
            return None
        length = int.from_bytes(self._received[:LENGTH_BYTES], "big")
        if length > MOST_BYTES:
            raise FrameError(f"a message of {length} bytes")
        end = LENGTH_BYTES + length
        if len(self._received) < end:
            return None
        body = bytes(self._received[LENGTH_BYTES:end])
        del self._received[:end]
        return body
