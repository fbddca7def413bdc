"""A channel between a transport and a protocol that are played, on a loop whose clock is moved by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.member import Parked
from manager.http.front.channel import MAX_BEHIND, Channel, Shared
from manager.http.front.limits import Limits
from tests.unit.manager.http.front.loop import Loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.core.member import Connection

LIMITS = Limits(request_s=30, answer_s=60)


class Socket:
    """A transport without TLS."""

    def __init__(self) -> None:
        self.is_read = True
        self.closed: str = ""
        self.unsent = 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("192.0.2.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, **_: int) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return bool(self.closed)

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        self.is_read = True

    def close(self) -> None:
        self.closed = "closed"

    def abort(self) -> None:
        self.closed = "aborted"


class Http:
    """A protocol that notes what it is told."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: self.told.append(name)


class Core:
    """Notes who has closed connections."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def closed(self, _: Connection, *, by_peer: bool) -> None:
        self.told.append("closed by peer" if by_peer else "closed here")


class Body:
    """As much of a request's body as a channel looks at."""

    def __init__(self, *, is_whole: bool) -> None:
        self._is_whole = is_whole
        self._told: list[Callable[[], None]] = []

    def is_eof(self) -> bool:
        return self._is_whole

    def on_eof(self, call: Callable[[], None]) -> None:
        self._told.append(call)

    def come(self) -> None:
        """The rest of it comes in."""
        for call in self._told:
            call()


def whole() -> Any:
    return Body(is_whole=True)


class Scene:
    """All of them, and the channel in the middle."""

    def __init__(self, loop: Loop, shared: Shared | None = None) -> None:
        told: list[str] = []
        self.loop, self.socket, self.http, self.core = loop, Socket(), Http(told), Core(told)
        http: Any = self.http
        transport: Any = self.socket
        self.channel = Channel(http, shared or Shared(LIMITS, self.core))
        self.channel.connection_made(transport)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    made = Loop()
    monkeypatch.setattr("manager.http.front.channel.asyncio.get_running_loop", lambda: made)
    return made


@pytest.fixture
def scene(loop: Loop) -> Scene:
    return Scene(loop)


def test_a_request_has_its_time_from_its_first_byte(scene: Scene) -> None:
    """However many follow one by one."""
    for _ in range(3):
        assert not scene.socket.is_closing()
        scene.channel.data_received(b"x")
        scene.loop.move(10)
    assert scene.socket.closed == "aborted"


def test_a_request_that_is_whole_may_take_as_long_as_it_likes(scene: Scene) -> None:
    """And the next one has its whole time."""
    for _ in range(3):
        scene.channel.data_received(b"x")
        scene.loop.move(20)
        scene.channel.begin(whole())
        scene.loop.move(1000)
        scene.channel.end()
    assert not scene.socket.is_closing()


@pytest.mark.parametrize("comes", [True, False])
def test_a_body_that_is_missing_has_the_request_s_time(scene: Scene, *, comes: bool) -> None:
    """Although its request is being answered; also if all of its head came ahead."""
    body: Any = Body(is_whole=False)
    scene.channel.begin(body)
    scene.loop.move(20)
    if comes:
        body.come()
    scene.loop.move(10)
    assert scene.socket.is_closing() is not comes


def test_nothing_is_read_while_an_answer_waits(scene: Scene) -> None:
    """Whatever aiohttp wants; nor while aiohttp wants nothing, once the answer is taken."""
    scene.channel.pause_writing()
    scene.channel.resume_reading()
    assert (scene.socket.is_read, scene.channel.is_full) == (False, True)
    scene.channel.pause_reading()
    scene.channel.resume_writing()
    assert (scene.socket.is_read, scene.channel.is_full) == (False, False)
    scene.channel.resume_reading()
    assert scene.socket.is_read
    assert scene.http.told == ["connection_made", "pause_writing", "resume_writing"]


def test_a_reader_has_time_as_long_as_it_takes_something(scene: Scene) -> None:
    """However little; then it is cut off."""
    scene.socket.unsent = 3
    scene.channel.pause_writing()
    for left in (2, 1):
        scene.socket.unsent = left
        scene.loop.move(60)
        assert not scene.socket.is_closing()
    scene.loop.move(60)
    assert scene.socket.closed == "aborted"


def test_a_reader_that_has_taken_everything_is_let_be(scene: Scene) -> None:
    """For ever."""
    scene.channel.pause_writing()
    scene.channel.resume_writing()
    scene.loop.move(1000)
    assert not scene.socket.is_closing()


def test_only_so_much_may_be_sent_behind_a_request_that_is_held(scene: Scene) -> None:
    """Of one that is being answered aiohttp keeps the next ones in bounds."""
    scene.channel.begin(whole())
    scene.channel.data_received(bytes(MAX_BEHIND + 1))
    assert not scene.socket.is_closing()
    Parked(scene.channel.link).wait()
    scene.channel.data_received(bytes(MAX_BEHIND))
    assert not scene.socket.is_closing()
    scene.channel.data_received(b"x")
    assert scene.socket.closed == "aborted"


def test_what_is_sent_behind_counts_anew_with_each_request(scene: Scene) -> None:
    """A connection that is kept for days carries more than that."""
    for _ in range(3):
        scene.channel.begin(whole())
        waiting = Parked(scene.channel.link)
        waiting.wait()
        scene.channel.data_received(bytes(MAX_BEHIND))
        waiting.settle()
        scene.channel.end()
    assert not scene.socket.is_closing()


@pytest.mark.parametrize(
    ("how", "told"),
    [(lambda _: None, "closed by peer"), (Channel.close, "closed here"), (Channel.abort, "closed here")],
)
def test_the_core_hears_of_an_end_before_a_request_is_given_up(
    scene: Scene,
    how: Callable[[Channel], None],
    told: str,
) -> None:
    """And who has ended it."""
    how(scene.channel)
    scene.channel.connection_lost(None)
    assert scene.http.told[-2:] == [told, "connection_lost"]


def test_no_time_runs_for_what_is_closed(loop: Loop) -> None:
    """Neither for a request that came in half, nor for an answer that was not taken."""
    shared = Shared(LIMITS, Core([]))
    channel = Scene(loop, shared).channel
    channel.data_received(b"POST")
    channel.pause_writing()
    assert channel in shared.incoming
    assert channel in shared.taking
    channel.connection_lost(None)
    assert channel not in shared.incoming
    assert channel not in shared.taking


def test_one_connection_too_many_is_closed_at_once(loop: Loop) -> None:
    """And the next one is welcome when another has gone."""
    shared = Shared(Limits(connections=1), Core([]))
    first, second = Scene(loop, shared), Scene(loop, shared)
    assert [each.socket.closed for each in (first, second)] == ["", "aborted"]
    second.channel.connection_lost(None)
    first.channel.connection_lost(None)
    assert Scene(loop, shared).socket.closed == ""
