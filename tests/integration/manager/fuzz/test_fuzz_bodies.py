from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.manager.fuzz import nearly_right
from tests.integration.manager.fuzz.front import DEFINITION, FUZZ, JOIN

if TYPE_CHECKING:
    from tests.integration.manager.fuzz.front import Answer, Front

TYPES = nearly_right.request_types()
GROUP = "/v1/groups/herd"


async def facts(front: Front) -> dict[str, Any]:
    """A group in Stable, whose static leader owns a task, and what is true of it."""
    await front.tell("PUT", f"{GROUP}/tasks/TASK", {"definition": DEFINITION, "target": "RUNNING"})
    group = await front.tell("GET", GROUP)
    while group["state"] != "Stable" or [m["instance_id"] for m in group["members"]] != ["INSTANCE"]:
        await start_over(front, group)
        group = await front.tell("GET", GROUP)
    here = {"member_id": group["leader_id"], "generation_id": group["generation_id"]}
    claimed = await front.tell("POST", f"{GROUP}/claim", here | {"tasks": ["TASK"]})
    token = claimed["granted"][0]["token"] if claimed.get("granted") else 0
    return {"MEMBER": here["member_id"], "GENERATION": here["generation_id"], "TOKEN": token}


async def facts_for(front: Front, target: str) -> dict[str, Any]:
    """As `facts`; but a sync has something to say only in AwaitingSync."""
    known = await facts(front)
    if target != "POST sync":
        return known
    again = JOIN | {"member_id": known["MEMBER"], "instance_id": "INSTANCE"}
    joined = await front.tell("POST", f"{GROUP}/join", again)
    return known | {"GENERATION": joined["generation_id"]}


async def start_over(front: Front, group: dict[str, Any]) -> None:
    """Nobody but one static member, to which the task is assigned."""
    members = [{"member_id": m["member_id"]} for m in group["members"]]
    await front.tell("POST", f"{GROUP}/leave", {"members": members})
    joined = await front.tell("POST", f"{GROUP}/join", JOIN | {"instance_id": "INSTANCE"})
    here = {name: joined[name] for name in ("member_id", "generation_id")}
    given = [{"member_id": here["member_id"], "assignment": {"tasks": ["TASK"]}}]
    await front.tell("POST", f"{GROUP}/sync", here | {"assignments": given})


async def send(front: Front, target: str, body: Any) -> None:
    known = await facts_for(front, target)
    answer = await front.ask(*place(target), nearly_right.encode(body, known))
    if answer is not None:
        check(target, answer)
    await front.still_serves()


def place(target: str) -> tuple[str, str]:
    method, _, path = target.partition(" ")
    return method, f"{GROUP}/{path}"


def check(target: str, answer: Answer) -> None:
    answer.check()
    if target.endswith("join") and answer.document()["error"] != "NONE":
        assert answer.document()["generation_id"] == -1


@pytest.mark.parametrize("target", TYPES)
def test_each_field_survives_each_value_that_hurts(front: Front, target: str) -> None:
    """One field at a time of a body that is right otherwise, so that every rule behind it is reached."""

    async def sweep() -> None:
        known = await facts_for(front, target)
        for body in nearly_right.each_spoiled(nearly_right.whole(TYPES[target])):
            answer = await front.ask(*place(target), nearly_right.encode(body, known))
            if answer is not None:
                check(target, answer)
            if answer is None or answer.status < 300:
                known = await facts_for(front, target)
        await front.still_serves()

    front.run(sweep())


@pytest.mark.parametrize("target", TYPES)
@settings(max_examples=6 * FUZZ)
@given(data=st.data())
def test_nearly_right_bodies_never_do_harm(front: Front, target: str, data: st.DataObject) -> None:
    """Each request type with a field or two spoiled: a code under its own status, or a legitimate wait."""
    body = data.draw(nearly_right.of(TYPES[target]))
    for _ in range(data.draw(st.integers(0, 2))):
        body = data.draw(spoiling(body))
    front.run(send(front, target, body))


@st.composite
def spoiling(draw: st.DrawFn, body: Any) -> Any:
    return nearly_right.spoiled(body, draw)


@settings(max_examples=30 * FUZZ)
@given(target=st.sampled_from(sorted(TYPES)), body=nearly_right.json_values)
def test_any_json_is_answered(front: Front, target: str, body: Any) -> None:
    """Whether or not it looks like a request."""
    front.run(send(front, target, body))
