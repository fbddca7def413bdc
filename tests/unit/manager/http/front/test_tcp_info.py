"""When a connection counts as one that nothing is taken over: a socket and a clock that are played."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, cast

import pytest

from manager.http.front.tcp_info import Watch

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

FAR_ENOUGH = 148


class Socket:
    """Tells of itself what it is told to."""

    def __init__(self) -> None:
        self.unacked = self.acked = self.unsent = 0

    def getsockopt(self, *_: int) -> bytes:
        """As Linux has it in `struct tcp_info`."""
        info = bytearray(FAR_ENOUGH)
        struct.pack_into("=I", info, 24, self.unacked)
        struct.pack_into("=Q", info, 120, self.acked)
        struct.pack_into("=I", info, 144, self.unsent)
        return bytes(info)


class Loop:
    """Its time passes when it is told to."""

    def __init__(self) -> None:
        self._due: list[tuple[Callable[..., None], Any]] = []

    def call_later(self, _: float, call: Callable[..., None], *args: Any) -> None:
        """Keep it."""
        self._due.append((call, args))

    def run(self) -> None:
        """As long as was waited for."""
        due, self._due = self._due, []
        for call, args in due:
            call(*args)


@pytest.fixture
def sock() -> Socket:
    """One that is watched."""
    return Socket()


@pytest.fixture
def cuts() -> list[bool]:
    """One for each time that the connection was cut."""
    return []


@pytest.fixture
def loop(sock: Socket, cuts: list[bool]) -> Loop:
    """The one that the watch runs on."""
    loop = Loop()
    assert Watch(sock, 60.0, lambda: cuts.append(True)).begin(cast("asyncio.AbstractEventLoop", loop))
    return loop


def test_whoever_takes_something_is_let_be(sock: Socket, loop: Loop, cuts: list[bool]) -> None:
    """However little, and however much still waits."""
    sock.unsent = 900_000
    for _ in range(10):
        sock.acked += 1
        loop.run()
    assert not cuts


@pytest.mark.parametrize("waiting", ["unacked", "unsent"])
def test_whoever_takes_nothing_of_what_waits_is_cut(
    sock: Socket, loop: Loop, cuts: list[bool], waiting: str
) -> None:
    """Once it has had the whole time: what came to wait shortly before a look is not late at that look."""
    setattr(sock, waiting, 1)
    loop.run()
    assert not cuts
    loop.run()
    assert cuts


def test_whoever_has_nothing_to_take_is_let_be(loop: Loop, cuts: list[bool]) -> None:
    """For ever."""
    for _ in range(10):
        loop.run()
    assert not cuts
