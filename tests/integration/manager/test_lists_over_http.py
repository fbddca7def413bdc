"""Lists of tasks that are put as a whole, over HTTP."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.manager.clients import MAX_BYTES, serving
from tests.integration.manager.json_client import DEFINITION, Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def call(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path) as served:
        yield Client(served.session, served.url)


async def test_a_list_of_tasks_is_one_request(call: Client) -> None:
    """Each with what became of it; asked for again, nothing is left to do."""
    tasks = [{"task": name, "definition": DEFINITION} for name in "abc"]
    status, body = await call("PUT", "/v1/groups/g/tasks", {"tasks": tasks})
    assert status == 200
    assert [(each["task"], each["result"], each["definition_version"]) for each in body["tasks"]] == [
        (name, "created", 1) for name in "abc"
    ]
    _, shown = await call("GET", "/v1/groups/g/tasks/a")
    again = {"task": "a", "definition": DEFINITION, "if_match": body["tasks"][0]["etag"]}
    status, body = await call("PUT", "/v1/groups/g/tasks", {"tasks": [again], "delete": ["b"]})
    assert (status, [each["result"] for each in body["tasks"]]) == (200, ["unchanged", "deleted"])
    assert body["tasks_revision"] == 4
    assert (await call("GET", "/v1/groups/g/tasks/a"))[1] == shown
    assert await _names(call) == ["a", "c"]


async def _ask_with(call: Client, method: str, headers: dict[str, str], body: Any = None) -> tuple[int, Any]:
    """The tag of the answer's header instead of its status's fellow, and its body."""
    url = f"{call.base}/v1/groups/g/tasks"
    async with call.session.request(method, url, json=body, headers=headers) as response:
        told = await response.json()
        return response.status, told | {"ETag": response.headers.get("ETag")}


async def test_a_list_is_put_as_it_was_seen(call: Client) -> None:
    """`If-Match` is the tag of the group's list: of two who have seen the same one, the second is refused."""
    one, two = ({"task": name, "definition": DEFINITION} for name in ("one", "two"))
    status, made = await _ask_with(call, "PUT", {}, {"tasks": [one]})
    assert (status, made["etag"]) == (200, made["ETag"])
    _, seen = await _ask_with(call, "GET", {})
    assert seen["ETag"] == made["ETag"]
    as_seen = {"If-Match": seen["ETag"]}
    would_be = {"tasks": [two], "delete": ["one"], "validate_only": True}
    status, checked = await _ask_with(call, "PUT", as_seen, would_be)
    assert (status, checked["ETag"]) == (200, seen["ETag"])
    status, changed = await _ask_with(call, "PUT", as_seen, {"tasks": [two]})
    assert (status, changed["ETag"] == seen["ETag"]) == (200, False)
    for body in ({"tasks": [], "delete": ["one", "two"]}, would_be):
        status, refused = await _ask_with(call, "PUT", as_seen, body)
        assert (status, refused["error"], refused["etag"]) == (412, "PRECONDITION_FAILED", changed["ETag"])
        assert "If-Match" in refused["message"]
    assert await _names(call) == ["one", "two"]
    assert (await _ask_with(call, "PUT", {"If-Match": "any"}, {}))[0] == 400


async def test_a_list_s_tag_is_of_the_whole_list_and_kept_by_nobody(call: Client) -> None:
    """Whatever page or filter is asked for; a browser that kept an answer would show an old status."""
    tasks = [{"task": name, "definition": DEFINITION} for name in "abc"]
    put = {"tasks": [*tasks[:2], {**tasks[2], "target": "STOPPED"}]}
    told = []
    for query in (None, "", "?target=stopped", "?limit=1", "?owner=x"):
        method, url = "PUT" if query is None else "GET", f"{call.base}/v1/groups/g/tasks{query or ''}"
        async with call.session.request(method, url, json=put if query is None else None) as response:
            shown = await response.json()
            told.append((len(shown["tasks"]), response.headers["ETag"], response.headers["Cache-Control"]))
    assert [number for number, _, _ in told] == [3, 3, 1, 1, 0]
    assert {answer[1:] for answer in told} == {(told[0][1], "no-store")}


async def test_a_list_with_a_fault_changes_nothing_and_names_every_problem(call: Client) -> None:
    """Of definitions and of names, each with its path in the body."""
    await call("POST", "/v1/groups/g/tasks", {"task": "known", "definition": DEFINITION})
    bad = {**DEFINITION, "surprise": 1, "trigger": {"processing_time": "soon"}}
    body = {
        "tasks": [
            {"task": "new", "definition": DEFINITION},
            {"task": "bad", "definition": bad},
            {"task": "new", "definition": DEFINITION},
        ],
        "delete": ["known", "bad"],
    }
    for validate_only in (False, True):
        status, refusal = await call("PUT", "/v1/groups/g/tasks", {**body, "validate_only": validate_only})
        assert (status, refusal["error"]) == (400, "INVALID_REQUEST")
        assert [problem["path"] for problem in refusal["problems"]] == [
            "tasks[2].task",
            "delete[1]",
            "tasks[1].definition.surprise",
            "tasks[1].definition.trigger.processing_time",
        ]
        assert "tasks[1].definition.surprise: " in refusal["message"]
    assert await _names(call) == ["known"]


async def test_a_list_that_fails_in_its_middle_leaves_nothing(call: Client, tmp_path: Path) -> None:
    """The database refuses the row of the third of five tasks: the other four are not there either."""
    await call("POST", "/v1/groups/g/tasks", {"task": "known", "definition": DEFINITION})
    with sqlite3.connect(tmp_path / "m.db") as database:
        database.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON tasks WHEN NEW.task = 'c'"
            " BEGIN SELECT RAISE(ABORT, 'the disk says no'); END"
        )
    tasks = [{"task": name, "definition": DEFINITION} for name in "abcde"]
    status, _ = await call("PUT", "/v1/groups/g/tasks", {"tasks": tasks, "delete": ["known"]})
    assert status == 503
    with sqlite3.connect(tmp_path / "m.db") as database:
        assert database.execute("SELECT task FROM tasks").fetchall() == [("known",)]
        database.execute("DROP TRIGGER refuse")
    database.close()
    while status == 503:  # the group is being read again
        status, _ = await call("PUT", "/v1/groups/g/tasks", {"tasks": tasks, "delete": ["known"]})
    assert status == 200
    assert await _names(call) == list("abcde")


async def test_a_list_that_is_too_large_is_refused_as_a_whole(call: Client) -> None:
    """By the limit of any body, which the message names."""
    size = len(json.dumps({"task": "t", "definition": DEFINITION}))
    tasks = [{"task": f"t{n}", "definition": DEFINITION} for n in range(MAX_BYTES // size)]
    status, refusal = await call("PUT", "/v1/groups/g/tasks", {"tasks": tasks})
    assert (status, refusal["error"]) == (413, "PAYLOAD_TOO_LARGE")
    size = len(json.dumps({"tasks": tasks}))
    assert f"the body has {size} bytes, and this manager takes {MAX_BYTES} at most" in refusal["message"]
    assert "--max-request-bytes" in refusal["message"]
    assert refusal["limit_bytes"] == MAX_BYTES
    assert (await call("GET", "/v1/groups/g/tasks"))[0] == 404


async def _names(call: Client) -> list[str]:
    _, body = await call("GET", "/v1/groups/g/tasks")
    return [task["task"] for task in body["tasks"]]
