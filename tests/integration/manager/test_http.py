from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import pytest

from manager.runtime.coordinator_runtime import CoordinatorRuntime
from protocol.errors import ErrorCode, Failure
from tests.integration.manager.clients import MAX_BYTES, serving
from tests.integration.manager.json_client import DEFINITION, Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from manager.core.turn import Outcome

JOIN: dict[str, Any] = {
    "member_id": "",
    "session_timeout_ms": 1_000_000,
    "rebalance_timeout_ms": 60_000,
    "protocol_type": "test",
    "protocols": [{"name": "range", "metadata": {"any": ["thing"]}}],
    "require_member_id": False,
}


@pytest.fixture
async def call(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path) as served:
        yield Client(served.session, served.url)


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"{", "not JSON"),
        (b"[]", "object"),
        (b"null", "object"),
        (b"\xff\xfe", "not JSON"),
        (b'{"member_id":"\xff"}', "not JSON"),
        (b'{"member_id": 3}', "member_id: Expected `str`"),
        (b'{"member_id": "", "generation_id": 1.5}', "generation_id: Expected `int`"),
        (b'{"member_id": "", "generation_id": 1e400}', "generation_id"),
        (b'{"member_id": "", "generation_id": 123456789012345678901}', "generation_id"),
        (b'{"member_id": "", "generation_id": 1, "instance_id": "a\\n"}', "instance_id"),
        (b'{"member_id": "", "generation_id": 1, "instance_id": ".."}', "instance_id"),
        (b'{"member_id": "", "generation_id": 1, "wait_ms": -1}', "wait_ms"),
        (b"{}", "member_id"),
        (b'{"member_id":' + b"[" * 5000 + b"]" * 5000 + b"}", "member_id"),
    ],
)
async def test_a_malformed_body_is_refused_with_the_field_named(
    call: Client, raw: bytes, complaint: str
) -> None:
    """INVALID_REQUEST, whatever the bytes are."""
    status, body = await call("POST", "/v1/groups/g/heartbeat", raw=raw)
    assert (status, body["error"], body["retriable"]) == (400, "INVALID_REQUEST", False)
    assert complaint in body["message"]


async def test_deeply_nested_metadata_is_refused_and_not_a_bug(call: Client) -> None:
    """An opaque value is never walked, but it is never trusted either."""
    raw = b'{"member_id":"","x":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    status, body = await call("POST", "/v1/groups/g/heartbeat", raw=raw)
    assert (status, body["error"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("name", ["a%20b", "%2E%2E", "a%2Fb", "%C3%A4", "x" * 250, "a%0A"])
async def test_an_illegal_group_id_comes_before_the_body(call: Client, name: str) -> None:
    """INVALID_GROUP_ID, and a join says its generation all the same."""
    status, body = await call("POST", f"/v1/groups/{name}/join", raw=b"{")
    assert (status, body["error"], body["generation_id"]) == (400, "INVALID_GROUP_ID", -1)


async def test_an_empty_group_id_is_an_illegal_one(call: Client) -> None:
    """Not a path that does not exist."""
    assert (await call("POST", "/v1/groups//heartbeat", {}))[1]["error"] == "INVALID_GROUP_ID"


async def test_a_join_is_answered_with_the_contracts_fields(call: Client) -> None:
    """Names exact, metadata as it was sent, no `tasks` for another protocol type."""
    status, body = await call("POST", "/v1/groups/g/join", JOIN | {"client_id": "c", "unknown": 1})
    member = body["member_id"]
    assert (status, member[:2]) == (200, "c-")
    assert body == {
        "error": "NONE",
        "generation_id": 1,
        "protocol_type": "test",
        "protocol_name": "range",
        "leader_id": member,
        "member_id": member,
        "skip_assignment": False,
        "members": [{"member_id": member, "instance_id": None, "metadata": {"any": ["thing"]}}],
    }


async def test_a_refused_join_echoes_its_id(call: Client) -> None:
    """Beside generation -1."""
    _, body = await call("POST", "/v1/groups/g/join", JOIN | {"member_id": "made-up"})
    assert (body["error"], body["generation_id"], body["member_id"]) == ("UNKNOWN_MEMBER_ID", -1, "made-up")
    _, body = await call("POST", "/v1/groups/g/join", JOIN | {"require_member_id": True, "client_id": "z"})
    assert (body["error"], body["member_id"][:2]) == ("MEMBER_ID_REQUIRED", "z-")


async def test_unknown_paths_methods_and_large_bodies_have_codes(call: Client) -> None:
    """NOT_FOUND, METHOD_NOT_ALLOWED, PAYLOAD_TOO_LARGE."""
    assert (await call("GET", "/v1/nothing"))[1]["error"] == "NOT_FOUND"
    status, body = await call("PATCH", "/v1/groups/g/tasks/t")
    assert (status, body["error"]) == (405, "METHOD_NOT_ALLOWED")
    status, body = await call("POST", "/v1/groups/g/heartbeat", raw=b" " * (MAX_BYTES + 1))
    assert (status, body["error"]) == (413, "PAYLOAD_TOO_LARGE")


async def test_a_tasks_life_over_http(call: Client) -> None:
    """Create, show, change, steer, delete; each with its status."""
    tasks = "/v1/groups/g/tasks"
    assert (await call("GET", tasks))[1]["error"] == "GROUP_ID_NOT_FOUND"
    status, body = await call("POST", tasks, {"task": "t", "definition": DEFINITION})
    assert (status, body["state"], body["definition_version"]) == (201, "UNASSIGNED", 1)
    assert (await call("POST", tasks, {"task": "t", "definition": DEFINITION}))[1]["error"] == "TASK_EXISTS"
    assert (await call("PUT", f"{tasks}/t", {"definition": DEFINITION}))[0] == 200
    assert (await call("PUT", f"{tasks}/u", {"definition": DEFINITION | {"weight": 2}}))[0] == 201
    status, body = await call("PUT", f"{tasks}/t/pause")
    assert (status, body["target"]) == (202, "PAUSED")
    assert (await call("POST", f"{tasks}/t/restart"))[1]["restart_count"] == 1
    status, body = await call("GET", f"{tasks}/t/status")
    assert (body["task"], body["owner"], body["token"]) == ("t", None, 0)
    assert [t["task"] for t in (await call("GET", tasks))[1]["tasks"]] == ["t", "u"]
    assert (await call("DELETE", f"{tasks}/t"))[1] == {"error": "NONE"}
    assert (await call("GET", f"{tasks}/t"))[1]["error"] == "UNKNOWN_TASK"


async def test_a_reset_over_http(call: Client) -> None:
    """With or without a body; the answer says what it means, the task's view shows it."""
    began_s = int(time.time())
    task = "/v1/groups/g/tasks/t"
    await call("PUT", task, {"definition": DEFINITION})
    status, body = await call("POST", f"{task}/reset")
    assert (status, body["error"], body["retriable"]) == (400, "INVALID_REQUEST", False)
    await call("PUT", f"{task}/stop")
    status, body = await call("POST", f"{task}/reset")
    token = body["token"]
    told = {"number": token, "offsets": "earliest"}
    assert (status, body["error"], body["task"], body["reset"]) == (200, "NONE", "t", told)
    assert began_s <= token <= time.time()
    assert "The rows in the table t stay, and rows that are read again are written again" in body["meaning"]
    again = (await call("POST", f"{task}/reset", {"offsets": "earliest"}))[1]["reset"]
    assert again["number"] > token
    assert (await call("GET", task))[1]["reset"] == told | again
    assert (await call("GET", f"{task}/status"))[1]["reset"] == told | again


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"[]", "object"),
        (b'{"offsets": "latest"}', 'offsets: expected "earliest", or an object'),
        (b'{"offsets": null}', 'offsets: expected "earliest", or an object'),
        (b'{"offsets": {"a": null}}', "offsets.a: expected"),
        (b'{"offsets": {"a": {"b": 1}, "c d": []}}', 'offsets["c d"]: expected'),
        (b'{"offsets": {"a": 123456789012345678901}}', "offsets.a: expected"),
        (b'{"offsets": {"pathGlobFilter": "x"}}', "offsets.pathGlobFilter: a source json can only begin"),
    ],
)
async def test_offsets_that_make_no_sense_are_refused(call: Client, raw: bytes, complaint: str) -> None:
    """INVALID_REQUEST that names each option, whether it is JSON's fault or the source's."""
    await call("PUT", "/v1/groups/g/tasks/t", {"definition": DEFINITION, "target": "STOPPED"})
    status, body = await call("POST", "/v1/groups/g/tasks/t/reset", raw=raw)
    assert (status, body["error"]) == (400, "INVALID_REQUEST")
    assert complaint in body["message"]
    assert (await call("GET", "/v1/groups/g/tasks/t"))[1]["reset"] is None


async def test_a_new_task_says_where_it_is(call: Client) -> None:
    """Location with 201, and only then."""
    tasks = f"{call.base}/v1/groups/g/tasks"
    for method, path, status, place in (
        ("POST", "", 201, "/v1/groups/g/tasks/a.b"),
        ("POST", "", 409, None),
        ("PUT", "/c", 201, "/v1/groups/g/tasks/c"),
        ("PUT", "/c", 200, None),
    ):
        body = {"task": "a.b", "definition": DEFINITION}
        async with call.session.request(method, tasks + path, json=body) as response:
            assert (response.status, response.headers.get("Location")) == (status, place)


@pytest.mark.parametrize("operation", ["join", "sync", "offsets/commit"])
async def test_nesting_has_its_limit(call: Client, operation: str) -> None:
    """A hundred brackets in brackets are fine, one more is refused, wherever the value would go."""
    bodies = {
        "join": {**JOIN, "session_timeout_ms": 0},
        "sync": {"member_id": "m", "generation_id": 1},
        "offsets/commit": {"offsets": {}},
    }
    for depth, is_refused in ((99, False), (100, True)):
        deep = b'{"x": ' + b"[" * depth + b"]" * depth + b","
        raw = deep + msgspec.json.encode(bodies[operation])[1:]
        _, body = await call("POST", f"/v1/groups/g/{operation}", raw=raw)
        assert ("nested too deeply" in body.get("message", "")) is is_refused


async def test_a_bad_definition_is_refused_with_every_problem_and_creates_nothing(call: Client) -> None:
    """The same list that validation gives."""
    bad = DEFINITION | {"surprise": 1, "sink": {"format": "sql", "options": {"table": "t"}}}
    _, body = await call("POST", "/v1/groups/g/tasks", {"task": "t", "definition": bad})
    assert body["error"] == "INVALID_REQUEST"
    assert sorted(p["path"] for p in body["problems"]) == ["sink.options.url", "surprise"]
    _, checked = await call("POST", "/v1/tasks/validate", {"definition": bad})
    assert (checked["error"], checked["problems"]) == ("NONE", body["problems"])
    assert (await call("GET", "/v1/groups/g"))[1]["error"] == "GROUP_ID_NOT_FOUND"


async def test_a_bug_leaves_as_an_id_and_no_trace(call: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """UNKNOWN_SERVER_ERROR; what went wrong is for the log."""

    async def broken(*_: object, **__: object) -> Outcome:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(CoordinatorRuntime, "ask", broken)
    status, body = await call("GET", "/v1/groups/g")
    assert (status, body["error"]) == (500, "UNKNOWN_SERVER_ERROR")
    assert "secret" not in body["message"]


async def test_groups_are_listed_by_filters_that_ignore_case(call: Client) -> None:
    """An unknown word matches nothing."""
    await call("POST", "/v1/groups/g/join", JOIN)
    for query, names in {
        "": ["g"],
        "?state=AWAITINGSYNC": ["g"],
        "?state=no": [],
        "?protocol_type=TEST": ["g"],
    }.items():
        _, body = await call("GET", f"/v1/groups{query}")
        assert [group["group"] for group in body["groups"]] == names


async def test_the_console_shows_groups_and_tasks_and_escapes_what_it_shows(call: Client) -> None:
    """Server-rendered, with a policy that lets nothing else in."""
    await call("POST", "/v1/groups/g/tasks", {"task": "t", "definition": DEFINITION})
    await call("POST", "/v1/groups/g/join", JOIN | {"client_id": "<script>"})
    async with call.session.get(call.base) as overview, call.session.get(f"{call.base}/groups/g") as group:
        assert (overview.status, group.status) == (200, 200)
        assert "default-src 'self'" in overview.headers["Content-Security-Policy"]
        assert 'href="/groups/g"' in await overview.text()
        page = await group.text()
    assert ">t<" in page
    assert "&lt;script&gt;-" in page
    assert "<script>" not in page
    async with call.session.get(f"{call.base}/groups/none") as nothing:
        assert nothing.status == 404


async def test_the_coordinator_is_named(call: Client) -> None:
    """To whoever asks for a legal group."""
    _, body = await call("GET", "/v1/coordinator?group=g")
    assert body["coordinator"] == {"id": "m", "url": "http://m"}
    assert (await call("GET", "/v1/coordinator"))[1]["error"] == "INVALID_GROUP_ID"


async def test_what_is_remembered_of_a_task_is_served(call: Client) -> None:
    """Its figures and history, and the moves of its group; what is not there is UNKNOWN, as everywhere."""
    await call("POST", "/v1/groups/g/tasks", {"task": "t", "definition": DEFINITION})
    status, history = await call("GET", "/v1/groups/g/tasks/t/history")
    created = history.pop("history")
    assert (status, history) == (
        200,
        {"error": "NONE", "task": "t", "since_ms": None, "interval_ms": 10_000, "points": []},
    )
    assert [(line["state"], line["owner"], line["token"]) for line in created] == [("UNASSIGNED", None, 0)]
    assert await call("GET", "/v1/groups/g/moves") == (200, {"error": "NONE", "since_ms": None, "moves": []})
    assert (await call("GET", "/v1/groups/g/tasks/u/history"))[1]["error"] == "UNKNOWN_TASK"
    assert (await call("GET", "/v1/groups/h/moves"))[1]["error"] == "GROUP_ID_NOT_FOUND"


async def test_a_task_is_changed_only_as_it_was_seen(call: Client) -> None:
    """ETag, If-Match and If-None-Match; a second writer is told the tag that there is now."""
    task = f"{call.base}/v1/groups/g/tasks/t"
    new = {"If-None-Match": "*"}
    async with call.session.put(task, json={"definition": DEFINITION}, headers=new) as created:
        etag = created.headers["ETag"]
        assert (created.status, created.headers["Cache-Control"]) == (201, "no-store")
    async with call.session.put(task, json={"definition": DEFINITION}, headers=new) as again:
        assert (again.status, (await again.json())["error"]) == (412, "PRECONDITION_FAILED")
    async with call.session.get(task, headers={"If-None-Match": f'"x", {etag}'}) as same:
        assert (same.status, same.headers["ETag"], await same.read()) == (304, etag, b"")
    changed = {"definition": DEFINITION | {"weight": 2}}
    async with call.session.put(task, json=changed, headers={"If-Match": etag}) as put:
        assert (put.status, put.headers["ETag"] != etag) == (200, True)
        now = put.headers["ETag"]
    async with call.session.delete(task, headers={"If-Match": etag}) as late:
        assert (late.status, (await late.json())["etag"]) == (412, now)
    async with call.session.get(task, headers={"If-Match": etag}) as late:
        assert (late.status, (await late.json())["etag"]) == (412, now)
    async with call.session.get(task, headers={"If-None-Match": etag}) as shown:
        assert (shown.status, shown.headers["ETag"]) == (200, now)
    async with call.session.delete(task, headers={"If-Match": "x"}) as wrong:
        assert (wrong.status, (await wrong.json())["error"]) == (400, "INVALID_REQUEST")
    async with call.session.delete(task, headers={"If-Match": now}) as gone:
        assert gone.status == 200


async def test_a_long_list_is_read_bit_by_bit(call: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same document under the same tag; one that cannot be read to its end is cut off."""
    names = [f"t{number}" for number in range(5)]
    for name in names:
        await call("PUT", f"/v1/groups/g/tasks/{name}", {"definition": DEFINITION})
    url = f"{call.base}/v1/groups/g/tasks"
    async with call.session.get(url) as at_once:
        expected, tag = await at_once.json(), at_once.headers["ETag"]
    monkeypatch.setattr("manager.http.endpoints.task_lists.AT_ONCE", 2)
    async with call.session.get(url) as streamed:
        assert (streamed.headers["ETag"], streamed.content_type) == (tag, "application/json")
        assert streamed.headers["Transfer-Encoding"] == "chunked"
        assert await streamed.json() == expected
    async with call.session.get(url, params={"target": "running"}) as filtered:
        assert [task["task"] for task in (await filtered.json())["tasks"]] == names
    async with call.session.head(url) as head:
        assert (head.status, head.headers["ETag"], await head.read()) == (200, tag, b"")

    async def gone(*_: object) -> Failure:
        return Failure(ErrorCode.GROUP_ID_NOT_FOUND, "there is no group g")

    monkeypatch.setattr("manager.http.endpoints.task_lists.TaskListHandlers._after", gone)
    with pytest.raises(aiohttp.ClientPayloadError):
        async with call.session.get(url) as cut:
            await cut.read()


async def test_lists_come_in_pages_and_by_filters(call: Client) -> None:
    """Complete without a limit; `next` leads on, a filter comes before the page."""
    for name in ("a", "b", "c"):
        await call("PUT", f"/v1/groups/g{name}/tasks/t", {"definition": DEFINITION})
        await call("PUT", f"/v1/groups/g/tasks/{name}", {"definition": DEFINITION})
    await call("PUT", "/v1/groups/g/tasks/b/stop")
    for query, names, following in (
        ("", ["a", "b", "c"], None),
        ("?limit=2", ["a", "b"], "b"),
        ("?limit=2&after=b", ["c"], None),
        ("?state=unassigned&limit=1", ["a"], "a"),
        ("?state=unassigned&limit=1&after=a", ["c"], None),
        ("?target=stopped", ["b"], None),
        ("?owner=nobody", [], None),
        ("?state=no", [], None),
    ):
        _, body = await call("GET", f"/v1/groups/g/tasks{query}")
        assert ([task["task"] for task in body["tasks"]], body["next"]) == (names, following)
    _, body = await call("GET", "/v1/groups?limit=2&after=g")
    assert ([group["group"] for group in body["groups"]], body["next"]) == (["ga", "gb"], "gb")
    assert (await call("GET", "/v1/groups/g/tasks?limit=0"))[1]["error"] == "INVALID_REQUEST"


async def test_announced_assignors_are_listed(call: Client) -> None:
    """Of all groups that have members, or of one."""
    await call("POST", "/v1/groups/g/join", JOIN)
    await call("POST", "/v1/groups/h/tasks", {"task": "t", "definition": DEFINITION})
    _, body = await call("GET", "/v1/assignors")
    [group] = body["groups"]
    assert (group["group"], group["members"]) == ("g", 1)
    [announced] = group["assignors"]
    assert announced == {"assignor": "range", "members": 1, "is_candidate": True, "is_chosen": True}
    assert (await call("GET", "/v1/assignors?group=h"))[1]["groups"] == []
    assert (await call("GET", "/v1/assignors?group=g"))[1]["groups"] == [group]


async def test_the_fenced_sinks_are_described(call: Client) -> None:
    """With their options as JSON Schema."""
    status, body = await call("GET", "/v1/sinks")
    sinks = {each["format"]: each for each in body["sinks"]}
    assert (status, list(sinks)) == (200, ["delta", "fenced_files", "iceberg", "sql"])
    options = sinks["sql"]["options"]
    assert (options["required"], options["additionalProperties"]) == (["url", "table"], False)
    assert options["properties"]["mode"]["enum"] == ["append", "upsert"]
