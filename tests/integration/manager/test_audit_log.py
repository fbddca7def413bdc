"""The audit log: what admins do, over real sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from manager.access.keeper import changes
from protocol.roles import Role
from tests.integration.manager.secured import Tokens, Web, serving
from tests.unit.manager.access.test_access import minted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

TASK = {
    "task": "t",
    "definition": {"entrypoint": "a:b", "options": {"password": "hunter2-in-a-definition"}},
}


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


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
        ("nobody who may", "deleteTask", "GROUP_AUTHORIZATION_FAILED"),
        ("nobody who may", "deleteTask", "UNAUTHENTICATED"),
        ("admin", "pauseTask", "NONE"),
    ]
    last = [line for line in lines if _is(line)][-1]
    assert (last["group"], last["task"], last["host"], last["status"]) == ("g", "t", "127.0.0.1", 202)
    refused = next(line for line in lines if _is(line) and line["status"] == 403)
    assert "viewer" in refused["why"]
    for secret in ("hunter2", admin, viewer):
        assert secret not in str(lines)


def test_what_is_done_to_tokens_is_told_too() -> None:
    """Though it goes past the managers: they see it at the next look. Those of the first look are no news."""
    (_, first), (_, second) = minted(), minted()
    assert list(changes(None, [first])) == []
    known = {first.token_id: first}
    assert list(changes(known, [first])) == []
    assert list(changes(known, [first, second])) == [("createToken", second)]
    revoked = type(first)(
        **{name: getattr(first, name) for name in first.__struct_fields__} | {"revoked_at_ms": 1}
    )
    assert list(changes(known, [revoked])) == [("revokeToken", revoked)]
    assert list(changes({first.token_id: revoked}, [revoked])) == []
