"""Tokens over real sockets: who is let in, everywhere, and who is not any more."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from manager.app import endpoints_of
from protocol.errors import StartupError
from protocol.roles import Role
from tests.integration.manager.secured import Tokens, Web, serving

if TYPE_CHECKING:
    from pathlib import Path

    import aiohttp

    from manager.http.endpoint import Endpoint
    from tests.integration.manager.backends import Database

SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
BEAT = {"member_id": "m", "instance_id": None, "generation_id": 1, "tasks_revision": None}


@pytest.fixture(autouse=True)
def _news_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits a second for the tokens to be read again."""
    monkeypatch.setattr("manager.background.token_refresh.REFRESH_S", 0.05)


@pytest.fixture
def tokens(database: Database) -> Tokens:
    """Those of the database."""
    return Tokens(database.url)


@SQLITE
async def test_every_endpoint_asks_for_its_role(
    database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """With each role and without a token, each operation there is; only health is open to all."""
    texts = {role: await tokens.make(role) for role in Role}
    nothing: Any = _Anything()
    async with serving(database.url) as url:
        web = Web(session, url)
        for endpoint in endpoints_of(nothing, nothing):
            path = endpoint.path.format(
                group="g",
                task="t",
                member_id="m",
                row="0-1-2",
                name="console.css",
                receiver="r",
                transfer="x",
                silence="s",
            )
            path += "?group=g" if endpoint.operation == "findCoordinator" else ""
            status, body = await web.ask(endpoint.method, path)
            if endpoint.role is None:
                assert status not in {401, 403}, endpoint
                continue
            if endpoint.media[0] == "text/html":
                assert status == 303, endpoint
            else:
                assert (status, body["error"]) == (401, "UNAUTHENTICATED"), endpoint
            for role, text in texts.items():
                status, _ = await web.ask(endpoint.method, path, text)
                may = role is Role.ADMIN or role in endpoint.roles or _is_above(role, endpoint)
                assert (status == 403) is not may, (endpoint, role)
                assert status != 401, (endpoint, role)


def _is_above(role: Role, endpoint: Endpoint) -> bool:
    """Whether an operator asks for what viewers may."""
    return role is Role.OPERATOR and Role.VIEWER in endpoint.roles


class _Anything:
    """What handlers are made of, where none is called."""

    def __getattr__(self, name: str) -> Any:
        return self


@SQLITE
async def test_without_a_token_the_answer_says_what_is_needed(
    database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """WWW-Authenticate with 401, for members as the operation's errors are; health stays open."""
    await tokens.make(Role.ADMIN)
    async with serving(database.url) as url:
        async with session.get(url + "/v1/groups") as answer:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="sparkherd"')
        status, body = await Web(session, url).ask("POST", "/v1/groups/g/join", body={})
        assert (status, body["generation_id"], body["retriable"]) == (401, -1, False)
        assert (await Web(session, url).ask("GET", "/healthz"))[0] == 200
        assert (await Web(session, url).ask("GET", "/readyz"))[0] == 200


async def test_a_revoked_token_is_not_let_in_any_more(
    database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """In the ordinary way and in a member's quick look, while the manager runs on; a new one counts."""
    revoked, worker = await tokens.make(Role.VIEWER), await tokens.make(Role.WORKER)
    async with serving(database.url) as url:
        web = Web(session, url)
        assert (await web.ask("GET", "/v1/groups", revoked))[0] == 200
        assert (await web.ask("POST", "/v1/groups/g/heartbeat", worker, BEAT))[0] == 404
        await tokens.revoke(revoked)
        await tokens.revoke(worker)
        while (await web.ask("GET", "/v1/groups", revoked))[0] != 401:
            pass
        while (await web.ask("POST", "/v1/groups/g/heartbeat", worker, BEAT))[0] != 401:
            pass
        made = await tokens.make(Role.VIEWER)
        while (await web.ask("GET", "/v1/groups", made))[0] != 200:
            pass


@SQLITE
async def test_the_first_token_closes_a_manager_that_was_open(
    database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """Until then everything is as it was on the own machine; revoking it opens nothing."""
    async with serving(database.url) as url:
        web = Web(session, url)
        assert (await web.ask("GET", "/v1/groups"))[0] == 200
        assert (await web.ask("POST", "/v1/groups/g/heartbeat", body=BEAT))[0] == 404
        text = await tokens.make(Role.ADMIN)
        while (await web.ask("GET", "/v1/groups"))[0] != 401:
            pass
        assert (await web.ask("POST", "/v1/groups/g/heartbeat", body=BEAT))[0] == 401
        await tokens.revoke(text)
        while (await web.ask("GET", "/v1/groups", text))[0] != 401:
            pass
        assert (await web.ask("GET", "/v1/groups"))[0] == 401


@SQLITE
async def test_tokens_of_some_groups(
    database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """They see and touch those only, in lists too; heartbeats of other groups are refused at a quick look."""
    admin, some = await tokens.make(Role.ADMIN), await tokens.make(Role.OPERATOR, "fl*")
    worker = await tokens.make(Role.WORKER, "flights")
    async with serving(database.url) as url:
        web = Web(session, url)
        task = {"task": "t", "definition": {"source": {"format": "rate"}, "sink": {"format": "noop"}}}
        for group in ("flights", "other"):
            assert (await web.ask("POST", f"/v1/groups/{group}/tasks", admin, task))[0] == 201
        status, listed = await web.ask("GET", "/v1/groups", some)
        assert (status, [each["group"] for each in listed["groups"]]) == (200, ["flights"])
        assert (await web.ask("GET", "/v1/groups/flights/tasks", some))[0] == 200
        beside = "/v1/events?group=flights&group=other", "/metrics?group=flights", "/v1/events?Group=flights"
        for path in ("/v1/groups/other/tasks", "/v1/events", "/v1/events?group=other", "/metrics", *beside):
            status, body = await web.ask("GET", path, some)
            assert (status, body["error"]) == (403, "GROUP_AUTHORIZATION_FAILED"), path
        assert (await web.ask("GET", "/v1/events?group=flights", some))[0] == 200
        status, page = await web.ask("GET", "/", some)
        assert (status, "flights" in page, "other" in page.replace("another", "")) == (200, True, False)
        assert (await web.ask("POST", "/v1/groups/flights/heartbeat", worker, BEAT))[0] == 404
        assert (await web.ask("POST", "/v1/groups/other/heartbeat", worker, BEAT))[0] == 403


async def test_being_forwarded_is_no_way_round(session: aiohttp.ClientSession, database: Database) -> None:
    """Neither by saying that another manager asks, nor by asking one that has not the group."""
    tokens = Tokens(database.url)
    viewer, admin = await tokens.make(Role.VIEWER), await tokens.make(Role.ADMIN)
    if database.backend == "sqlite":
        async with serving(database.url) as url:
            status, _ = await Web(session, url).ask("GET", "/v1/groups/g/tasks", Sparkherd_Forwarded_By="b")
            assert status == 401
        return
    async with serving(database.url) as a, serving(database.url) as b:
        managers = Web(session, a), Web(session, b)
        for web in managers:
            while (await web.ask("GET", "/readyz"))[0] != 200:
                pass
        for number in range(8):  # some are with the one, some with the other
            path = f"/v1/groups/g{number}"
            task = {"task": "t", "definition": {"source": {"format": "rate"}, "sink": {"format": "noop"}}}
            for web in managers:
                assert (await web.ask("POST", f"{path}/tasks", None, task))[0] == 401
                assert (await web.ask("POST", f"{path}/tasks", viewer, task))[0] == 403
                assert await _settled(web, "PUT", f"{path}/tasks/t", admin, task) in {200, 201}
                assert await _settled(web, "GET", f"{path}/tasks/t/status", viewer) == 200


async def _settled(web: Web, *request: Any) -> int:
    """The status when the group is not on its way from one manager to the other."""
    while (status := (await web.ask(*request))[0]) in {421, 503}:
        pass
    return status


async def test_a_manager_is_not_put_before_others_without_tls(tmp_path: Path) -> None:
    """Refused before it has touched anything, its database included."""
    with pytest.raises(StartupError, match=r"^--listen 0.0.0.0:0: other machines could read"):
        async with serving(f"sqlite+aiosqlite:///{tmp_path}/none.db", listen="0.0.0.0:0"):
            pass
    assert not (tmp_path / "none.db").exists()


@SQLITE
async def test_browsers_log_in_once(
    database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """A page leads to the form, the form to the page; the cookie is for this site and no script."""
    text = await tokens.make(Role.OPERATOR)
    async with serving(database.url) as url:
        async with session.get(url + "/?a=1", allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/login?next=%2F%3Fa%3D1")
        async with session.get(url + "/login?next=%2F%3Fa%3D1") as answer:
            assert 'value="/?a=1"' in await answer.text()
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
            assert "unsafe" not in answer.headers["Content-Security-Policy"]
        form = {"token": text, "next": "/?a=1"}
        async with session.post(url + "/login", data=form, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/?a=1")
            cookie = answer.headers["Set-Cookie"]
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        carried = {"Cookie": cookie.partition(";")[0]}
        async with session.get(url + "/", headers=carried) as answer:
            assert answer.status == 200
        path = "/v1/groups/g/rebalance"
        async with session.post(url + path, json={}, headers={**carried, "Origin": url}) as answer:
            assert answer.status == 404
        async with session.post(url + "/login", data={**form, "token": "x"}) as answer:
            assert (answer.status, "not known" in await answer.text()) == (401, True)
        async with session.post(url + "/logout", headers=carried, allow_redirects=False) as answer:
            assert 'sparkherd_session=""' in answer.headers["Set-Cookie"]


@SQLITE
async def test_a_person_whose_token_is_not_enough_may_show_another(
    database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """What is not for it answers 403 with the form, which says why and leads back; and it is no action."""
    worker, viewer = await tokens.make(Role.WORKER), await tokens.make(Role.VIEWER)
    refused = (("/", worker, "takes viewer"), ("/groups/g/tasks/t/edit", viewer, "takes admin"))
    with capture_logs() as lines:
        async with serving(database.url) as url:
            for path, token, why in refused:
                status, page = await Web(session, url).ask("GET", path, token)
                assert status == 403
                assert why in page
                assert f'name="next" value="{path}"' in page
    assert [line for line in lines if "operation" in line] == []


@SQLITE
async def test_rules_and_silences_of_alarms_are_for_those_who_may_see_all(
    database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """A token of some groups reads of others neither in the API nor in the console."""
    everybody, some = await tokens.make(Role.ADMIN), await tokens.make(Role.ADMIN, "fl*")
    rule = {"name": "hidden-rule", "kind": "failed", "groups": "other"}
    silence = {
        "ends_at_ms": int(time.time() * 1000) + 600_000,
        "reason": "hidden-reason",
        "by": "ann",
        "groups": "other",
    }
    async with serving(database.url) as url:
        web = Web(session, url)
        assert (await web.ask("PUT", "/v1/alarms/rules", everybody, {"rules": [rule]}))[0] == 200
        assert (await web.ask("POST", "/v1/alarms/silences", everybody, silence))[0] == 201
        for path in ("/v1/alarms/rules", "/v1/alarms/silences", "/v1/alarms/receivers"):
            assert (await web.ask("GET", path, some))[0] == 403, path
        assert (await web.ask("GET", "/alarms/rules", some))[0] == 403
        status, page = await web.ask("GET", "/alarms", some)
        assert (status, "hidden-" in page, "silence-form" in page) == (200, False, False)
        assert "There are no rules yet" not in page
        status, page = await web.ask("GET", "/alarms", everybody)
        assert (status, page.count("hidden-rule") > 0, page.count("hidden-reason")) == (200, True, 1)


OFFERED = {
    Role.VIEWER: set(),
    Role.OPERATOR: {"pause", "restart", "stop", "rebalance", "drain"},
    Role.ADMIN: {"pause", "restart", "stop", "rebalance", "drain", "edit", "add-task", "t", "g"},
}


@SQLITE
@pytest.mark.parametrize("role", OFFERED)
async def test_a_page_offers_what_its_reader_may_do(
    *, role: Role, database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """Buttons and forms of all pages together: none for viewers, none for operators that cannot be undone."""
    admin, reader = await tokens.make(Role.ADMIN), await tokens.make(role)
    task = {"task": "t", "definition": {"entrypoint": "a:b"}}
    member: dict[str, Any] = {
        "member_id": "",
        "protocol_type": "sparkherd",
        "protocols": [{"name": "p", "metadata": {}}],
    }
    member |= {"session_timeout_ms": 1_800_000, "rebalance_timeout_ms": 1_800_000, "require_member_id": False}
    async with serving(database.url) as url:
        web = Web(session, url)
        assert (await web.ask("POST", "/v1/groups/g/tasks", admin, task))[0] == 201
        assert (await web.ask("POST", "/v1/groups/g/join", admin, member))[0] == 200
        offered: set[str] = set()
        for path in ("/", "/workers", "/groups/g", "/groups/g/tasks/t"):
            status, page = await web.ask("GET", path, reader)
            assert status == 200
            offered |= set(re.findall(r'data-call="[A-Z]+ [^"]*/([\w-]+)"', page))
            offered |= set(re.findall(r'href="[^"]*/(edit|add-task)[?"]', page))
            assert role.value in page
    assert offered == OFFERED[role]


@SQLITE
@pytest.mark.parametrize(
    "place", ["//evil.example", "https://evil.example", "/\\evil.example", "x", "/a\r\nb: c"]
)
async def test_logging_in_leads_nowhere_else(
    *, place: str, database: Database, tokens: Tokens, session: aiohttp.ClientSession
) -> None:
    """Whoever made the link."""
    text = await tokens.make(Role.VIEWER)
    async with (
        serving(database.url) as url,
        session.post(url + "/login", data={"token": text, "next": place}, allow_redirects=False) as answer,
    ):
        assert answer.headers["Location"] == "/"


@SQLITE
async def test_pages_of_other_sites_cannot_act(database: Database, session: aiohttp.ClientSession) -> None:
    """Not even where no token is needed: a browser on the same machine reaches the manager, too."""
    async with serving(database.url) as url:
        path = "/v1/groups/g/rebalance"
        elsewhere = (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site", "Origin": url},
        )
        for headers in elsewhere:
            async with session.post(url + path, json={}, headers=headers) as answer:
                assert answer.status == 403, headers
            async with session.post(url + "/login", data={"token": "x"}, headers=headers) as answer:
                assert answer.status == 403, headers
        for headers in ({"Origin": url}, {"Sec-Fetch-Site": "same-origin"}, {}):
            async with session.post(url + path, json={}, headers=headers) as answer:
                assert answer.status == 404, headers
