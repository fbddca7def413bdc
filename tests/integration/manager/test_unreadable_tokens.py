"""Tokens that cannot be read as they should: what is closed, what is told, and what works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from manager.storage.token_table import TokenTable
from protocol.roles import Role
from tests.fakes.turns import eventually
from tests.integration.manager.secured import Tokens, Web, serving

if TYPE_CHECKING:
    import aiohttp

    from tests.integration.manager.backends import Database

SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
BEAT = {"member_id": "m", "instance_id": None, "generation_id": 1, "tasks_revision": None}


@pytest.fixture(autouse=True)
def _news_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits a second for the tokens to be read again."""
    monkeypatch.setattr("manager.background.token_refresh.REFRESH_S", 0.05)


def _become(database: Database, text: str, role: str) -> None:
    database.run(f"UPDATE tokens SET role = '{role}' WHERE token_id = '{text.split('_')[1]}'")


async def test_a_role_that_is_not_known_opens_nothing_and_others_work(
    database: Database, session: aiohttp.ClientSession
) -> None:
    """Where a newer manager has made it: at the start and later; whose it is, is told once."""
    tokens = Tokens(database.url)
    strange, viewer = await tokens.make(Role.ADMIN), await tokens.make(Role.VIEWER)
    _become(database, strange, "auditor")
    with capture_logs() as logs:
        async with serving(database.url) as url:
            web = Web(session, url)
            status, body = await web.ask("GET", "/v1/groups", strange)
            assert (status, body["error"]) == (401, "UNAUTHENTICATED")
            assert "the role auditor, which is not known here" in body["message"]
            assert (await web.ask("GET", "/v1/groups", viewer))[0] == 200
            late = await tokens.make(Role.VIEWER)
            while (await web.ask("GET", "/v1/groups", late))[0] != 200:
                pass
            _become(database, late, "janitor")
            while (await web.ask("GET", "/v1/groups", late))[0] != 401:
                pass
            await tokens.revoke(viewer)
            while (await web.ask("GET", "/v1/groups", viewer))[0] != 401:
                pass
    told = [line for line in logs if "its role is unknown" in line["event"]]
    assert [(line["whose"], line["role"]) for line in told] == [
        (f"admin ({strange.split('_')[1]})", "auditor"),
        (f"viewer ({late.split('_')[1]})", "janitor"),
    ]


@SQLITE
async def test_the_only_token_of_an_unknown_role_opens_nothing_to_all(
    database: Database, session: aiohttp.ClientSession
) -> None:
    """It was made, so the manager is not open as one without tokens is."""
    tokens = Tokens(database.url)
    _become(database, await tokens.make(Role.ADMIN), "auditor")
    async with serving(database.url) as url:
        assert (await Web(session, url).ask("GET", "/v1/groups"))[0] == 401


@SQLITE
async def test_reading_tokens_goes_on_after_what_nobody_expected(
    database: Database, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told under a cause id, and what is revoked after it is refused."""
    tokens, read_all = Tokens(database.url), TokenTable.all
    viewer = await tokens.make(Role.VIEWER)
    failures = 0

    async def fails_twice(table: TokenTable) -> Any:
        nonlocal failures
        failures += 1
        if failures <= 2:
            raise ValueError("a row that nobody expected")
        return await read_all(table)

    with capture_logs() as logs:
        async with serving(database.url) as url:
            web = Web(session, url)
            monkeypatch.setattr(TokenTable, "all", fails_twice)
            while failures < 2:
                assert (await web.ask("GET", "/v1/groups", viewer))[0] == 200
            await tokens.revoke(viewer)
            while (await web.ask("GET", "/v1/groups", viewer))[0] != 401:
                pass
    bugs = [line for line in logs if line["event"] == "bug beside the requests"]
    assert [line["doing"] for line in bugs] == ["reading tokens"] * 2
    assert all(line["cause_id"] for line in bugs)


@SQLITE
async def test_tokens_that_cannot_be_read_for_long_open_nothing(
    database: Database, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them may have been revoked. The answer may be retried, so that no worker gives up for it."""
    tokens, read_all = Tokens(database.url), TokenTable.all
    viewer, worker = await tokens.make(Role.VIEWER), await tokens.make(Role.WORKER)
    is_away, reads, failures = False, 0, 0

    async def unless_away(table: TokenTable) -> Any:
        nonlocal reads, failures
        if is_away:
            failures += 1
            raise ValueError("a row that nobody expected")
        reads += 1
        return await read_all(table)

    monkeypatch.setattr(TokenTable, "all", unless_away)
    async with serving(database.url) as url:
        web = Web(session, url)
        beat = "/v1/groups/g/heartbeat"
        assert (await web.ask("POST", beat, worker, BEAT))[0] == 404
        monkeypatch.setattr("manager.background.token_refresh.STALE_S", 0.01)
        before = reads
        await eventually(lambda: reads > before + 1)
        is_away = True
        await eventually(lambda: failures)
        while (answer := await web.ask("GET", "/v1/groups", viewer))[0] == 200:
            pass
        assert (answer[0], answer[1]["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
        assert answer[1]["retriable"] is True
        status, body = await web.ask("POST", beat, worker, BEAT)
        assert (status, body["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
        assert (await web.ask("GET", "/v1/groups"))[0] == 503
        monkeypatch.setattr("manager.background.token_refresh.STALE_S", 3600)
        is_away = False
        while (await web.ask("GET", "/v1/groups", viewer))[0] != 200:
            pass
        while (await web.ask("POST", beat, worker, BEAT))[0] != 404:
            pass
