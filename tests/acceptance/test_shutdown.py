"""SIGTERM: every request that waits gets its one answer before the process ends."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Self

import pytest

from tests.acceptance.processes import Manager
from tests.integration.manager.fuzz.front import Answer, Wire, request_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

PATIENCE_S = 120
JOIN: dict[str, Any] = {
    "member_id": "",
    "session_timeout_ms": 600_000,
    "rebalance_timeout_ms": 600_000,
    "protocol_type": "sparkherd",
    "protocols": [{"name": "sticky", "metadata": {}}],
    "require_member_id": False,
}
DEFINITION = {"source": {"format": "rate"}, "sink": {"format": "console"}}


class Caller:
    """Asks one manager over connections of its own."""

    def __init__(self, url: str) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._wires: list[Wire] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for wire in self._wires:
            await wire.close()

    async def send(self, method: str, path: str, body: Any) -> Wire:
        """Send, and leave the answer to be read."""
        wire = Wire(*await asyncio.open_connection(self._host, self._port))
        self._wires.append(wire)
        await wire.send(request_bytes(method, path, json.dumps(body).encode()))
        return wire

    async def ask(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Ask, and read the answer."""
        return (await read(await self.send(method, path, body))).document()


async def read(wire: Wire) -> Answer:
    """The next answer of a connection."""
    async with asyncio.timeout(PATIENCE_S):
        return await wire.answer()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """Groups complete at once, so that the tests decide who waits."""
    manager = Manager(tmp_path, "--initial-rebalance-delay-ms", "0")
    yield manager
    manager.stop()


async def stable(caller: Caller, group: str) -> dict[str, Any]:
    """Two members in Stable; a task belongs to the leader and is assigned to the other."""
    path = f"/v1/groups/{group}"
    await caller.ask("PUT", f"{path}/tasks/t", {"definition": DEFINITION})
    leader = await caller.ask("POST", f"{path}/join", JOIN)
    here = {"member_id": leader["member_id"], "generation_id": 1}
    await caller.ask("POST", f"{path}/sync", here | {"assignments": given(here, ["t"])})
    assert (await caller.ask("POST", f"{path}/claim", here | {"tasks": ["t"]}))["granted"]
    return here


def given(to: dict[str, Any], tasks: list[str]) -> list[dict[str, Any]]:
    return [{"member_id": to["member_id"], "assignment": {"tasks": tasks}}]


async def park_heartbeat(caller: Caller, group: str) -> Wire:
    here = await stable(caller, group)
    return await caller.send("POST", f"/v1/groups/{group}/heartbeat", here | {"wait_ms": 200_000})


async def park_join(caller: Caller, group: str) -> Wire:
    await stable(caller, group)
    return await caller.send("POST", f"/v1/groups/{group}/join", JOIN)


async def rejoined(caller: Caller, group: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Leader and follower of the second generation, which has no assignment yet."""
    here = await stable(caller, group)
    coming = await caller.send("POST", f"/v1/groups/{group}/join", JOIN)
    path = f"/v1/groups/{group}"
    while len((await caller.ask("GET", path))["members"]) < 2:
        pass
    owning = [{"name": "sticky", "metadata": {"owned": {"t": 1}}}]
    again = await caller.ask(
        "POST", f"{path}/join", JOIN | {"member_id": here["member_id"], "protocols": owning}
    )
    follower = (await read(coming)).document()
    assert again["generation_id"] == follower["generation_id"] == 2
    return (
        {"member_id": again["member_id"], "generation_id": 2},
        {"member_id": follower["member_id"], "generation_id": 2},
    )


async def park_sync(caller: Caller, group: str) -> Wire:
    _, follower = await rejoined(caller, group)
    return await caller.send("POST", f"/v1/groups/{group}/sync", follower)


async def park_claim(caller: Caller, group: str) -> Wire:
    leader, follower = await rejoined(caller, group)
    await caller.ask("POST", f"/v1/groups/{group}/sync", leader | {"assignments": given(follower, ["t"])})
    await caller.ask("POST", f"/v1/groups/{group}/sync", follower)
    wants = follower | {"tasks": ["t"], "wait_ms": 200_000}
    return await caller.send("POST", f"/v1/groups/{group}/claim", wants)


async def park_fifty(caller: Caller) -> list[Wire]:
    """Of every kind."""
    kinds = [park_heartbeat] * 15 + [park_join] * 15 + [park_sync] * 10 + [park_claim] * 10
    parked = [await park(caller, f"g{number}") for number, park in enumerate(kinds)]
    await caller.ask("GET", "/v1/groups")  # whatever was sent before has been read by now
    return parked


async def end(manager: Manager) -> int:
    return await asyncio.to_thread(manager.process.wait, PATIENCE_S)


@pytest.mark.parametrize("signals", [1, 3])
async def test_everything_that_waits_is_answered_before_the_end(manager: Manager, signals: int) -> None:
    """Fifty of them, COORDINATOR_NOT_AVAILABLE with Retry-After each; more signals change nothing."""
    async with Caller(manager.url) as caller:
        parked = await park_fifty(caller)
        assert not any(wire._reader._buffer for wire in parked)  # type: ignore[attr-defined]
        for _ in range(signals):
            manager.process.send_signal(signal.SIGTERM)
        replies = await asyncio.gather(*map(read, parked))
        assert {(reply.status, reply.document()["error"]) for reply in replies} == {
            (503, "COORDINATOR_NOT_AVAILABLE")
        }
        assert all(int(reply.headers["retry-after"]) > 0 for reply in replies)
        bodies = [reply.document() for reply in replies]
        joins = [body for body in bodies if "generation_id" in body]
        assert [body["generation_id"] for body in joins] == [-1] * 15
        assert await end(manager) == 0
        assert [await wire._reader.read() for wire in parked] == [b""] * len(parked)
        with pytest.raises(ConnectionRefusedError):
            await caller.send("GET", "/healthz", None)
    assert "Traceback" not in manager.log()
    assert "error" not in manager.log()


async def test_a_locked_database_does_not_keep_it_from_ending(manager: Manager) -> None:
    """What waits for the database is answered, who comes meanwhile too, and the process ends in time."""
    async with Caller(manager.url) as caller:
        held = await park_heartbeat(caller, "held")
        with closing(sqlite3.connect(manager.database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            waiting = [await caller.send("POST", f"/v1/groups/new{n}/join", JOIN) for n in range(5)]
            await caller.ask("GET", "/v1/groups")
            manager.process.send_signal(signal.SIGTERM)
            assert (await read(held)).status == 503
            late = await caller.ask("POST", "/v1/groups/late/join", JOIN)
            assert (late["error"], late["generation_id"]) == ("COORDINATOR_NOT_AVAILABLE", -1)
            assert (await caller.ask("GET", "/readyz"))["error"] == "COORDINATOR_NOT_AVAILABLE"
            assert [(await read(reader)).status for reader in waiting] == [503] * 5
            assert await end(manager) == 0
    assert "Traceback" not in manager.log()


async def test_the_manager_goes_on_where_it_stopped(manager: Manager) -> None:
    """Started again, a member that was told to try again notices nothing else."""
    async with Caller(manager.url) as caller:
        here = await stable(caller, "g")
    manager.terminate()
    manager.start()
    async with Caller(manager.url) as caller:
        assert (await caller.ask("POST", "/v1/groups/g/heartbeat", here))["error"] == "NONE"
