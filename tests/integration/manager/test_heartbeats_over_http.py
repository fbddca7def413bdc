"""Heartbeats over real connections: held ones, what is sent behind them, connections that close."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manager.http.front.channel import MAX_BEHIND
from tests.fakes.turns import eventually
from tests.integration.manager.clients import MAX_BYTES, serving
from tests.integration.manager.fuzz.front import Answer, Wire, request_bytes
from tests.integration.manager.members import stable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from manager.core.member import Connection, Member
    from tests.integration.manager.clients import Served

BEAT = "/v1/groups/g/heartbeat"
LAST = request_bytes("GET", "/healthz", headers="Connection: close\r\n")


class Manager:
    """A manager on a real socket, with a member of a Stable group."""

    def __init__(self, served: Served, member: dict[str, Any]) -> None:
        self.runtime = served.runtime
        self.connect = served.connect
        self.member = member

    async def send(self, pieces: list[bytes]) -> list[Answer]:
        """The answers to `pieces`, each of which arrives by itself, and to a last request."""
        wire = await self.connect()
        answers = []
        with suppress(OSError, asyncio.IncompleteReadError):
            for piece in [*pieces, LAST]:
                await wire.send(piece)
                await _turns()
            while True:
                answers.append(await wire.answer())
        await wire.close()
        return answers

    async def held(self) -> Wire:
        """A connection on which a heartbeat of the member waits."""
        wire = await self.connect()
        await wire.send(self.beat(wait_ms=60_000))
        await eventually(lambda: self.runtime.parked == 1)
        return wire

    def beat(self, **changed: Any) -> bytes:
        """A heartbeat of the member as a request."""
        return request_bytes("POST", BEAT, json.dumps({**self.member, **changed}).encode())


async def _turns() -> None:
    """Let what was sent arrive before more of it is sent."""
    for _ in range(5):
        await asyncio.to_thread(int)


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[Manager]:
    async with _opened(tmp_path) as manager:
        yield manager


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Manager]:
    async with serving(folder) as served:
        beat = await stable(served.runtime)
        yield Manager(served, {"member_id": beat.member_id, "generation_id": beat.generation_id})


BODIES: list[tuple[dict[str, Any], str]] = [
    ({}, "NONE"),
    ({"generation_id": 9}, "ILLEGAL_GENERATION"),
    ({"member_id": "nobody"}, "UNKNOWN_MEMBER_ID"),
    ({"instance_id": "unknown"}, "UNKNOWN_MEMBER_ID"),
    ({"wait_ms": -1}, "INVALID_REQUEST"),
    ({"generation_id": "1"}, "INVALID_REQUEST"),
    ({"member_id": "é"}, "UNKNOWN_MEMBER_ID"),
    ({"more": {"deep": [1]}}, "NONE"),
    ({"tasks_revision": 99, "wait_ms": 0}, "NONE"),
    ({"more": json.loads("[" * 150 + "]" * 150)}, "INVALID_REQUEST"),
    ({"more": "?"}, "INVALID_REQUEST"),
]
"""What is changed about a heartbeat, and the code it gets; `?` is a byte that is not text."""


@pytest.mark.parametrize(("changed", "code"), BODIES, ids=str)
async def test_a_heartbeat_is_answered_by_its_body(
    manager: Manager, changed: dict[str, Any], code: str
) -> None:
    """And the next request on its connection, whatever was wrong with it."""
    answers = await manager.send([manager.beat(**changed).replace(b"?", b"\xff")])
    assert [answer.document()["error"] for answer in answers] == [code, "NONE"]


async def test_a_heartbeat_inside_another_head_is_none(manager: Manager) -> None:
    """Where a request has begun that is not whole, nothing is taken for one of its own."""
    [answer] = await manager.send([b"POST /v1/groups/g/offsets/fetch HTTP/1.1\r\nX: y\r\n", manager.beat()])
    assert answer.status == 400


async def test_nothing_overtakes_a_held_heartbeat(manager: Manager) -> None:
    """One behind it waits for it."""
    wire = await manager.held()
    await wire.send(manager.beat())
    await _turns()
    assert manager.runtime.parked == 1
    other = await manager.connect()
    await other.send(request_bytes("POST", "/v1/groups/g/rebalance", b'{"reason": "a test"}'))
    assert [(await wire.answer()).status for _ in range(2)] == [409, 409]


UNUSUAL = [
    (request_bytes("POST", "/v1/groups/..x/heartbeat", b"{}"), 400),
    (request_bytes("POST", "/v1/groups/../heartbeat", b"{}"), 400),
    (request_bytes("POST", BEAT, b"{}", "Expect: 100-continue\r\n"), 400),
    (request_bytes("POST", BEAT, b'{"member_id": "' + b"x" * (MAX_BYTES + 1) + b'"}'), 413),
    (request_bytes("POST", BEAT, b"not JSON"), 400),
]
CLOSED = [
    request_bytes("POST", BEAT, b"{}", "Connection: close\r\n"),
    request_bytes("POST", BEAT, b"{}", "Transfer-Encoding: chunked\r\n"),
    b"POST " + BEAT.encode() + b" HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
    b"POST " + BEAT.encode() + b" HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
]


@pytest.mark.parametrize(("raw", "status"), UNUSUAL)
async def test_what_is_unusual_is_answered_and_so_is_what_is_behind_it(
    manager: Manager, raw: bytes, status: int
) -> None:
    """Each is taken to its end."""
    answers = await manager.send([raw, manager.beat()])
    assert [answer.status for answer in answers] == [status, 200, 200]


@pytest.mark.parametrize("raw", CLOSED)
async def test_a_connection_whose_next_request_cannot_be_told_is_closed(manager: Manager, raw: bytes) -> None:
    """After an answer; so is one whose sender does not want it any more."""
    wire = await manager.connect()
    await wire.send(raw)
    assert (await wire.answer()).status == 400
    with pytest.raises((asyncio.IncompleteReadError, OSError)):
        await wire.answer()


@pytest.fixture(scope="module")
def looped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Manager]]:
    """The same for many examples, with the loop to send them in."""
    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        opened = _opened(tmp_path_factory.mktemp("looped"))
        yield loop, loop.run(stack.enter_async_context(opened))
        loop.run(stack.aclose())


@settings(max_examples=40)
@given(data=st.data())
def test_however_the_bytes_are_cut(data: st.DataObject, looped: tuple[asyncio.Runner, Manager]) -> None:
    """A stream of heartbeats and other requests is answered in order, whichever pieces it arrives in."""
    loop, manager = looped
    kinds = {
        200: manager.beat(),
        404: manager.beat(member_id="nobody"),
        409: manager.beat(generation_id=7),
        400: request_bytes("POST", "/v1/groups/g/offsets/fetch", b"[]"),
    }
    wanted = data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=5))
    stream = b"".join(kinds[status] for status in wanted)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=4)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    answers = loop.run(manager.send(pieces))
    assert [answer.status for answer in answers] == [*wanted, 200]


async def test_a_held_heartbeat_and_what_was_sent_behind_it(manager: Manager) -> None:
    """It is answered by a rebalance, and the next ones after it, in order."""
    wire = await manager.held()
    await wire.send(manager.beat(member_id="nobody"))
    await wire.send(manager.beat(generation_id=9))
    other = await manager.connect()
    await other.send(request_bytes("POST", "/v1/groups/g/rebalance", b'{"reason": "a test"}'))
    assert (await other.answer()).status == 200
    errors = [(await wire.answer()).document()["error"] for _ in range(3)]
    assert errors == ["REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"]
    assert manager.runtime.parked == 0


async def test_a_connection_that_closes_gives_its_heartbeat_up(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group hears of it, which shortens the member's session (protocol §4)."""
    gone: list[tuple[Member | None, bool]] = []
    closed = manager.runtime.closed

    def noted(connection: Connection, *, by_peer: bool) -> None:
        gone.append((connection.member, by_peer))
        closed(connection, by_peer=by_peer)

    monkeypatch.setattr(manager.runtime, "closed", noted)
    wire = await manager.held()
    await wire.close()
    await eventually(lambda: manager.runtime.parked == 0)
    told = {(member.id, by_peer) for member, by_peer in gone if member}
    assert told == {(manager.member["member_id"], True)}


async def test_a_connection_that_is_closed_as_its_member_wished_says_nothing_of_it(manager: Manager) -> None:
    """`Connection: close`: the manager closes it, although the member has kept it for several requests."""
    group = manager.runtime._coordinator.group("g")
    assert group is not None
    [member] = group.members.values()
    wire = await manager.connect()
    for _ in range(3):
        await wire.send(manager.beat())
        await wire.answer()
    assert len(member.kept) == 1
    before = group.timers.deadline(("session", member.id))
    assert before is not None
    last = json.dumps(manager.member).encode()
    await wire.send(request_bytes("POST", BEAT, last, "Connection: close\r\n"))
    await wire.answer()
    await eventually(lambda: not member.kept)
    after = group.timers.deadline(("session", member.id))
    assert after is not None
    assert after >= before


async def test_whoever_sends_too_much_behind_a_held_one_is_cut_off(manager: Manager) -> None:
    """What waits behind it is bounded."""
    wire = await manager.held()
    with suppress(OSError):
        await wire.send(b"x" * (2 * MAX_BEHIND))
    with pytest.raises((asyncio.IncompleteReadError, OSError)):
        await wire.answer()
    await eventually(lambda: manager.runtime.parked == 0)


async def test_a_manager_that_stops_answers_who_is_held(manager: Manager) -> None:
    """With COORDINATOR_NOT_AVAILABLE, and when to try again."""
    wire = await manager.held()
    await manager.runtime.stop()
    answer = await wire.answer()
    assert (answer.document()["error"], answer.headers["retry-after"]) == ("COORDINATOR_NOT_AVAILABLE", "1")
