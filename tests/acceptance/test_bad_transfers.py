"""What can be wrong with a transfer, through the command line and the API of a real manager."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli.client.admin_client import path_of
from tests.acceptance.processes import Manager
from tests.acceptance.test_bad_input import GOOD, complaint, request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.processes

PATIENCE_MS = 600_000
"""Longer than the tests take: nobody is behind the member."""


class Groups:
    """Group `full` has tasks, and a member that owns one; `other` has a member, and `empty` has none."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        for group, *tasks in (("full", "moving", "rests", "twin"), ("other", "rests"), ("empty", "alone")):
            for task in tasks:
                self.post(201, path_of("groups", group, "tasks"), task=task, definition=GOOD)
        self.join("full", "moving")
        self.join("other")
        self.post(202, "/v1/transfers", **{"from": "full", "to": "other", "tasks": ["moving"], "id": "stuck"})

    def post(self, expected: int, path: str, **body: Any) -> dict[str, Any]:
        status, answer = request(self.manager, "POST", path, json.dumps(body).encode())
        assert status == expected, answer
        return answer

    def join(self, group: str, *tasks: str) -> None:
        """A member that claims these tasks, and will not let go of them."""
        joined = self.post(
            200,
            path_of("groups", group, "join"),
            member_id="",
            session_timeout_ms=PATIENCE_MS,
            rebalance_timeout_ms=PATIENCE_MS,
            protocol_type="sparkherd",
            protocols=[{"name": "range", "metadata": {"settles": True, "homes": True}}],
            require_member_id=False,
        )
        who = {"member_id": joined["member_id"], "generation_id": joined["generation_id"]}
        given = [{"member_id": joined["member_id"], "assignment": {"tasks": tasks}}]
        self.post(200, path_of("groups", group, "sync"), **who, assignments=given)
        if tasks:
            claimed = self.post(200, path_of("groups", group, "claim"), **who, tasks=tasks)
            assert [each["task"] for each in claimed["granted"]] == [*tasks]

    def get(self, path: str) -> dict[str, Any]:
        return request(self.manager, "GET", path, b"")[1]

    def seen(self) -> dict[str, Any]:
        """All that a transfer could have changed."""
        tasks = {group: self.get(path_of("groups", group, "tasks")) for group in ("full", "other", "empty")}
        return {**tasks, "transfers": self.get("/v1/transfers"), "groups": sorted(self._names())}

    def _names(self) -> list[str]:
        return [group["group"] for group in self.get("/v1/groups")["groups"]]


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Groups]:
    """One manager for all: none of this may change anything there."""
    manager = Manager(
        tmp_path_factory.mktemp("manager"),
        *("--initial-rebalance-delay-ms", "0"),
        *("--max-session-timeout-ms", str(PATIENCE_MS)),
    )
    try:
        groups = Groups(manager)
        before = groups.seen()
        yield groups
        assert groups.seen() == before
        assert manager.terminate() == 0, manager.log()
        assert "Traceback" not in manager.log()
    finally:
        manager.stop()


def transfer(*tasks: str, source: str = "full", target: str = "other", **more: Any) -> dict[str, Any]:
    """What is asked for."""
    return {"from": source, "to": target, "tasks": [*tasks], **more}


WRONG = {
    "a group to leave that is not there": (
        transfer("rests", source="nowhere"),
        (404, 1, "GROUP_ID_NOT_FOUND", "nowhere"),
    ),
    "a group to go to that is not there": (
        transfer("twin", target="nowhere"),
        (404, 1, "GROUP_ID_NOT_FOUND", "to: there is no group nowhere"),
    ),
    "a name that is no group's": (
        transfer("twin", target="a/b"),
        (400, 1, "INVALID_REQUEST", "to: expected 1 to 249 characters"),
    ),
    "a task that is there already": (transfer("rests"), (409, 1, "TASK_EXISTS", "tasks[0]")),
    "a name that is there already": (
        transfer("twin", rename={"twin": "rests"}),
        (409, 1, "TASK_EXISTS", "tasks[0]"),
    ),
    "nobody who could run it": (
        transfer("twin", target="empty"),
        (409, 1, "NO_ELIGIBLE_WORKER", "tasks[0]"),
    ),
    "a task that is under transfer": (
        transfer("moving", rename={"moving": "again"}),
        (409, 1, "TASK_UNDER_TRANSFER", "moving"),
    ),
    "a group that it is in": (transfer("twin", target="full"), (400, 1, "INVALID_REQUEST", "to: ")),
    "an unknown task": (transfer("twin", "nobody"), (404, 1, "UNKNOWN_TASK", "nobody")),
    "a name that is no task's": (
        transfer("twin", rename={"twin": "a/b"}),
        (400, 2, "INVALID_REQUEST", "1 to 249 characters"),
    ),
    "one name for two": (
        transfer("twin", "rests", rename={"twin": "one", "rests": "one"}),
        (400, 1, "INVALID_REQUEST", "rename: "),
    ),
    "the name of another one of them": (
        transfer("twin", "moving", rename={"twin": "moving"}),
        (400, 1, "INVALID_REQUEST", "rename: "),
    ),
    "another name for one that stays": (
        transfer("twin", rename={"rests": "one"}),
        (400, 1, "INVALID_REQUEST", "rename.rests"),
    ),
    "one task twice": (transfer("twin", "twin"), (400, 1, "INVALID_REQUEST", "tasks")),
    "more than fifty": (
        transfer(*(f"t{number}" for number in range(51))),
        (400, 1, "INVALID_REQUEST", "tasks"),
    ),
    "the id of another one": (transfer("twin", id="stuck"), (400, 1, "INVALID_REQUEST", "id: ")),
    "an id that is none": (
        transfer("twin", id="a b"),
        (400, 1, "INVALID_REQUEST", "id: expected 1 to 249 characters"),
    ),
}
"""What is asked for, and with which status, exit code, error and words it is refused."""


@pytest.mark.parametrize("what", WRONG)
def test_a_transfer_that_cannot_be_is_refused(groups: Groups, tmp_path: Path, what: str) -> None:
    """By one line that names the field or the task, at the API and on the command line; nothing has begun."""
    asked, (status, code, error, named) = WRONG[what]
    answered, refused = request(groups.manager, "POST", "/v1/transfers", json.dumps(asked).encode())
    assert (answered, refused["error"]) == (status, error), refused
    told = json.dumps([refused["message"], refused.get("problems")])
    assert named in told
    line = complaint(code, "tasks", "transfer", *_flags(asked), "--manager", groups.manager.url, cwd=tmp_path)
    assert named in line
    assert code == 2 or error in line


def _flags(asked: dict[str, Any]) -> list[str]:
    flags = ["--from", asked["from"], "--to", asked["to"], *asked["tasks"]]
    if "id" in asked:
        flags += ["--id", asked["id"]]
    for old, new in asked.get("rename", {}).items():
        flags += ["--rename", f"{old}={new}"]
    return flags


@pytest.mark.parametrize("command", ["show", "cancel"])
def test_a_transfer_that_there_is_not(groups: Groups, tmp_path: Path, command: str) -> None:
    """Neither shown nor cancelled."""
    line = complaint(1, "transfers", command, "nothing", "--manager", groups.manager.url, cwd=tmp_path)
    assert "UNKNOWN_TRANSFER" in line
