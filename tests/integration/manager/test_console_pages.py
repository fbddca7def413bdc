from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.manager.clients import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aiohttp import ClientSession

DEFINITION = {"source": {"format": "rate"}, "sink": {"format": "noop"}}
INLINE = ("<style", "style=", "onclick=", "onload=", "<script>", "javascript:")


class Site:
    """The console of a manager, fetched as a browser would."""

    def __init__(self, session: ClientSession, base: str) -> None:
        self._session = session
        self._base = base

    async def get(self, path: str) -> tuple[int, str]:
        async with self._session.get(self._base + path) as answer:
            return answer.status, await answer.text()

    async def headers(self, path: str) -> dict[str, str]:
        async with self._session.get(self._base + path) as answer:
            await answer.read()
            return dict(answer.headers)

    async def create(self, group: str, task: str, definition: Any = DEFINITION) -> None:
        body: dict[str, Any] = {"task": task, "definition": definition}
        async with self._session.post(f"{self._base}/v1/groups/{group}/tasks", json=body) as answer:
            assert answer.status == 201

    async def join(self, group: str, client: str) -> None:
        body = {
            "member_id": "",
            "client_id": client,
            "session_timeout_ms": 60_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "sparkherd",
            "protocols": [{"name": "range", "metadata": {}}],
            "require_member_id": False,
        }
        async with self._session.post(f"{self._base}/v1/groups/{group}/join", json=body) as answer:
            assert answer.status == 200


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with serving(tmp_path) as served:
        yield Site(served.session, served.url)


PATHS = [
    "/",
    "/groups/g",
    "/groups/g/tasks/t",
    "/groups/g/tasks/t/edit",
    "/groups/g/tasks/t/quarantine",
    "/workers",
    "/events",
    "/add-task",
    "/add-task?group=g",
]


@pytest.mark.parametrize("path", PATHS)
async def test_a_page_needs_nothing_but_what_the_manager_serves(site: Site, path: str) -> None:
    """No script or style in the page, nothing from elsewhere; and the policy that says so to the browser."""
    await site.create("g", "t")
    status, html = await site.get(path)
    assert status == 200
    assert [word for word in INLINE if word in html] == []
    assert "//cdn" not in html
    policy = (await site.headers(path))["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy


async def test_files_are_kept_by_browsers_as_long_as_they_are_the_same(site: Site) -> None:
    """With its digest a file may be kept for ever, without it has to be asked for again."""
    _, html = await site.get("/")
    address = html.partition('href="/assets/console.css')[2].partition('"')[0]
    assert "immutable" in (await site.headers(f"/assets/console.css{address}"))["Cache-Control"]
    assert (await site.headers("/assets/console.css?old"))["Cache-Control"] == "no-cache"
    assert (await site.headers("/assets/console.js"))["Content-Type"] == "text/javascript; charset=utf-8"
    for path in ("/assets/none.js", "/assets/..%2Fsite.py", "/assets/site.py"):
        assert (await site.get(path))[0] == 404


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/groups/g/tasks/none/edit", 404, "UNKNOWN_TASK"),
        ("/groups/g/tasks/none/quarantine", 404, "UNKNOWN_TASK"),
        ("/groups/none", 404, "GROUP_ID_NOT_FOUND"),
        ("/groups/none/tasks/t", 404, "GROUP_ID_NOT_FOUND"),
        ("/groups/g/tasks/none", 404, "UNKNOWN_TASK"),
        ("/groups/g/workers/none", 404, "UNKNOWN_MEMBER_ID"),
    ],
)
async def test_what_is_not_there_is_said_on_a_page(site: Site, path: str, status: int, words: str) -> None:
    """A person gets a page with the way back, not a document of JSON."""
    await site.create("g", "t")
    answer, html = await site.get(path)
    assert answer == status
    assert words in html
    assert 'href="/"' in html


async def test_names_are_only_ever_text(site: Site) -> None:
    """What is looked for is shown again; as text."""
    _, html = await site.get("/?q=%3Cscript%3Ealert(1)%3C/script%3E")
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html


async def test_the_first_visit_says_how_to_begin(site: Site) -> None:
    """A manager without groups is no error."""
    _, html = await site.get("/")
    assert "There is no group yet" in html


async def test_events_are_looked_for_and_paged(site: Site) -> None:
    """By group, task and type; a page of a hundred leads to the older ones, the last one nowhere."""
    for number in range(101):
        await site.create("many", f"t{number:03}")
    await site.create("one", "other")
    _, html = await site.get("/events?group=many")
    assert html.count('<tr id="event-') == 100
    assert "one" not in html.partition("<tbody>")[2].partition("</tbody>")[0]
    older = html.partition('<a href="/events?')[2].partition('"')[0].replace("&amp;", "&")
    _, html = await site.get(f"/events?{older}")
    assert html.count('<tr id="event-') == 1
    assert "Older" not in html
    _, html = await site.get("/events?task=T05&type=task.created")
    assert html.count('<tr id="event-') == 10
    _, html = await site.get("/events?before=no&type=none")
    assert "Nothing" in html


async def test_a_group_without_room_for_all_leads_on_by_links(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bar a worker in place of the map; each list has pages, and keeps the other's and the filter."""
    for name, most in (("MOST_CELLS", 4), ("TASKS_SHOWN", 2), ("WORKERS_SHOWN", 1)):
        monkeypatch.setattr(f"manager.console.pages.group.{name}", most)
    for number in range(5):
        await site.create("g", f"t{number}")
    assert "No tasks yet" not in (await site.get("/groups/g"))[1]
    joins = [asyncio.create_task(site.join("g", name)) for name in ("anna", "berta")]
    while "<dt>Workers</dt><dd>2</dd>" not in (html := (await site.get("/groups/g"))[1]):
        pass
    assert ('class="map' in html, html.count('class="share"')) == (False, 1)
    assert [row in html for row in ('id="task-t1"', 'id="task-t2"')] == [True, False]
    assert links(html) == ["/groups/g?workers=2#map", "/groups/g?page=2#tasks"]
    _, html = await site.get("/groups/g?q=T&workers=2&page=2")
    assert [row in html for row in ('id="task-t1"', 'id="task-t2"')] == [False, True]
    assert '<input type="hidden" name="workers" value="2">' in html
    assert links(html) == [
        "/groups/g?q=T&page=2&workers=1#map",
        "/groups/g?q=T&workers=2&page=1#tasks",
        "/groups/g?q=T&workers=2&page=3#tasks",
    ]
    for join in joins:
        join.cancel()


def links(html: str) -> list[str]:
    """Where the pagers lead."""
    return [href.replace("&amp;", "&") for href in re.findall(r'<a href="([^"]*)" rel="(?:prev|next)"', html)]


async def test_a_definition_shows_no_secret(site: Site) -> None:
    """Only what it refers to."""
    sink = {"format": "jdbc", "options": {"url": "postgresql://u:hunter2@h/d", "password": "${env:PW}"}}
    await site.create("g", "t", definition=DEFINITION | {"sink": sink})
    _, html = await site.get("/groups/g/tasks/t")
    assert "hunter2" not in html
    assert "${env:PW}" in html


async def test_a_transfer_is_shown_at_both_groups_and_at_its_task(site: Site) -> None:
    """While it is under way, with a button that cancels it; groups without one show nothing of the kind."""
    for group, task in (("here", "t"), ("there", "other")):
        await site.create(group, task)
    begun = {"from": "here", "to": "there", "tasks": ["t"], "id": "move", "allow_unplaced": True}
    async with site._session.post(f"{site._base}/v1/transfers", json=begun) as answer:
        assert answer.status == 202
    for group in ("here", "there"):
        _, page = await site.get(f"/groups/{group}")
        assert 'id="transfer-move"' in page
        assert "POST /v1/transfers/move/cancel" in page
    _, page = await site.get("/groups/here/tasks/t")
    assert "by transfer move" in page
    async with site._session.post(f"{site._base}/v1/transfers/move/cancel") as answer:
        assert answer.status == 200
    _, page = await site.get("/groups/here")
    assert 'id="transfers"' not in page
    _, page = await site.get("/groups/here/tasks/t")
    assert 'id="transfer"' not in page
