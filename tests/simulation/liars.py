"""Clients that keep to nothing: wrong ids, generations and moments; and an admin who is only busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from manager.core.commands import (
    CreateTask,
    DeleteTask,
    NewDefinition,
    PutTask,
    RestartTask,
    SetTarget,
    StartRebalance,
)
from protocol.messages.base import encode_opaque
from protocol.messages.membership import HeartbeatRequest, JoinRequest, Protocol, SyncRequest
from protocol.messages.ownership import ClaimRequest, ReleaseRequest, ReportRequest, TaskReport
from protocol.states import Target, TaskState

if TYPE_CHECKING:
    from protocol.messages.base import Request
    from tests.simulation.manager import SimManager
    from tests.simulation.network import Network
    from tests.simulation.world import World

TASKS = tuple(f"t{n}" for n in range(8))


def lie(world: World, manager: SimManager, network: Network) -> None:
    """One request that nobody in their right mind would send."""
    network.ask(_a_lie(world, manager), lambda _: None)


def _a_lie(world: World, manager: SimManager) -> Request:
    group = manager.group
    known = list(group.members) if group is not None else []
    member = world.chance.choice([*known, "made-up"])
    generation = (group.generation if group is not None else 0) + world.some(-2, 2)
    tasks = tuple(world.chance.sample(TASKS, 2))
    lies: list[Request] = [
        HeartbeatRequest(member_id="made-up", generation_id=max(generation, -1), wait_ms=500),
        SyncRequest(member_id=member, generation_id=max(generation - 3, -1)),
        ClaimRequest(member_id="made-up", generation_id=max(generation, -1), tasks=tasks),
        ReleaseRequest(member_id=member, tasks=dict.fromkeys(tasks, 0)),
        ReportRequest(
            member_id=member, tasks=(TaskReport(task=tasks[0], token=0, state=TaskState.COMPLETED),)
        ),
        JoinRequest(
            member_id=world.chance.choice(["", "made-up"]),
            client_id="liar",
            session_timeout_ms=2000,
            rebalance_timeout_ms=3000,
            protocol_type="sparkherd",
            protocols=(Protocol("sticky", encode_opaque({"owned": {}})),),
        ),
    ]
    return world.chance.choice(lies)


def steer(world: World, network: Network) -> None:
    """One thing an admin does."""
    task = world.chance.choice(TASKS)
    document: Any = msgspec.Raw(msgspec.json.encode({"v": world.some(0, 2)}))
    definition = NewDefinition(document, 1.0, None, {})
    deeds: list[Request] = [
        CreateTask(task=task, definition=definition, target=Target.RUNNING),
        PutTask(task=task, definition=definition),
        DeleteTask(task=task),
        RestartTask(task=task),
        SetTarget(task=task, target=world.chance.choice(list(Target))),
        StartRebalance(reason="why not"),
    ]
    network.ask(world.chance.choice(deeds), lambda _: None)
