"""What is done to those who take part: members come, go and misbehave, managers die, admins are busy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from manager.core import commands
from protocol.connectors import NOTHING, Needs
from protocol.messages.base import encode_opaque
from protocol.messages.lag import TaskLag
from protocol.messages.membership import (
    HeartbeatRequest,
    JoinRequest,
    Leaver,
    LeaveRequest,
    Protocol,
    SyncRequest,
)
from protocol.messages.offsets import CommitOffsetsRequest, DeleteOffsetsRequest, OffsetToCommit
from protocol.messages.ownership import (
    ClaimRequest,
    LagRequest,
    ReleaseRequest,
    ReportRequest,
    TaskReport,
)
from protocol.states import GroupState, Target, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from protocol.messages.base import Request
    from tests.simulation.history import History

TASKS = tuple(f"t{n}" for n in range(8))
KAFKA = Needs(("kafka",))
"""What some definitions of a task need."""
AWAY_MS = (100, 5000)
"""Shorter and longer than any session, lease and rebalance timeout."""
DELETED_WITHIN_MS = 6000
"""How long an admin waits for a group to be empty."""


def hire(history: History, chance: Random) -> None:
    """A new member of some group."""
    if len(history.alive()) < history.plan.members:
        history.hire(chance)


def stop(history: History, chance: Random) -> None:
    """A member leaves in order."""
    if alive := history.alive():
        chance.choice(alive).stop()


def kill(history: History, chance: Random) -> None:
    """A member dies."""
    if alive := history.alive():
        chance.choice(alive).kill()


def freeze(history: History, chance: Random) -> None:
    """A member stops in its tracks for a while."""
    if alive := [member for member in history.alive() if not member.is_frozen]:
        chance.choice(alive).freeze(chance.randint(*AWAY_MS))


def isolate(history: History, chance: Random) -> None:
    """A member is cut off for a while."""
    if alive := [member for member in history.alive() if not member.route.is_cut]:
        chance.choice(alive).isolate(chance.randint(*AWAY_MS))


def crash(history: History, chance: Random) -> None:
    """A manager dies and is started again."""
    if up := [manager for manager in history.cluster.managers if manager.is_up]:
        history.cluster.crashes += 1
        chance.choice(up).crash(chance.randint(0, 3000))


def pause(history: History, chance: Random) -> None:
    """A manager stops in its tracks for a while."""
    if up := [manager for manager in history.cluster.managers if manager.is_up and not manager.is_paused]:
        chance.choice(up).pause(chance.randint(*AWAY_MS))


def hand_over(history: History, chance: Random) -> None:
    """A manager gives a group to another in order."""
    history.cluster.hand_over(chance.choice(history.plan.groups))


def outage(history: History, chance: Random) -> None:
    """The storage refuses everything, or writes only, for a while."""
    store = history.cluster.store
    trouble = chance.choice(["is_down", "is_full"])
    setattr(store, trouble, True)
    history.world.after(chance.randint(50, 2500), lambda: setattr(store, trouble, False))


def add_task(history: History, chance: Random) -> None:
    """An admin creates a task."""
    group = chance.choice(history.plan.groups[: history.plan.herds])
    task, definition = chance.choice(TASKS), new_definition(chance)
    history.ask(group, commands.CreateTask(task=task, definition=definition, target=Target.RUNNING))


def begin_anew(history: History, chance: Random) -> None:
    """An admin stops a task, resets it, more than once if need be, and resumes it."""
    group = chance.choice(history.plan.groups[: history.plan.herds])
    task = chance.choice(TASKS)
    orders: list[Request] = [
        commands.SetTarget(task=task, target=Target.STOPPED),
        *[commands.ResetTask(task=task, offsets={"seed": chance.randint(0, 9)})] * 3,
        commands.SetTarget(task=task, target=Target.RUNNING),
    ]
    for turn, order in enumerate(orders):
        history.world.after(turn * chance.randint(200, 500), partial(history.ask, group, order))


def start_afresh(history: History, chance: Random) -> None:
    """The workers of a group die; once it is empty an admin deletes it, and creates tasks of before anew."""
    group = chance.choice(history.plan.groups[: history.plan.herds])
    for member in history.alive():
        if member.route.group == group:
            member.kill()
    _delete_when_empty(history, group, chance, history.world.now + DELETED_WITHIN_MS)


def _delete_when_empty(history: History, group: str, chance: Random, until: int) -> None:
    live = history.live(group)
    if live is not None and live.state is GroupState.EMPTY:
        history.ask(group, commands.DeleteGroup())
        for _ in range(4):
            history.world.after(500, partial(add_task, history, chance))
    elif history.world.now < until:
        history.world.after(50, partial(_delete_when_empty, history, group, chance, until))


def steer(history: History, chance: Random) -> None:
    """One thing an admin does."""
    group = chance.choice(history.plan.groups)
    history.ask(group, _an_order(history, group, chance))


def lie(history: History, chance: Random) -> None:
    """One request that nobody in their right mind would send."""
    group = chance.choice(history.plan.groups)
    history.ask(group, _a_lie(history, group, chance))


ACTIONS: dict[str, Callable[[History, Random], None]] = {
    action.__name__: action
    for action in (
        hire,
        stop,
        kill,
        freeze,
        isolate,
        crash,
        pause,
        hand_over,
        outage,
        add_task,
        begin_anew,
        start_afresh,
        steer,
        lie,
    )
}


EXCLUSIVE = 0.1
"""How often a task wants a worker of its own."""
BOUNDED = 0.3
"""How often one whose source is always there comes to its end."""


def new_definition(chance: Random) -> commands.NewDefinition:
    """Of a task that somebody might create."""
    sink = {"format": chance.choice(["sql", "parquet"]), "options": {"v": chance.randint(0, 2)}}
    document: Any = msgspec.Raw(msgspec.json.encode({"sink": sink}))
    needs = chance.choice([NOTHING, NOTHING, KAFKA])
    if needs is NOTHING and chance.random() < BOUNDED:
        document = msgspec.Raw(msgspec.json.encode({"sink": sink, "trigger": {"available_now": True}}))
    return commands.NewDefinition(document, 1.0, None, {}, needs, exclusive=chance.random() < EXCLUSIVE)


def _an_order(history: History, group: str, chance: Random) -> Request:
    task, definition = chance.choice(TASKS), new_definition(chance)
    member, instance = _someone(history, group, chance)
    orders: list[Request] = [
        commands.StartRebalance(reason="why not"),
        commands.RemoveMember(member_id=member),
        commands.DescribeGroup(),
        commands.ListRebalances(limit=5),
        commands.DeleteGroup(),
        LeaveRequest(members=(Leaver("", instance or "s0"), Leaver(member, stopped=False))),
    ]
    if group in history.plan.groups[: history.plan.herds]:
        orders += [
            commands.CreateTask(task=task, definition=definition, target=Target.RUNNING),
            commands.PutTask(task=task, definition=definition),
            commands.DeleteTask(task=task),
            commands.RestartTask(task=task),
            *(commands.SetTarget(task=task, target=target) for target in Target),
            commands.ResetTask(task=task),
            commands.GetTaskStatus(task=task),
            commands.ListTasks(),
            commands.DrainMember(member_id=member, draining=True),
            commands.DrainMember(member_id=member, draining=True),
            commands.DrainMember(member_id=member, draining=False),
        ]
    return chance.choice(orders)


def _a_lie(history: History, group: str, chance: Random) -> Request:
    member, instance = _someone(history, group, chance)
    instance = chance.choice([instance, None, "s0"])
    generation = max(history.generation(group) + chance.randint(-2, 2), -1)
    past = max(generation - 3, -1)
    tasks = tuple(chance.sample(TASKS, 2))
    stale = (TaskReport(task=tasks[0], token=0, state=TaskState.COMPLETED),)
    return chance.choice(
        [
            HeartbeatRequest(member_id="made-up", generation_id=generation, wait_ms=500),
            HeartbeatRequest(member_id=member, instance_id=instance, generation_id=past, wait_ms=500),
            SyncRequest(member_id=member, instance_id=instance, generation_id=past),
            ClaimRequest(member_id="made-up", generation_id=generation, tasks=tasks, wait_ms=300),
            ClaimRequest(member_id=member, generation_id=past, tasks=tasks, wait_ms=300),
            ReleaseRequest(member_id=member, tasks=dict.fromkeys(tasks, 0)),
            ReportRequest(member_id=member, instance_id=instance, tasks=stale),
            LagRequest(member_id="made-up", tasks={tasks[0]: TaskLag(at_ms=0)}),
            LeaveRequest(members=(Leaver("made-up"), Leaver(member, "nobody"))),
            DeleteOffsetsRequest(keys=("a",)),
            CommitOffsetsRequest(
                member_id=member, generation_id=past, offsets={"lie": OffsetToCommit(encode_opaque([0, 0]))}
            ),
            _joining(chance, "made-up"),
            _joining(chance, ""),
        ]
    )


def _joining(chance: Random, member_id: str) -> JoinRequest:
    """A join that nobody follows up; what comes of it has to go, long before its session ends."""
    announced = chance.random() < 0.7
    return JoinRequest(
        member_id=member_id,
        client_id="liar",
        session_timeout_ms=2000 if announced else 20_000,
        rebalance_timeout_ms=3000,
        protocol_type=chance.choice(["sparkherd", "consumer", "other"]),
        protocols=(Protocol(chance.choice(["sticky", "range"]), encode_opaque({"owned": {}})),),
        require_member_id=announced,
    )


def _someone(history: History, group: str, chance: Random) -> tuple[str, str | None]:
    """A member of the group as its manager knows it."""
    known = history.members(group)
    if not known:
        return "made-up", None
    member = chance.choice(known)
    return member.id, member.row.instance_id
