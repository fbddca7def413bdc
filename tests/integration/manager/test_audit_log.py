"""The audit log: what admins do, over real sockets."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from structlog.testing import capture_logs
from yarl import URL

from manager.background.token_refresh import changes_since
from protocol.messages.audit import AuditEntry, AuditListQuery
from protocol.roles import Role
from tests.integration.manager.secured import Tokens, Web, serving
from tests.unit.manager.access.test_authorizer import minted

if TYPE_CHECKING:
    from pathlib import Path

    import aiohttp
    import pytest

    from manager.storage.sql_storage import SqlStorage
    from tests.integration.manager.backends import Database

TASK = {"task": "t", "definition": {"entrypoint": "a:b", "options": {"password": "hunter2-in-a-definition"}}}


def _audit(lines: list[Any]) -> list[tuple[str, str, str]]:
    return [
        (line["who"].partition(" (")[0], line["operation"], line["result"]) for line in lines if _is(line)
    ]


def _is(line: Any) -> bool:
    return bool(line["event"] == "audit" and "result" in line)


async def test_every_action_is_told_with_who_what_and_how_it_went(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    """What succeeds, what is refused by the rules, and what was asked by somebody who may not; no body."""
    url = f"sqlite+aiosqlite:///{tmp_path}/m.db"
    tokens = Tokens(url)
    admin, viewer = await tokens.make(Role.ADMIN), await tokens.make(Role.VIEWER)
    with capture_logs() as lines:
        async with serving(url) as manager:
            web = Web(session, manager)
            await web.ask("POST", "/v1/groups/g/tasks", admin, TASK)
            await web.ask("POST", "/v1/groups/g/tasks", admin, TASK)
            await web.ask("DELETE", "/v1/groups/g/tasks/t", viewer)
            await web.ask("DELETE", "/v1/groups/g/tasks/t")
            await web.ask("GET", "/v1/groups/g/tasks", viewer)
            await web.ask("POST", "/v1/groups/g/join", admin, {})
            await web.ask("PUT", "/v1/groups/g/tasks/t/pause", admin)
    assert _audit(lines) == [
        ("admin", "createTask", "NONE"),
        ("admin", "createTask", "TASK_EXISTS"),
        ("viewer", "deleteTask", "GROUP_AUTHORIZATION_FAILED"),
        ("nobody who may", "deleteTask", "UNAUTHENTICATED"),
        ("admin", "pauseTask", "NONE"),
    ]
    last = [line for line in lines if _is(line)][-1]
    assert (last["group"], last["task"], last["host"], last["status"]) == ("g", "t", "127.0.0.1", 202)
    refused = next(line for line in lines if _is(line) and line["status"] == 403)
    assert "viewer" in refused["why"]
    for secret in ("hunter2", admin, viewer):
        assert secret not in str(lines)


async def test_what_admins_did_can_be_asked_for(database: Database, session: aiohttp.ClientSession) -> None:
    """At once, in order, by person and group, in pages; by admins only, and strangers are not in it."""
    tokens = Tokens(database.url)
    admin, viewer = await tokens.make(Role.ADMIN), await tokens.make(Role.VIEWER)
    async with serving(database.url) as manager:
        web = Web(session, manager)
        await web.ask("POST", "/v1/groups/g/tasks", admin, TASK)
        await web.ask("DELETE", "/v1/groups/h/tasks/t", viewer)
        await web.ask("DELETE", "/v1/groups/g/tasks/t")
        await web.ask("PUT", "/v1/groups/g/tasks/t/pause", admin)
        status, told = await web.ask("GET", "/v1/audit", admin)
        assert status == 200
        assert _rows(told) == [
            ("the command line", "createToken", "NONE"),
            ("the command line", "createToken", "NONE"),
            ("admin", "createTask", "NONE"),
            ("viewer", "deleteTask", "GROUP_AUTHORIZATION_FAILED"),
            ("admin", "pauseTask", "NONE"),
        ]
        assert [each["id"] for each in told["entries"]] == [1, 2, 3, 4, 5]
        last = told["entries"][-1]
        assert (last["group"], last["task"], last["host"], last["status"]) == ("g", "t", "127.0.0.1", 202)
        assert last["token_id"] == admin.split("_")[1]
        _, of_h = await web.ask("GET", "/v1/audit?group=h", admin)
        assert _rows(of_h) == [("viewer", "deleteTask", "GROUP_AUTHORIZATION_FAILED")]
        _, first = await web.ask("GET", "/v1/audit?who=admin&limit=1", admin)
        assert (_rows(first), first["next"]) == ([("admin", "createTask", "NONE")], 3)
        _, rest = await web.ask("GET", "/v1/audit?who=admin&limit=1&after=3", admin)
        assert (_rows(rest), rest["next"]) == ([("admin", "pauseTask", "NONE")], None)
        assert (await web.ask("GET", "/v1/audit", viewer))[0] == 403
        for secret in ("hunter2", admin, viewer):
            assert secret not in str(told)


async def test_what_is_no_name_keeps_nothing_from_being_written_down(
    database: Database, session: aiohttp.ClientSession
) -> None:
    """Bytes that no database takes as text, in a path, and as what is looked for."""
    admin = await Tokens(database.url).make(Role.ADMIN)
    async with serving(database.url) as manager:
        web = Web(session, manager)
        strange = URL(f"{manager}/v1/groups/%00%FF/tasks/t", encoded=True)
        async with session.delete(strange, headers={"Authorization": f"Bearer {admin}"}) as answer:
            assert answer.status == 400
        await web.ask("PUT", "/v1/groups/g/tasks/t/pause", admin)
        _, told = await web.ask("GET", "/v1/audit?who=admin", admin)
        assert [each["result"] for each in told["entries"]] == ["INVALID_GROUP_ID", "GROUP_ID_NOT_FOUND"]
        assert told["entries"][0]["group"].startswith("?")
        assert (await web.ask("GET", "/v1/audit?who=%00", admin))[0] == 400


async def test_entries_are_kept_for_a_time_and_up_to_a_number(
    storage: SqlStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is older, and what is more; a few at a time. Numbers go on, whatever was forgotten."""
    monkeypatch.setattr("manager.storage.audit_table.PRUNED_AT_ONCE", 2)
    await storage.audit.add([_entry(at_ms) for at_ms in (10, 20, 30, 40, 50)])
    assert await storage.audit.prune(35, keep=100) is True
    assert await storage.audit.prune(35, keep=100) is False
    assert [each.at_ms for each in await storage.audit.read(AuditListQuery())] == [40, 50]
    assert await storage.audit.prune(0, keep=1) is False
    await storage.audit.add([_entry(60)])
    assert [(each.id, each.at_ms) for each in await storage.audit.read(AuditListQuery())] == [
        (5, 50),
        (6, 60),
    ]


async def test_who_hangs_up_before_the_answer_is_told_too(
    database: Database, session: aiohttp.ClientSession
) -> None:
    """The request does what it does all the same; nobody acts without an entry by closing the connection."""
    admin = await Tokens(database.url).make(Role.ADMIN)
    async with serving(database.url) as manager:
        web = Web(session, manager)
        for number in range(8):
            await _hang_up(URL(manager), admin, {**TASK, "task": f"t{number}"})
        _, made = await web.ask("PUT", "/v1/groups/g/tasks/last", admin, TASK)
        assert made["error"] == "NONE"
        _, tasks = await web.ask("GET", "/v1/groups/g/tasks", admin)
        _, told = await web.ask("GET", "/v1/audit?who=admin", admin)
        assert len(_rows(told)) >= len(tasks["tasks"])


async def _hang_up(url: URL, token: str, body: dict[str, Any]) -> None:
    """Ask for a task to be made, and close the connection at once."""
    _, writer = await asyncio.open_connection(url.host, url.port)
    raw = json.dumps(body).encode()
    head = f"POST /v1/groups/g/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"{head}Content-Length: {len(raw)}\r\n\r\n".encode() + raw)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


def _entry(at_ms: int) -> AuditEntry:
    return AuditEntry(at_ms=at_ms, who="me", operation="pauseTask", result="NONE")


def _rows(told: Any) -> list[tuple[str, str, str]]:
    return [(each["who"], each["operation"], each["result"]) for each in told["entries"]]


async def test_a_stopped_manager_has_written_all(
    database: Database, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waited for the next batch is stored before the process ends."""
    monkeypatch.setattr("manager.background.audit_writer.GATHER_S", 3600.0)
    admin = await Tokens(database.url).make(Role.ADMIN)
    async with serving(database.url) as manager:
        await Web(session, manager).ask("POST", "/v1/groups/g/tasks", admin, TASK)
        assert database.value("SELECT count(*) FROM audit") == 1
    assert database.value("SELECT count(*) FROM audit") == 2


async def test_an_action_is_there_once_whoever_was_asked(
    database: Database, session: aiohttp.ClientSession
) -> None:
    """By the manager that has the group; another one only passed it on."""
    if database.backend == "sqlite":
        return
    admin = await Tokens(database.url).make(Role.ADMIN)
    async with serving(database.url) as a, serving(database.url) as b:
        managers = Web(session, a), Web(session, b)
        for web in managers:
            while (await web.ask("GET", "/readyz"))[0] != 200:
                pass
        done = 0
        for number in range(8):  # some are with the one, some with the other
            for web in managers:
                status, _ = await web.ask("PUT", f"/v1/groups/g{number}/tasks/t", admin, TASK)
                done += status in {200, 201}
        rows = [(await web.ask("GET", "/v1/audit?who=admin", admin))[1]["entries"] for web in managers]
        stored = [each for each in rows[1] if each["result"] == "NONE"]
        assert len(stored) == done


def test_what_is_done_to_tokens_is_told_too() -> None:
    """Though it goes past the managers: they see it at the next look. Those of the first look are no news."""
    (_, first), (_, second) = minted(), minted()
    assert list(changes_since(None, [first])) == []
    known = {first.token_id: first}
    assert list(changes_since(known, [first])) == []
    assert list(changes_since(known, [first, second])) == [("createToken", second)]
    revoked = type(first)(
        **{name: getattr(first, name) for name in first.__struct_fields__} | {"revoked_at_ms": 1}
    )
    assert list(changes_since(known, [revoked])) == [("revokeToken", revoked)]
    assert list(changes_since({first.token_id: revoked}, [revoked])) == []
