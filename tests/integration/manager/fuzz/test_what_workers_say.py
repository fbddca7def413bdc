from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.manager.fuzz.front import JOIN

if TYPE_CHECKING:
    from tests.integration.manager.fuzz.front import Front

GROUP = "/v1/groups/told"
DEFINITION = {
    "source": {"format": "rate"},
    "sink": {"format": "sql", "options": {"url": "sqlite:///out.db", "table": "t"}},
}
DIGITS = "9" * 400


async def owner(front: Front) -> dict[str, Any]:
    """A worker that is alone in its group and owns a task."""
    await front.tell("PUT", f"{GROUP}/tasks/t", {"definition": DEFINITION})
    group = await front.tell("GET", GROUP)
    gone = [{"member_id": member["member_id"]} for member in group["members"]]
    await front.tell("POST", f"{GROUP}/leave", {"members": gone})
    joined = await front.tell("POST", f"{GROUP}/join", JOIN)
    here = {name: joined[name] for name in ("member_id", "generation_id")}
    given = [{"member_id": here["member_id"], "assignment": {"tasks": ["t"]}}]
    await front.tell("POST", f"{GROUP}/sync", here | {"assignments": given})
    claimed = await front.tell("POST", f"{GROUP}/claim", here | {"tasks": ["t"]})
    return here | {"token": claimed["granted"][0]["token"]}


async def post(front: Front, path: str, body: str) -> dict[str, Any]:
    """The answer to a body that Python's own writer of JSON might not write."""
    answer = await front.ask("POST", f"/v1/groups/{path}", body.encode())
    assert answer is not None, "it was accepted, and waits"
    answer.check()
    return answer.document()


def join_with(metadata: str, instance_id: str | None = None) -> str:
    """A join that brings `metadata` along."""
    body = JOIN | {"instance_id": instance_id, "protocols": [{"name": "sticky", "metadata": "METADATA"}]}
    return json.dumps(body).replace('"METADATA"', metadata)


@pytest.mark.parametrize(
    ("metrics", "place"),
    [
        (f'{{"load": {DIGITS}}}', "tasks[0].metrics.load"),
        (f'{{"load": -{DIGITS}}}', "tasks[0].metrics.load"),
        (f'{{"lag": {{"offsets": [1, {DIGITS}]}}}}', "tasks[0].metrics.lag.offsets[1]"),
        ('{"load": 1e999}', "tasks[0].metrics"),
        ('{"load": NaN}', "not JSON"),
        ('{"load": Infinity}', "not JSON"),
        (f'{{"load": {"9" * 5000}}}', "tasks[0].metrics"),
        (f'{{"load": {"[" * 200}{"]" * 200}}}', "nested too deeply"),
        (f'{{"load": {"[" * 5000}{"]" * 5000}}}', "nested too deeply"),
    ],
    ids=lambda text: text[:24],
)
def test_figures_that_no_reader_can_take_are_refused_where_they_come_in(
    front: Front, metrics: str, place: str
) -> None:
    """The answer names them, and the group rebalances, is shown and lives on as if nothing had been said."""

    async def story() -> None:
        here = await owner(front)
        report = f'{{"task": "t", "token": {here["token"]}, "state": "RUNNING", "metrics": {metrics}}}'
        told = await post(
            front, "told/report", f'{{"member_id": "{here["member_id"]}", "tasks": [{report}]}}'
        )
        assert told["error"] == "INVALID_REQUEST"
        assert place in told["message"]
        again = await front.tell("POST", f"{GROUP}/join", JOIN | {"member_id": here["member_id"]})
        assert (again["error"], again["generation_id"]) == ("NONE", here["generation_id"] + 1)
        await front.tell("POST", f"{GROUP}/sync", here | {"generation_id": again["generation_id"]})
        assert (await front.tell("GET", f"{GROUP}/tasks/t/status"))["metrics"] is None

    front.run(story())


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        (f'{{"capacity": {DIGITS}}}', "protocols[0].metadata.capacity"),
        ('{"capacity": -1}', "protocols[0].metadata.capacity"),
        ('{"capacity": 0}', "protocols[0].metadata.capacity"),
        ('{"capacity": 1e300}', "protocols[0].metadata.capacity"),
        ('{"capacity": 1e999}', "protocols[0].metadata"),
        ('{"capacity": null}', "protocols[0].metadata.capacity"),
        (f'{{"owned": {{"t": {DIGITS}}}}}', "protocols[0].metadata.owned"),
        ('{"owned": ["t"]}', "protocols[0].metadata.owned"),
        ('{"labels": {"a": 1}}', "protocols[0].metadata.labels"),
        ('{"claiming": "t"}', "protocols[0].metadata.claiming"),
        ('{"tasks_revision": 1e3}', "protocols[0].metadata.tasks_revision"),
        ("9" * 5000, "protocols[0].metadata"),
        ("1e999", "protocols[0].metadata"),
        ("NaN", "not JSON"),
        (f"{'[' * 200}{']' * 200}", "nested too deeply"),
    ],
    ids=lambda text: text[:24],
)
def test_what_a_worker_tells_with_its_join_is_refused_where_it_comes_in(
    front: Front, metadata: str, place: str
) -> None:
    """Leaders, the manager and the console read it; a member of that name never comes into being."""

    async def story() -> None:
        before = await owner(front)
        told = await post(front, "told/join", join_with(metadata))
        assert told["error"] == "INVALID_REQUEST"
        assert place in told["message"]
        members = (await front.tell("GET", GROUP))["members"]
        assert [member["member_id"] for member in members] == [before["member_id"]]

    front.run(story())


@pytest.mark.parametrize("metadata", ["1", '"text"', "null", "[1]", '{"capacity": 2, "unknown": [{}]}', "{}"])
def test_metadata_of_another_kind_is_passed_on_as_it_came(front: Front, metadata: str) -> None:
    """It is any JSON value (protocol §2.1); what is unknown in it belongs to a later version."""

    async def story() -> None:
        told = await post(front, "another/join", join_with(metadata, "other"))
        assert told["error"] == "NONE"
        shown = await front.ask("GET", "/v1/groups/another")
        assert shown is not None
        assert metadata.replace(" ", "").encode() in shown.body.replace(b" ", b"")

    front.run(story())
