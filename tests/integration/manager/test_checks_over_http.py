"""Checks over real connections: what is refused, what is passed on, and what a hang-up leads to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from protocol.messages.base import encode_opaque
from protocol.messages.membership import HeartbeatRequest, Protocol, SyncRequest
from tests.fakes.turns import eventually
from tests.integration.manager.clients import serving
from tests.integration.manager.members import join

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.manager.clients import Served

DEFINITION = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
FOUND = {"columns": [{"name": "value", "type": "bigint"}], "rows": [[1], ["9007199254740993"]]}


class Stage:
    """A manager on a real socket, and a worker that does what the test wants."""

    def __init__(self, served: Served, member_id: str) -> None:
        self.served = served
        self.member_id = member_id

    async def post(self, what: str, **body: Any) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer."""
        async with self.served.session.post(f"{self.served.url}/v1/groups/g/{what}", json=body) as answer:
            return answer.status, await answer.json()

    async def beat(self, wait_ms: int = 0, check: str | None = None) -> dict[str, Any]:
        """A heartbeat's answer."""
        known = {"wait_ms": wait_ms, "check": check}
        return (await self.post("heartbeat", member_id=self.member_id, generation_id=1, **known))[1]

    def begin(self, **more: Any) -> asyncio.Task[tuple[int, dict[str, Any]]]:
        """Ask for a check."""
        return asyncio.create_task(self.post("checks", **{"definition": DEFINITION} | more))

    async def told(self) -> str:
        """The check that the worker hears of."""
        return str((await self.beat(wait_ms=300_000))["check"])


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with serving(tmp_path) as served:
        told = (Protocol("sticky", encode_opaque({"checks": True})),)
        joined: Any = await served.runtime.ask("g", join(protocol_type="sparkherd", protocols=told))
        sync = SyncRequest(member_id=joined.member_id, generation_id=joined.generation_id)
        await served.runtime.ask("g", sync)
        beat = HeartbeatRequest(member_id=joined.member_id, generation_id=joined.generation_id)
        assert beat.generation_id == 1
        yield Stage(served, joined.member_id)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"definition": {"source": {"format": "rate"}}}, 400, "definition.sink: is required with source"),
        ({"definition": DEFINITION, "rows": 101}, 400, "rows"),
        ({"definition": DEFINITION, "timeout_ms": 60_001}, 400, "timeout_ms"),
        ({"definition": DEFINITION, "begin": "middle"}, 400, "begin"),
        ({"definition": {"entrypoint": "a.b:c"}}, 409, "what the entry point a.b:c reads and writes"),
    ],
)
async def test_what_no_worker_is_asked_for(
    stage: Stage, body: dict[str, Any], status: int, said: str
) -> None:
    """The manager says what is wrong, and where."""
    found, answer = await stage.post("checks", **body)
    assert (found, said in answer["message"]) == (status, True)
    assert "check" not in await stage.beat()


async def test_a_worker_s_word_reaches_whoever_asked(stage: Stage) -> None:
    """As it was said; the audit log has that it was asked for, and nothing of what."""
    with capture_logs() as logs:
        asked = stage.begin(rows=2, begin="end")
        check = await stage.told()
        me = {"member_id": stage.member_id, "check": check}
        _, wanted = await stage.post("checks/fetch", **me)
        assert (wanted["definition"], wanted["rows"], wanted["begin"]) == (DEFINITION, 2, "end")
        assert (await stage.post("checks/report", **me, result=FOUND))[0] == 200
        status, answer = await asked
    assert (status, answer["worker"]) == (200, stage.member_id)
    assert {name: answer[name] for name in FOUND} == FOUND
    [line] = [each for each in logs if each["event"] == "audit"]
    assert (line["operation"], line["result"]) == ("checkDefinition", "NONE")
    assert "rate" not in repr(line)


async def test_whoever_hangs_up_frees_the_worker(stage: Stage) -> None:
    """It hears so in its held heartbeat, and is there for the next."""
    asked = stage.begin()
    check = await stage.told()
    held = asyncio.create_task(stage.beat(wait_ms=300_000, check=check))
    await eventually(lambda: stage.served.runtime.parked == 2)
    asked.cancel()
    assert "check" not in await held
    assert (await stage.post("checks/fetch", member_id=stage.member_id, check=check))[0] == 404
    again = stage.begin()
    assert await stage.told() != check
    again.cancel()


async def test_a_manager_that_stops_says_so(stage: Stage) -> None:
    """Whoever waits is to ask again."""
    asked = stage.begin()
    await stage.told()
    await stage.served.runtime.stop()
    status, answer = await asked
    assert (status, answer["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
