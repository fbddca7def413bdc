from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from manager.clock import read_clocks
from manager.core import connections, sessions
from manager.core.commands import CreateTask
from manager.http.front.limits import Limits
from protocol.states import Target
from tests.fakes.turns import PATIENCE_S, eventually
from tests.integration.manager.clients import serving
from tests.unit.manager.core.bench import definition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.manager.clients import Served

CREATED = CreateTask(task="t", definition=definition(), target=Target.RUNNING)
SESSION_MS = 1_000_000
GRACE_MS = 500_000
"""Nobody is removed in these tests: how long a member may still be silent is looked at instead."""

MEMBER = """
import http.client, json, sys

where, way, session_ms = sys.argv[1], sys.argv[2], int(sys.argv[3])
kept = http.client.HTTPConnection(where)

def post(what, body, connection=None):
    headers = {"Connection": "close"} if way == "says close" else {}
    connection = connection or (http.client.HTTPConnection(where) if way == "one each" else kept)
    connection.request("POST", "/v1/groups/g/" + what, json.dumps(body), headers)
    answer = json.loads(connection.getresponse().read())
    if way == "one each":
        connection.close()
    return answer

joined = post("join", {
    "member_id": "", "session_timeout_ms": session_ms, "rebalance_timeout_ms": 60000,
    "protocol_type": "sparkherd",
    "protocols": [{"name": "sticky", "metadata": {"owned": {}}}], "require_member_id": False,
})
here = {name: joined[name] for name in ("member_id", "generation_id")}
post("sync", here | {"assignments": [{"member_id": here["member_id"], "assignment": {"tasks": ["t"]}}]})
claimed = post("claim", here | {"tasks": ["t"]})
if way == "several":
    others = [http.client.HTTPConnection(where) for _ in range(2)]
    for other in others * 2:
        post("heartbeat", here, other)
    kept.close()
print("claimed", len(claimed["granted"]), flush=True)
sys.stdin.readline()
"""


class Manager:
    """A manager on a real socket, and how long the one member of its group may still be silent."""

    def __init__(self, served: Served) -> None:
        self.runtime = served.runtime
        self._served = served

    @property
    def connections(self) -> int:
        return len(self._served.connections)

    @property
    def left_ms(self) -> int:
        group = self.runtime._coordinator.group("g")
        assert group is not None
        (member,) = group.members.values()
        return (group.timers.deadline(sessions.key(member)) or 0) - read_clocks().mono

    async def claimed(self, way: str) -> asyncio.subprocess.Process:
        """A process that has just been told that it owns the task."""
        where = f"127.0.0.1:{self._served.port}"
        pipe = asyncio.subprocess.PIPE
        member = await asyncio.create_subprocess_exec(
            sys.executable, "-c", MEMBER, where, way, str(SESSION_MS), stdin=pipe, stdout=pipe
        )
        assert member.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert await member.stdout.readline() == b"claimed 1\n"
        return member

    async def kill(self, member: asyncio.subprocess.Process) -> None:
        """It is gone, and the manager has noticed as much of that as it ever will."""
        member.kill()
        await member.wait()
        await eventually(lambda: not self.connections, "every connection is gone")


@asynccontextmanager
async def managed(folder: Path, limits: Limits | None = None) -> AsyncIterator[Manager]:
    async with serving(folder, limits, disconnect_grace_ms=GRACE_MS) as served:
        await served.runtime.ask("g", CREATED)
        yield Manager(served)


@pytest.fixture
async def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Manager]:
    monkeypatch.setattr(connections, "QUIET_MS", SESSION_MS)
    async with managed(tmp_path) as manager:
        yield manager


@pytest.mark.parametrize("way", ["kept", "several"])
async def test_a_process_killed_right_after_its_claims_answer_is_noticed(manager: Manager, way: str) -> None:
    """No request of it waits then: that it closes what it has kept says enough."""
    member = await manager.claimed(way)
    await eventually(lambda: manager.connections == (2 if way == "several" else 1), "what is left is open")
    assert manager.left_ms > GRACE_MS, "one of several was closed, which says nothing"
    await manager.kill(member)
    assert 0 < manager.left_ms <= GRACE_MS


@pytest.mark.parametrize("way", ["one each", "says close"])
async def test_who_opens_a_connection_for_each_request_has_its_session(manager: Manager, way: str) -> None:
    """Each is closed after its answer, by the member or, if it asks for that, by the manager."""
    member = await manager.claimed(way)
    await eventually(lambda: not manager.connections, "every connection is gone")
    assert manager.left_ms > GRACE_MS
    await manager.kill(member)


async def test_a_connection_that_the_manager_closes_says_nothing_of_the_member(tmp_path: Path) -> None:
    """Here because nothing was asked on it for a while."""
    async with managed(tmp_path, Limits(idle_s=0.05)) as manager:
        member = await manager.claimed("kept")
        await eventually(lambda: not manager.connections, "it was idle for too long")
        assert manager.left_ms > GRACE_MS
        await manager.kill(member)
