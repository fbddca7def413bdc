"""Clients that take their time, or too much: real sockets, limits of milliseconds."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from manager.access.authorizer import Authorizer
from manager.access.rates import Rates
from manager.http.front import limits as limits_module
from manager.http.front.limits import Limits
from tests.integration.manager.clients import BOTH_LOOPS, serving
from tests.integration.manager.fuzz.front import JOIN, request_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.manager.clients import Served
    from tests.integration.manager.fuzz.front import Wire

BEAT = {"member_id": "m", "instance_id": None, "generation_id": 1, "tasks_revision": None}
pytestmark = BOTH_LOOPS
SOON = 0.05
NEVER = 3600.0


async def _is_closed(wire: Wire) -> bool:
    """Once it is; waits for as long as it is open."""
    try:
        await wire.answer()
    except (asyncio.IncompleteReadError, OSError):
        return True
    return False


@pytest.mark.parametrize(
    "begun",
    [
        b"G",
        b"GET /healthz HTTP/1.1\r\nHost: m\r\n",
        b"POST /v1/groups/g/join HTTP/1.1\r\nHost: m\r\nContent-Length: 100\r\n\r\n{",
        b"POST /v1/groups/g/heartbeat HTTP/1.1\r\nHost: m\r\nContent-Length: 100\r\n\r\n{",
        b"POST /v1/groups/g/tasks HTTP/1.1\r\nHost: m\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
async def test_a_request_that_does_not_come_to_its_end_is_cut(tmp_path: Path, begun: bytes) -> None:
    """In its head or in its body."""
    async with serving(tmp_path, Limits(request_s=SOON, idle_s=NEVER)) as served:
        wire = await served.connect()
        assert (await _asked(wire, request_bytes("GET", "/healthz"))) == 200
        await wire.send(begun)
        assert await _is_closed(wire)


async def test_dripping_does_not_help(tmp_path: Path) -> None:
    """The time counts from the first byte, however many follow one by one."""
    async with serving(tmp_path, Limits(request_s=SOON, idle_s=NEVER)) as served:
        wire = await served.connect()
        await wire.send(b"GET / HTTP/1.1\r\nX: ")
        closed = asyncio.ensure_future(_is_closed(wire))
        with suppress(OSError):
            while not closed.done():
                await wire.send(b"x")
                await asyncio.wait({closed}, timeout=0.001)
        assert await closed


async def test_a_connection_without_a_request_is_closed(tmp_path: Path) -> None:
    """A new one, and one that has been answered before, in either way."""
    async with serving(tmp_path, Limits(request_s=NEVER, idle_s=SOON)) as served:
        assert await _is_closed(await served.connect())
        for request in (request_bytes("GET", "/healthz"), _post("/v1/groups/g/heartbeat", BEAT)):
            wire = await _answered(served, request)
            assert await _is_closed(wire)


async def _answered(served: Served, request: bytes) -> Wire:
    """A connection whose request was answered; on a slow machine the first one may be closed before it."""
    while True:
        wire = await served.connect()
        try:
            await _asked(wire, request)
        except (asyncio.IncompleteReadError, OSError):
            continue
        return wire


async def test_what_is_held_is_not_cut(tmp_path: Path) -> None:
    """A held heartbeat and a stream of events stay, while one without a request is closed beside them."""
    async with serving(tmp_path, Limits(request_s=SOON, idle_s=NEVER)) as served:
        held, stream = await served.connect(), await served.connect()
        member = await _joined(held)
        beat = {**member, "wait_ms": 600_000, "tasks_revision": None}
        await held.send(_post("/v1/groups/g/heartbeat", beat))
        await stream.send(request_bytes("GET", "/v1/events", headers="Accept: text/event-stream\r\n"))
        await stream.answer(to_head=True)
        while served.runtime.parked != 1:
            await asyncio.to_thread(int)
        for _ in range(3):
            begun = await served.connect()
            await begun.send(b"G")
            assert await _is_closed(begun)
        assert (served.runtime.parked, len(served.channels)) == (1, 2)


async def _joined(wire: Wire) -> dict[str, Any]:
    await wire.send(_post("/v1/groups/g/join", JOIN | {"session_timeout_ms": 3_600_000}))
    joined = (await wire.answer()).document()
    member = {"member_id": joined["member_id"], "instance_id": None, "generation_id": joined["generation_id"]}
    sync = {**member, "protocol_type": None, "protocol_name": None}
    await wire.send(_post("/v1/groups/g/sync", {**sync, "assignments": []}))
    await wire.answer()
    return member


def _post(path: str, body: Any) -> bytes:
    return request_bytes("POST", path, json.dumps(body).encode())


async def _asked(wire: Wire, request: bytes) -> int:
    await wire.send(request)
    return (await wire.answer()).status


async def test_an_address_has_only_so_many_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more is closed at once, and is welcome when another has gone."""
    monkeypatch.setattr(limits_module, "_is_local", lambda _: False)
    async with serving(tmp_path, Limits(connections=2)) as served:
        wires = [await served.connect() for _ in range(2)]
        for wire in wires:
            assert (await _asked(wire, request_bytes("GET", "/healthz"))) == 200
        assert await _is_closed(await served.connect())
        await wires[0].close()
        while True:
            wire = await served.connect()
            try:
                assert (await _asked(wire, request_bytes("GET", "/healthz"))) == 200
                break
            except (asyncio.IncompleteReadError, OSError):
                continue


async def test_a_client_that_asks_too_often_is_told_when_to_go_on(tmp_path: Path) -> None:
    """429 with Retry-After; members are not counted, and health is asked as often as one likes."""
    rates = Rates(per_s=0.001, burst=3)
    async with serving(tmp_path, Limits(), rates=rates) as served, aiohttp.ClientSession() as session:
        for _ in range(10):
            async with session.get(served.url + "/healthz") as answer:
                assert answer.status == 200
            async with session.post(served.url + "/v1/groups/g/join", json={}) as answer:
                assert answer.status == 400
        for expected in ("NONE", "NONE", "NONE", "THROTTLING_QUOTA_EXCEEDED", "THROTTLING_QUOTA_EXCEEDED"):
            async with session.get(served.url + "/v1/groups") as answer:
                assert (await answer.json())["error"] == expected
        assert answer.status == 429
        assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("path", ["/openapi.json", "/assets/console.css"])
async def test_what_needs_no_token_is_counted_too(tmp_path: Path, path: str) -> None:
    """By address; health is not, or a manager that is asked too much would be taken for dead."""
    rates = Rates(per_s=0.001, burst=3)
    async with serving(tmp_path, Limits(), rates=rates) as served, aiohttp.ClientSession() as session:
        for expected in (200, 200, 200, 429):
            async with session.get(served.url + path) as answer:
                assert answer.status == expected
        for health in ("/healthz", "/readyz"):
            async with session.get(served.url + health) as answer:
                assert answer.status == 200


async def test_tokens_cannot_be_tried_out(tmp_path: Path) -> None:
    """Wrong ones count wherever they are shown, the form for people and members' requests included."""
    closed = Authorizer(lambda: 0)
    rates = Rates(per_s=0.001, burst=3)
    async with (
        serving(tmp_path, Limits(), rates=rates, access=closed) as served,
        aiohttp.ClientSession() as session,
    ):
        for path, expected in (("groups/g/join", 401), ("groups/g/heartbeat", 401), ("groups/g/join", 401)):
            async with session.post(f"{served.url}/v1/{path}", json={}) as answer:
                assert answer.status == expected
        for path in ("/v1/groups/g/join", "/login"):
            async with session.post(served.url + path, data={"token": "x"}) as answer:
                assert answer.status == 429


async def test_heads_have_limits(tmp_path: Path) -> None:
    """A line, a header and their number; the answer is INVALID_REQUEST."""
    async with serving(tmp_path, Limits()) as served:
        for head in (
            f"GET /{'x' * 9000} HTTP/1.1\r\nHost: m\r\n\r\n",
            f"GET / HTTP/1.1\r\nHost: m\r\nX: {'x' * 9000}\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: m\r\n" + "".join(f"X{n}: y\r\n" for n in range(200)) + "\r\n",
        ):
            wire = await served.connect()
            await wire.send(head.encode())
            answer = await wire.answer()
            assert (answer.status, answer.document()["error"]) == (400, "INVALID_REQUEST")
