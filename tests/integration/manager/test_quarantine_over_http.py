"""Requests about quarantined rows over real connections: who may ask for what, and what a worker is told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from protocol.roles import Role
from tests.integration.manager.secured import Tokens, Web, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import aiohttp

DEFINITION = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
ROWS = "/v1/groups/g/tasks/t/quarantine"
ROW = {
    "id": "0-41-3",
    "batch_id": 41,
    "token": 7,
    "at_ms": 1_790_000_000_000,
    "reason": "unreadable",
    "name": "MALFORMED",
    "error": "no JSON",
    "form": "kafka",
    "raw": "hunter2-in-a-row",
}


class Stage:
    """A manager with tokens, and a worker that owns a task and does what the test wants."""

    def __init__(self, web: Web, tokens: dict[Role, str]) -> None:
        self._web = web
        self._tokens = tokens
        self.member_id = ""

    async def ask(
        self, role: Role | None, method: str, path: str, body: Any = None
    ) -> tuple[int, dict[str, Any]]:
        """As whoever has that role."""
        return await self._web.ask(method, path, None if role is None else self._tokens[role], body)

    def begin(self, role: Role, method: str, path: str, body: Any = None) -> asyncio.Task[Any]:
        """Ask for what takes a worker."""
        return asyncio.create_task(self.ask(role, method, path, body))

    async def send(self, what: str, **body: Any) -> dict[str, Any]:
        """As the worker."""
        told = {"member_id": self.member_id} | body
        return (await self.ask(Role.WORKER, "POST", f"/v1/groups/g/{what}", told))[1]

    async def hire(self, **metadata: Any) -> None:
        """A worker joins, and owns the task."""
        await self.ask(Role.ADMIN, "POST", "/v1/groups/g/tasks", {"task": "t", "definition": DEFINITION})
        terms = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000, "client_id": "w"}
        protocols = [{"name": "sticky", "metadata": {"quarantine": True} | metadata}]
        joined = await self.send(
            "join", **terms, protocol_type="sparkherd", protocols=protocols, require_member_id=False
        )
        self.member_id = joined["member_id"]
        assignments = [{"member_id": self.member_id, "assignment": {"tasks": ["t"]}}]
        await self.send("sync", generation_id=1, assignments=assignments)
        granted = await self.send("claim", generation_id=1, tasks=["t"], tasks_revision=0)
        self.token = granted["granted"][0]["token"]

    async def told(self) -> dict[str, Any]:
        """The member's id and the errand, once it hears of one."""
        beat = await self.send("heartbeat", generation_id=1, wait_ms=60_000)
        return {"quarantine": beat["quarantine"]}

    async def wanted(self, errand: dict[str, Any]) -> dict[str, Any]:
        """What the worker is to do."""
        return await self.send("quarantine/fetch", **errand)


@pytest.fixture
async def stage(tmp_path: Path, session: aiohttp.ClientSession) -> AsyncIterator[Stage]:
    url = f"sqlite+aiosqlite:///{tmp_path}/m.db"
    made = Tokens(url)
    tokens = {role: await made.make(role) for role in Role}
    async with serving(url) as manager:
        yield Stage(Web(session, manager), tokens)


async def test_a_worker_s_word_reaches_whoever_asked(stage: Stage) -> None:
    """As it was said; with what was asked for, under the token that the worker has."""
    await stage.hire()
    asked = stage.begin(Role.OPERATOR, "GET", f"{ROWS}?limit=5&reason=unreadable&timeout_ms=9000")
    errand = await stage.told()
    wanted = await stage.wanted(errand)
    request = wanted["request"]
    assert (wanted["task"], wanted["token"]) == ("t", stage.token)
    assert (request["action"], request["limit"], request["reason"]) == ("list", 5, "unreadable")
    assert request["timeout_ms"] <= 9000
    await stage.send("quarantine/report", **errand, result={"rows": [ROW], "total": 8})
    status, answer = await asked
    assert (status, answer["worker"], answer["total"]) == (200, stage.member_id, 8)
    assert answer["rows"] == [{**ROW, "encoding": "utf-8", "origin": {}}]


@pytest.mark.parametrize(
    ("role", "masked"), [(Role.VIEWER, True), (Role.OPERATOR, False), (Role.ADMIN, False)]
)
@pytest.mark.parametrize("path", [ROWS, f"{ROWS}/rows/0-41-3"])
async def test_a_viewer_s_request_says_that_values_are_to_be_masked(
    stage: Stage, role: Role, path: str, *, masked: bool
) -> None:
    """The worker hides them: they do not even reach the manager."""
    await stage.hire()
    asked = stage.begin(role, "GET", path)
    errand = await stage.told()
    assert (await stage.wanted(errand))["request"]["masked"] is masked
    await stage.send("quarantine/report", **errand, result={"rows": [ROW], "total": 1})
    assert (await asked)[0] == 200


@pytest.mark.parametrize(
    ("role", "method", "path", "status"),
    [
        (None, "GET", ROWS, 401),
        (Role.WORKER, "GET", ROWS, 403),
        (Role.VIEWER, "POST", f"{ROWS}/replay", 403),
        (Role.OPERATOR, "POST", f"{ROWS}/discard", 403),
        (Role.OPERATOR, "POST", "/v1/groups/g/quarantine/fetch", 403),
    ],
)
async def test_who_may_not_is_turned_away(
    stage: Stage, role: Role | None, method: str, path: str, status: int
) -> None:
    """Before any worker hears of it."""
    assert (await stage.ask(role, method, path, {"all": True} if method == "POST" else None))[0] == status


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("GET", f"{ROWS}?limit=101", None, "limit: expected a whole number from 1 to 100"),
        ("GET", f"{ROWS}?reason=other", None, "reason"),
        ("GET", f"{ROWS}?timeout_ms=300001", None, "timeout_ms"),
        ("GET", f"{ROWS}?name=%00", None, "name: "),
        ("GET", f"{ROWS}?name=a%00b", None, "name: "),
        ("POST", f"{ROWS}/discard", {"all": True, "name": "\0"}, "name: "),
        ("POST", f"{ROWS}/replay", {"all": True, "name": "a\n\0"}, "name: "),
        ("GET", f"{ROWS}/rows/replay", None, "row: expected an id as lists show it, RESETS-BATCH-N"),
        ("POST", f"{ROWS}/replay", {}, "ids"),
        ("POST", f"{ROWS}/replay", {"ids": ["0-1-2"], "all": True}, "ids"),
        ("POST", f"{ROWS}/discard", {"ids": ["0-1-2"], "reason": "refused"}, "ids"),
        ("POST", f"{ROWS}/discard", {"ids": ["../x"]}, "ids"),
        ("POST", f"{ROWS}/discard", {"ids": ["0-1-2"] * 1001}, "ids"),
    ],
)
async def test_what_no_worker_is_asked_for(
    stage: Stage, method: str, path: str, body: Any, said: str
) -> None:
    """The manager says what is wrong, and where."""
    status, answer = await stage.ask(Role.ADMIN, method, path, body)
    assert (status, answer["error"], said in answer["message"]) == (400, "INVALID_REQUEST", True)


async def test_what_stands_in_the_way_has_a_code(stage: Stage) -> None:
    """No such group, no such task, a worker of an earlier version."""
    assert (await stage.ask(Role.VIEWER, "GET", ROWS))[1]["error"] == "GROUP_ID_NOT_FOUND"
    await stage.hire(quarantine=False)
    other = "/v1/groups/g/tasks/no/quarantine"
    assert (await stage.ask(Role.VIEWER, "GET", other))[1]["error"] == "UNKNOWN_TASK"
    assert (await stage.ask(Role.VIEWER, "GET", ROWS))[1]["error"] == "NO_ELIGIBLE_WORKER"


async def test_a_row_that_is_not_there(stage: Stage) -> None:
    """Played again since it was listed, perhaps: a code of its own."""
    await stage.hire()
    asked = stage.begin(Role.VIEWER, "GET", f"{ROWS}/rows/0-41-3")
    errand = await stage.told()
    assert (await stage.wanted(errand))["request"]["ids"] == ["0-41-3"]
    await stage.send("quarantine/report", **errand, result={})
    status, answer = await asked
    assert (status, answer["error"]) == (404, "UNKNOWN_ROW")


@pytest.mark.parametrize(
    ("verb", "role", "body", "told"),
    [
        ("replay", Role.OPERATOR, {"ids": ["0-41-3", "0-41-4"]}, "2 rows by their ids"),
        ("discard", Role.ADMIN, {"all": True, "reason": "unreadable"}, "all rows"),
    ],
)
async def test_what_changes_something_is_audited(
    stage: Stage, verb: str, role: Role, body: dict[str, Any], told: str
) -> None:
    """Who, what, how many were meant and what became of them; neither ids nor values."""
    with capture_logs() as logs:
        await stage.hire()
        asked = stage.begin(role, "POST", f"{ROWS}/{verb}", body)
        errand = await stage.told()
        await stage.wanted(errand)
        await stage.send("quarantine/report", **errand, result={"rows": [ROW], "replayed": 1, "stayed": 1})
        assert (await asked)[0] == 200
        entries = (await stage.ask(Role.ADMIN, "GET", "/v1/audit?after=1"))[1]["entries"]
    [line] = [each for each in logs if each.get("operation") == f"{verb}QuarantinedRows"]
    assert (line["result"], line["task"]) == ("NONE", "t")
    assert line["why"] == f"{told}: 1 replayed, 0 discarded, 1 stayed"
    for text in (str(logs), str(entries)):
        assert "hunter2" not in text
        assert "0-41" not in text


async def test_whoever_hangs_up_frees_the_worker(stage: Stage) -> None:
    """It hears so in its held heartbeat; the audit log has that it may have been done."""
    await stage.hire()
    with capture_logs() as logs:
        asked = stage.begin(Role.ADMIN, "POST", f"{ROWS}/discard", {"all": True})
        errand = await stage.told()
        asked.cancel()
        beat = await stage.send("heartbeat", generation_id=1, wait_ms=60_000, **errand)
        assert "quarantine" not in beat
        assert (await stage.wanted(errand))["error"] == "UNKNOWN_QUARANTINE_REQUEST"
    [line] = [each for each in logs if each.get("operation") == "discardQuarantinedRows"]
    assert line["why"].startswith("all rows; the connection closed before the answer")


PAGE = "/groups/g/tasks/t/quarantine"


@pytest.mark.parametrize(("role", "masked"), [(Role.VIEWER, True), (Role.OPERATOR, False)])
async def test_the_console_s_page_asks_the_worker_when_it_is_asked(
    stage: Stage, role: Role, *, masked: bool
) -> None:
    """For whoever looks; buttons are for those who may."""
    await stage.hire()
    asked = stage.begin(role, "GET", f"{PAGE}?reason=unreadable")
    errand = await stage.told()
    request = (await stage.wanted(errand))["request"]
    assert (request["action"], request["reason"], request["masked"]) == ("list", "unreadable", masked)
    await stage.send("quarantine/report", **errand, result={"rows": [ROW], "total": 8})
    status, html = await asked
    assert (status, "1 of 8 rows" in str(html)) == (200, True)
    assert (">Replay all<" in str(html), ">Discard all<" in str(html)) == (not masked, False)


async def test_the_console_s_page_says_why_there_is_nothing_to_see(stage: Stage) -> None:
    """Of a worker that has lost the task, and of a task that nobody has."""
    await stage.hire()
    asked = stage.begin(Role.VIEWER, "GET", PAGE)
    errand = await stage.told()
    trouble = {"code": "NO_QUARANTINE", "message": "task t puts no rows aside"}
    await stage.send("quarantine/report", **errand, trouble=trouble)
    assert "task t puts no rows aside" in str((await asked)[1])
    await stage.send("release", tasks={"t": stage.token})
    status, html = await stage.ask(Role.VIEWER, "GET", PAGE)
    assert (status, "no worker has task t" in str(html)) == (200, True)
