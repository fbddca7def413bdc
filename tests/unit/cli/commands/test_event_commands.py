"""`sparkherd events`, against managers that say what a test wants."""

from __future__ import annotations

import itertools
import json
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from cli.client import event_stream
from cli.client.admin_client import AdminClient, UnreachableError
from cli.client.event_stream import EventStream
from cli.commands import events
from protocol.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.cli.conftest import Run
    from tests.unit.cli.scripted_manager import ScriptedManager

LOST = {
    "id": 41,
    "at_ms": 1773561600123,
    "type": "worker.lost",
    "group": "flights",
    "member": "w-1",
    "generation_id": 7,
    "cause": "its session\nended",
    "tasks": 3,
}
CHANGED = {"id": 42, "at_ms": 1773561601000, "type": "of.a.later.version", "group": "flights", "new": [1]}


def listed(manager: ScriptedManager, query: str, *told: dict[str, Any], last_id: int = 42) -> None:
    answer = {"error": "NONE", "events": told, "last_id": last_id}
    manager.on("GET", f"/v1/events?{query}", answer)


def streamed(manager: ScriptedManager, query: str, *told: dict[str, Any], rest: str = "") -> None:
    blocks = [f"id: {event['id']}\ndata: {json.dumps(event)}\n\n" for event in told]
    manager.on("GET", f"/v1/events{query}", ": nothing new\nid: 40\n\n" + "".join(blocks) + rest)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "RETRY_S", 0)


@contextmanager
def following(
    *urls: str, after: int | None = None, on_loss: Callable[[UnreachableError], None] | None = None
) -> Iterator[Iterator[bytes]]:
    """The stream, closed at the end; a loss that is not expected fails the test."""
    stream = iter(EventStream(AdminClient(urls), "/v1/events", after, on_loss or _not_expected))
    with closing(stream):
        yield stream


def _not_expected(error: UnreachableError) -> None:
    raise AssertionError(error)


def test_events_are_shown_a_line_each(manager: ScriptedManager, sparkherd: Callable[..., Run]) -> None:
    """When, what, whom and why; types of later versions, too."""
    listed(manager, "limit=1000", LOST, CHANGED)
    run = sparkherd("events", "--manager", manager.url)
    assert run.code == 0
    first, second = run.out.splitlines()
    assert first.split()[:1] == ["41"]
    assert first.endswith("worker.lost          flights  w-1  generation_id=7  tasks=3  its session ended")
    assert "of.a.later.version" in second


def test_events_as_json_are_a_line_each_as_they_came(
    manager: ScriptedManager, sparkherd: Callable[..., Run]
) -> None:
    """Fields that this version does not know included."""
    listed(manager, "limit=1000", LOST, CHANGED)
    run = sparkherd("events", "--manager", manager.url, "--json")
    assert [json.loads(line) for line in run.out.splitlines()] == [LOST, CHANGED]


def test_all_pages_are_shown(
    manager: ScriptedManager, sparkherd: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each from where the one before ended."""
    monkeypatch.setattr(events, "PAGE_LENGTH", 1)
    listed(manager, "group=flights&after=7&limit=1", LOST, last_id=41)
    listed(manager, "group=flights&after=41&limit=1", CHANGED, last_id=42)
    listed(manager, "group=flights&after=42&limit=1", last_id=42)
    run = sparkherd("events", "--manager", manager.url, "--group", "flights", "--after", "7", "--json")
    assert [json.loads(line)["id"] for line in run.out.splitlines()] == [41, 42]


def test_a_stream_that_breaks_is_taken_up_where_it_was(manager: ScriptedManager) -> None:
    """Half an event is none; it comes again."""
    streamed(manager, "", LOST, rest='id: 42\ndata: {"id": 4')
    with following(manager.url) as stream:
        assert [json.loads(next(stream))["id"] for _ in range(2)] == [41, 41]
    assert [headers.get("Last-Event-ID") for headers in manager.headers] == [None, "41"]


def test_a_stream_goes_on_at_another_manager(
    manager: ScriptedManager, other_manager: ScriptedManager
) -> None:
    """The next one of those that were named; one that is stopping counts as away."""
    manager.on("GET", "/v1/events", {"error": "COORDINATOR_NOT_AVAILABLE"}, 503)
    streamed(other_manager, "", LOST)
    with following(manager.url, other_manager.url, after=7) as stream:
        assert json.loads(next(stream))["id"] == 41
    assert other_manager.headers[0]["Last-Event-ID"] == "7"


def test_who_follows_is_told_once_that_nobody_answers_any_more(
    manager: ScriptedManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it goes on when somebody does."""
    complaints: list[UnreachableError] = []
    answers = itertools.chain([200], [503] * 3, itertools.repeat(200))
    plain = manager.answer

    def answer(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        return next(answers), plain(method, path, body)[1]

    streamed(manager, "", LOST)
    monkeypatch.setattr(manager, "answer", answer)
    with following(manager.url, on_loss=complaints.append) as stream:
        assert [json.loads(next(stream))["id"] for _ in range(2)] == [41, 41]
    assert len(complaints) == 1


def test_who_follows_nobody_is_told_so(sparkherd: Callable[..., Run]) -> None:
    """When there was no manager in the first place, and when it has no such events."""
    run = sparkherd("events", "--follow", "--manager", "http://127.0.0.1:1")
    assert (run.code, run.out) == (1, "")
    assert "no manager answers" in run.err


def test_a_stream_that_is_refused_ends(manager: ScriptedManager) -> None:
    """Trying again would not help."""
    refused = {"error": "INVALID_REQUEST", "message": "after: no such event"}
    manager.on("GET", "/v1/events", refused, 400)
    with pytest.raises(RefusedError, match="no such event"), following(manager.url, after=99) as stream:
        next(stream)
