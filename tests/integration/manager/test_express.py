"""The express lane and the ordinary way, side by side in front of one runtime."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from manager.access.access import open_to_all
from manager.app import make_app
from manager.http.front.express import MAX_BACKLOG, Carrier, Express, Lane
from manager.http.front.server import EXPRESS, Runner
from manager.runtime.runtime import Runtime
from manager.settings import GroupSettings
from manager.storage.sql import SqlStorage
from protocol.messages.groups import Coordinator
from tests.fakes.turns import eventually
from tests.integration.manager.fuzz.front import JOIN, Answer, Wire, request_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from manager.core.connections import Connection
    from manager.core.member import Member

MAX_BYTES = 100_000
BEAT = "/v1/groups/g/heartbeat"
LAST = request_bytes("GET", "/healthz", headers="Connection: close\r\n")


class _NoLane(Lane):
    """Takes nothing."""

    def take(self, data: bytes) -> bool:
        del data
        return False


class _NoExpress(Express):
    """Whose connections have such a lane."""

    def lane(self, carrier: Carrier) -> Lane:
        return _NoLane(self, carrier)


@dataclass
class Fronts:
    """A member of a Stable group, and two ways to send its requests."""

    runtime: Runtime
    express: Runner
    ordinary: Runner
    member: dict[str, Any]

    async def connect(self, runner: Runner) -> Wire:
        """A new connection."""
        return Wire(*await asyncio.open_connection(*runner.addresses[0]))

    async def send(self, runner: Runner, pieces: list[bytes]) -> list[Answer]:
        """The answers to `pieces`, each of which arrives by itself, and to a last request."""
        wire = await self.connect(runner)
        answers = []
        with suppress(OSError, asyncio.IncompleteReadError):
            for piece in [*pieces, LAST]:
                await wire.send(piece)
                await _turns()
            while True:
                answers.append(await wire.answer())
        await wire.close()
        return answers

    def beat(self, **changed: Any) -> bytes:
        """A heartbeat of the member as a request."""
        return request_bytes("POST", BEAT, json.dumps({**self.member, **changed}).encode())


async def _turns() -> None:
    """Let what was sent arrive before more of it is sent."""
    for _ in range(5):
        await asyncio.to_thread(int)


def _told(answers: list[Answer]) -> list[tuple[int, dict[str, str], bytes]]:
    """Everything but the time of day."""
    return [(a.status, {k: v for k, v in a.headers.items() if k != "date"}, a.body) for a in answers]


@pytest.fixture
async def fronts(tmp_path: Path) -> AsyncIterator[Fronts]:
    async with _opened(tmp_path) as fronts:
        yield fronts


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Fronts]:
    storage = SqlStorage(f"sqlite+aiosqlite:///{folder}/m.db")
    runtime = Runtime(GroupSettings(initial_rebalance_delay_ms=0), storage)
    await runtime.start()
    runners = []
    for is_express in (True, False):
        app = make_app(runtime, Coordinator(id="m", url="http://m"), MAX_BYTES)
        if not is_express:
            app[EXPRESS] = _NoExpress(runtime, MAX_BYTES, open_to_all())
        runners.append(Runner(app))
        await runners[-1].setup()
        await web.TCPSite(runners[-1], "127.0.0.1", 0).start()
    express, ordinary = runners
    fronts = Fronts(runtime, express, ordinary, member={})
    fronts.member = await _joined(fronts)
    yield fronts
    await runtime.stop()
    for runner in runners:
        await runner.cleanup()


async def _joined(fronts: Fronts) -> dict[str, Any]:
    wire = await fronts.connect(fronts.ordinary)
    await wire.send(request_bytes("POST", "/v1/groups/g/join", json.dumps(JOIN).encode()))
    joined = (await wire.answer()).document()
    member = {name: joined[name] for name in ("member_id", "generation_id")}
    await wire.send(
        request_bytes("POST", "/v1/groups/g/sync", json.dumps(member | {"assignments": []}).encode())
    )
    await wire.answer()
    await wire.close()
    return member


BODIES = [
    {},
    {"generation_id": 9},
    {"member_id": "nobody"},
    {"instance_id": "unknown"},
    {"wait_ms": -1},
    {"generation_id": "1"},
    {"member_id": "é"},
    {"more": {"deep": [1]}},
    {"tasks_revision": 99, "wait_ms": 0},
    {"more": json.loads("[" * 150 + "]" * 150)},
]


@pytest.mark.parametrize("changed", BODIES, ids=str)
async def test_both_ways_give_the_same_answer(fronts: Fronts, changed: dict[str, Any]) -> None:
    """Status, headers and body, whatever the body says."""
    express = await fronts.send(fronts.express, [fronts.beat(**changed)])
    assert _told(express) == _told(await fronts.send(fronts.ordinary, [fronts.beat(**changed)]))
    assert len(express) == 2


async def test_both_ways_refuse_what_is_not_text(fronts: Fronts) -> None:
    """In a field that nobody reads, too."""
    body = json.dumps({**fronts.member, "more": "?"}).encode().replace(b"?", b"\xff")
    pieces = [request_bytes("POST", BEAT, body)]
    express = await fronts.send(fronts.express, pieces)
    assert express[0].status == 400
    assert _told(express) == _told(await fronts.send(fronts.ordinary, pieces))


async def test_a_heartbeat_inside_another_head_is_none(fronts: Fronts) -> None:
    """Where a request has begun that is not whole, nothing is taken for one of its own."""
    pieces = [b"POST /v1/groups/g/offsets/fetch HTTP/1.1\r\nX: y\r\n", fronts.beat()]
    express = await fronts.send(fronts.express, pieces)
    assert express[0].status == 400
    assert _told(express) == _told(await fronts.send(fronts.ordinary, pieces))


async def test_nothing_overtakes_an_ordinary_request(fronts: Fronts) -> None:
    """A heartbeat behind one that waits the ordinary way waits for it."""
    wire = await fronts.connect(fronts.express)
    held = json.dumps({**fronts.member, "wait_ms": 60_000}).encode()
    await wire.send(request_bytes("POST", BEAT, held, "X-Ordinary: yes\r\n"))
    await eventually(lambda: fronts.runtime.parked == 1)
    await wire.send(fronts.beat())
    await _turns()
    assert fronts.runtime.parked == 1
    other = await fronts.connect(fronts.ordinary)
    await other.send(request_bytes("POST", "/v1/groups/g/rebalance", b'{"reason": "a test"}'))
    assert [(await wire.answer()).status for _ in range(2)] == [409, 409]
    await wire.close()
    await other.close()


@pytest.mark.parametrize(
    "raw",
    [
        request_bytes("POST", "/v1/groups/..x/heartbeat", b"{}"),
        request_bytes("POST", "/v1/groups/../heartbeat", b"{}"),
        request_bytes("POST", BEAT, b"{}", "Expect: 100-continue\r\n"),
        request_bytes("POST", BEAT, b"{}", "Connection: close\r\n"),
        request_bytes("POST", BEAT, b"{}", "Transfer-Encoding: chunked\r\n"),
        request_bytes("POST", BEAT, b'{"member_id": "' + b"x" * (MAX_BYTES + 1) + b'"}'),
        request_bytes("POST", BEAT, b"not JSON"),
        b"POST " + BEAT.encode() + b" HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
        b"POST " + BEAT.encode() + b" HTTP/1.1\r\n\r\n",
        b"POST " + BEAT.encode() + b" HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    ],
)
async def test_what_is_unusual_goes_the_ordinary_way(fronts: Fronts, raw: bytes) -> None:
    """Same answers, same end of the connection; also for the heartbeat behind it."""
    pieces = [raw, fronts.beat()]
    assert _told(await fronts.send(fronts.express, pieces)) == _told(
        await fronts.send(fronts.ordinary, pieces)
    )


async def test_plain_heartbeats_are_answered_in_the_lane(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ordinary way is shut, and they are answered all the same; between other requests, too."""
    ask = fronts.runtime.ask
    offsets = request_bytes("POST", "/v1/groups/g/offsets/fetch", b'{"keys": null}')
    monkeypatch.setattr(fronts.runtime, "ask", None)
    beats = await fronts.send(fronts.express, [fronts.beat()] * 3)
    assert [answer.status for answer in beats] == [200] * 4
    monkeypatch.setattr(fronts.runtime, "ask", ask)
    mixed = await fronts.send(fronts.express, [fronts.beat(), offsets, fronts.beat()])
    assert _told(mixed) == _told(await fronts.send(fronts.ordinary, [fronts.beat(), offsets, fronts.beat()]))


@pytest.fixture(scope="module")
def looped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Fronts]]:
    """The same for many examples, with the loop to send them in."""
    with asyncio.Runner() as loop:
        stack = AsyncExitStack()
        opened = _opened(tmp_path_factory.mktemp("looped"))
        yield loop, loop.run(stack.enter_async_context(opened))
        loop.run(stack.aclose())


@settings(max_examples=40)
@given(data=st.data())
def test_however_the_bytes_are_cut(data: st.DataObject, looped: tuple[asyncio.Runner, Fronts]) -> None:
    """A stream of heartbeats and other requests is answered in order, whichever pieces it arrives in."""
    loop, fronts = looped
    kinds = {
        200: fronts.beat(),
        404: fronts.beat(member_id="nobody"),
        409: fronts.beat(generation_id=7),
        400: request_bytes("POST", "/v1/groups/g/offsets/fetch", b"[]"),
    }
    wanted = data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=5))
    stream = b"".join(kinds[status] for status in wanted)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=4)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    answers = loop.run(fronts.send(fronts.express, pieces))
    assert [answer.status for answer in answers] == [*wanted, 200]


async def test_a_held_heartbeat_and_what_was_sent_behind_it(fronts: Fronts) -> None:
    """It is answered by a rebalance, and the next ones after it, in order."""
    wire = await fronts.connect(fronts.express)
    await wire.send(fronts.beat(wait_ms=60_000))
    await eventually(lambda: fronts.runtime.parked == 1)
    await wire.send(fronts.beat(member_id="nobody"))
    await wire.send(fronts.beat(generation_id=9))
    other = await fronts.connect(fronts.ordinary)
    await other.send(request_bytes("POST", "/v1/groups/g/rebalance", b'{"reason": "a test"}'))
    assert (await other.answer()).status == 200
    errors = [(await wire.answer()).document()["error"] for _ in range(3)]
    assert errors == ["REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"]
    assert fronts.runtime.parked == 0
    await wire.close()
    await other.close()


async def test_a_connection_that_closes_gives_its_heartbeat_up(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group hears of it, which shortens the member's session (protocol §4)."""
    gone: list[tuple[Member | None, bool]] = []
    closed = fronts.runtime.closed

    def noted(connection: Connection, *, by_peer: bool) -> None:
        gone.append((connection.member, by_peer))
        closed(connection, by_peer=by_peer)

    monkeypatch.setattr(fronts.runtime, "closed", noted)
    wire = await fronts.connect(fronts.express)
    await wire.send(fronts.beat(wait_ms=60_000))
    await eventually(lambda: fronts.runtime.parked == 1)
    await wire.close()
    await eventually(lambda: fronts.runtime.parked == 0)
    assert [(member.id, by_peer) for member, by_peer in gone if member] == [
        (fronts.member["member_id"], True)
    ]


@pytest.mark.parametrize("is_express", [False, True])
async def test_a_connection_that_is_closed_as_its_member_wished_says_nothing_of_it(
    is_express: bool,  # noqa: FBT001
    fronts: Fronts,
) -> None:
    """`Connection: close`: the manager closes it, although the member has kept it for several requests."""
    runner = fronts.express if is_express else fronts.ordinary
    group = fronts.runtime._coordinator.group("g")
    assert group is not None
    [member] = group.members.values()
    wire = await fronts.connect(runner)
    for _ in range(3):
        await wire.send(fronts.beat())
        await wire.answer()
    assert len(member.kept) == 1
    before = group.timers.deadline(("session", member.id))
    assert before is not None
    last = json.dumps(fronts.member).encode()
    await wire.send(request_bytes("POST", BEAT, last, "Connection: close\r\n"))
    await wire.answer()
    await eventually(lambda: not member.kept)
    after = group.timers.deadline(("session", member.id))
    assert after is not None
    assert after >= before
    await wire.close()


async def test_whoever_sends_too_much_behind_a_held_one_is_cut_off(fronts: Fronts) -> None:
    """What waits behind it is bounded."""
    wire = await fronts.connect(fronts.express)
    await wire.send(fronts.beat(wait_ms=60_000))
    await eventually(lambda: fronts.runtime.parked == 1)
    with suppress(OSError):
        await wire.send(b"x" * (2 * MAX_BACKLOG))
    with pytest.raises((asyncio.IncompleteReadError, OSError)):
        await wire.answer()
    await eventually(lambda: fronts.runtime.parked == 0)
    await wire.close()


async def test_a_manager_that_stops_answers_who_is_held(fronts: Fronts) -> None:
    """With COORDINATOR_NOT_AVAILABLE, and when to try again."""
    wire = await fronts.connect(fronts.express)
    await wire.send(fronts.beat(wait_ms=60_000))
    await eventually(lambda: fronts.runtime.parked == 1)
    await fronts.runtime.stop()
    answer = await wire.answer()
    assert (answer.document()["error"], answer.headers["retry-after"]) == ("COORDINATOR_NOT_AVAILABLE", "1")
    await wire.close()


def test_a_small_limit_for_bodies_is_the_lanes_too() -> None:
    """`--max-request-bytes` holds for heartbeats as well."""
    runtime: Any = None
    assert Express(runtime, 10, open_to_all()).max_body == 10
