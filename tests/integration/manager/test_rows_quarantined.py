"""What people and other systems see of rows that a task has put aside, over real connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from protocol.messages.base import encode_opaque
from protocol.messages.membership import MemberAssignment, Protocol, SyncRequest
from protocol.messages.ownership import ClaimRequest, ReportRequest, TaskReport
from protocol.states import TaskState
from tests.integration.manager.clients import serving
from tests.integration.manager.members import error, join

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.manager.clients import Served

DEFINITION = {
    "source": {"format": "rate"},
    "sink": {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "t"}},
    "expect": [{"name": "positive", "where": "value > 0", "on_violation": "quarantine"}],
}


class Stage:
    """A manager on a real socket, and a worker that has the task `t`."""

    def __init__(self, served: Served, member_id: str, token: int) -> None:
        self._served = served
        self._member_id = member_id
        self._token = token

    async def create(self, task: str, definition: dict[str, Any]) -> None:
        """One more task, which nobody has."""
        path = f"{self._served.url}/v1/groups/g/tasks/{task}"
        async with self._served.session.put(path, json={"definition": definition}) as answer:
            assert answer.status == 201

    async def report(self, batch_id: int, **metrics: Any) -> None:
        """What the worker tells."""
        entry = TaskReport(
            task="t", token=self._token, state=TaskState.RUNNING, batch_id=batch_id, metrics=metrics
        )
        answer = await self._served.runtime.ask("g", ReportRequest(member_id=self._member_id, tasks=(entry,)))
        assert error(answer) == "NONE"

    async def get(self, path: str) -> Any:
        """JSON, or a page."""
        async with self._served.session.get(self._served.url + path) as answer:
            is_json = answer.content_type == "application/json"
            return await answer.json() if is_json else " ".join((await answer.text()).split())

    async def told(self) -> list[dict[str, Any]]:
        """Events of such rows."""
        events = (await self.get("/v1/events"))["events"]
        return [event for event in events if event["type"] == "rows.quarantined"]


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with serving(tmp_path) as served:
        body = {"task": "t", "definition": DEFINITION}
        async with served.session.post(f"{served.url}/v1/groups/g/tasks", json=body) as answer:
            assert answer.status == 201
        ask = served.runtime.ask
        protocols = (Protocol("sticky", encode_opaque({})),)
        joined: Any = await ask("g", join(protocol_type="sparkherd", protocols=protocols))
        here = {"member_id": joined.member_id, "generation_id": joined.generation_id}
        given = (MemberAssignment(joined.member_id, encode_opaque({"tasks": ["t"]})),)
        await ask("g", SyncRequest(**here, assignments=given))
        claimed: Any = await ask("g", ClaimRequest(**here, tasks=("t",)))
        yield Stage(served, joined.member_id, claimed.granted[0].token)


async def test_an_event_is_stored_and_shown_without_what_is_not_its_own(stage: Stage) -> None:
    """By a report that changes nothing else of what is stored."""
    await stage.report(0, rows=10, quarantined=0)
    assert await stage.told() == []
    await stage.report(1, rows=10, quarantined=1234, left_out={"positive": 1234})
    [event] = await stage.told()
    assert event.keys() == {
        "id",
        "at_ms",
        "type",
        "group",
        "task",
        "member",
        "generation_id",
        "rows",
        "reasons",
    }
    assert (event["task"], event["rows"], event["reasons"]) == ("t", 1234, {"positive": 1234})
    assert "1,234 rows put aside: positive 1,234" in await stage.get("/events?type=rows.quarantined")


async def test_the_page_of_the_task_has_what_was_left_out_before_and_after(stage: Stage) -> None:
    """By the definition at first, then by what is reported; and the event in its history."""
    page = await stage.get("/groups/g/tasks/t")
    assert "0 rows put aside, 0 dropped" in page
    assert "positive" in page.partition('id="left-out"')[2].partition("</section>")[0]
    await stage.report(1, rows=10, quarantined=12, left_out={"positive": 12})
    page = await stage.get("/groups/g/tasks/t")
    assert "12 rows put aside, 0 dropped" in page
    assert "rows.quarantined: 12" in page


async def test_a_task_that_leaves_nothing_out_has_no_such_section(stage: Stage) -> None:
    """Which is most of them."""
    await stage.create("plain", {**DEFINITION, "expect": []})
    assert 'id="left-out"' not in await stage.get("/groups/g/tasks/plain")
