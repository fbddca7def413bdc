"""Answers of the API, as the view models take them."""

from __future__ import annotations

from typing import Any

import msgspec

from manager.console.pages.members import MemberLine, known_members, member_line
from manager.core.commands import OwnerCounts, TaskCounts
from manager.core.task_tally import Standing, TaskTally
from protocol.messages.base import encode_opaque
from protocol.messages.groups import DescribedMember, DescribeGroupResponse
from protocol.messages.tasks import TaskView
from protocol.task_metrics import figure

NOW = 1_772_377_445_000
DEFINITION = msgspec.Raw(b'{"source":{"format":"rate"},"sink":{"format":"noop"}}')


def member(member_id: str, **fields: Any) -> DescribedMember:
    metadata = fields.pop("metadata", {})
    told = {
        "instance_id": None,
        "client_id": member_id.partition("-")[0],
        "host": "127.0.0.1",
        "session_timeout_ms": 10_000,
        "last_heartbeat_ms": NOW,
    }
    return DescribedMember(member_id=member_id, metadata=encode_opaque(metadata), **(told | fields))


def group(*members: DescribedMember, **fields: Any) -> DescribeGroupResponse:
    told: dict[str, Any] = {
        "group": "flights",
        "state": "Stable",
        "generation_id": 4,
        "protocol_type": "sparkherd",
        "protocol_name": "sticky",
        "leader_id": members[0].member_id if members else None,
        "tasks": 0,
        "tasks_revision": 1,
    }
    return DescribeGroupResponse(members=members, **(told | fields))


def task(name: str, state: str = "RUNNING", owner: str | None = None, **fields: Any) -> TaskView:
    told: dict[str, Any] = {
        "target": "RUNNING",
        "token": 1,
        "generation_id": 4,
        "batch_id": None,
        "metrics": None,
        "cause": None,
        "since_ms": NOW - 5000,
        "restart_count": 0,
        "assigned_to": owner,
        "definition": DEFINITION,
        "definition_version": 1,
    }
    return TaskView(task=name, state=state, owner=owner, **(told | fields))


def counts(*tasks: TaskView) -> TaskCounts:
    """What the group says of so many tasks in sum."""
    tally = TaskTally()
    for each in tasks:
        tally.add(each.task, Standing(each.owner, each.state, figure(each.metrics, "load")))
    owners = {
        owner: OwnerCounts(dict(told.states), told.load) for owner, told in tally.by_owner.items() if owner
    }
    return TaskCounts(states=tally.counts(), owners=owners)


def lines(of: DescribeGroupResponse, *tasks: TaskView) -> list[MemberLine]:
    """The members as a table shows them."""
    return [member_line(known) for known in known_members(of, counts(*tasks), NOW)]
