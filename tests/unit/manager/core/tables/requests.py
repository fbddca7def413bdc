"""Every request there is, in the variants that the rules tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from manager.core import commands
from manager.core.stored_rows import OwnershipRow, Parcel, TaskRow, TransferRow
from manager.core.transfer_commands import AdvanceTransfer, CancelTransfer, StartTransfer
from protocol.messages.base import encode_opaque
from protocol.messages.checks import CheckResult, FetchCheckRequest, ReportCheckRequest
from protocol.messages.membership import (
    HeartbeatRequest,
    JoinRequest,
    Leaver,
    LeaveRequest,
    MemberAssignment,
    OfferRequest,
    Protocol,
    SyncRequest,
)
from protocol.messages.offsets import (
    CommitOffsetsRequest,
    DeleteOffsetsRequest,
    FetchOffsetsRequest,
    OffsetToCommit,
)
from protocol.messages.ownership import ClaimRequest, LagRequest, ReleaseRequest, ReportRequest, TaskReport
from protocol.messages.quarantine import (
    FetchQuarantineRequest,
    QuarantineAnswer,
    QuarantineRequest,
    ReportQuarantineRequest,
)
from protocol.messages.tasks import TaskHome
from protocol.states import Target, TaskState, TransferStep
from tests.unit.manager.core.bench import REBALANCE_MS, SESSION_MS, definition
from tests.unit.manager.core.tables.states import KIND

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.messages.base import Request
    from tests.unit.manager.core.tables.states import Scene

NOBODY = "made-up"


def _join(member_id: str = "", instance_id: str | None = None, **fields: Any) -> JoinRequest:
    told: dict[str, Any] = {
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": REBALANCE_MS,
        "protocol_type": KIND,
        "protocols": (Protocol("range", encode_opaque({"owned": {}, "new": True})),),
    }
    return JoinRequest(member_id=member_id, instance_id=instance_id, client_id="c", **(told | fields))


def _unchanged(scene: Scene, member_id: str, instance_id: str | None = None) -> JoinRequest:
    group = scene.bench.coordinator.group(scene.bench.name)
    known = group.members.get(member_id) if group is not None else None
    told: dict[str, Any] = {"protocols": known.row.protocols} if known else {}
    return _join(member_id, instance_id, **told)


def _expected(scene: Scene) -> str:
    """An id that was handed out just now, where any is."""
    ask = scene.bench.ask(_join())
    return str(ask.answer.fields.get("member_id", NOBODY))


def _after(scene: Scene, waits: Request, request: Request) -> Request:
    """`request`, sent while another one waits, if that has to."""
    scene.parked.append(scene.bench.ask(waits))
    return request


def _sync(scene: Scene, member_id: str, *, leads: bool = False, **fields: Any) -> SyncRequest:
    given = {scene.leader: ["t"], scene.follower: ["u"]} if leads else {}
    assignments = tuple(MemberAssignment(m, encode_opaque({"tasks": tasks})) for m, tasks in given.items())
    told: dict[str, Any] = {"generation_id": scene.generation, "assignments": assignments} | fields
    return SyncRequest(member_id=member_id, **told)


def _ask(scene: Scene, member_id: str, **fields: Any) -> OfferRequest:
    told: dict[str, Any] = {"generation_id": scene.generation, "after": "t"} | fields
    return OfferRequest(member_id=member_id, **told)


def _beat(scene: Scene, member_id: str, **fields: Any) -> HeartbeatRequest:
    told: dict[str, Any] = {"generation_id": scene.generation} | fields
    return HeartbeatRequest(member_id=member_id, **told)


def _commit(member_id: str, generation: int) -> CommitOffsetsRequest:
    offsets = {"k": OffsetToCommit(encode_opaque(7))}
    return CommitOffsetsRequest(member_id=member_id, generation_id=generation, offsets=offsets)


def _claim(scene: Scene, member_id: str, task: str, **fields: Any) -> ClaimRequest:
    told: dict[str, Any] = {"generation_id": scene.generation, "tasks": (task,)} | fields
    return ClaimRequest(member_id=member_id, **told)


def _fetch(member_id: str) -> FetchCheckRequest:
    """Of a check that is over."""
    return FetchCheckRequest(member_id=member_id, check="c")


def _told(member_id: str) -> ReportCheckRequest:
    return ReportCheckRequest(member_id=member_id, check="c", result=CheckResult())


def _ask_rows(task: str) -> commands.AskQuarantine:
    return commands.AskQuarantine(task=task, wanted=QuarantineRequest(action="list"), timeout_ms=1000)


def _fetch_rows(member_id: str) -> FetchQuarantineRequest:
    """Of a request that is over."""
    return FetchQuarantineRequest(member_id=member_id, quarantine="q")


def _told_rows(member_id: str) -> ReportQuarantineRequest:
    return ReportQuarantineRequest(member_id=member_id, quarantine="q", result=QuarantineAnswer())


def _report(member_id: str, token: int) -> ReportRequest:
    entry = TaskReport(task="u", token=token, state=TaskState.RUNNING, batch_id=1)
    return ReportRequest(member_id=member_id, tasks=(entry,))


def _give(task: str) -> StartTransfer:
    return StartTransfer(transfer="m", to_group="other", tasks={task: task})


def _packed(task: str, step: TransferStep) -> TransferRow:
    """What another group has stored that gives `task`."""
    document = definition()
    row = TaskRow(
        group="other",
        task=task,
        definition=document.document,
        definition_version=1,
        target=Target.STOPPED,
        restart_count=0,
        revision=1,
        weight=1.0,
        worker=None,
        labels={},
    )
    return TransferRow(
        group="other",
        transfer="m",
        task=task,
        leaves=True,
        peer_group="g",
        peer_task=task,
        step=step,
        target=Target.RUNNING,
        started_at_ms=1,
        changed_at_ms=1,
        parcel=Parcel(row, OwnershipRow(group="other", task=task, token=7, home=TaskHome("other", task))),
    )


JOINS: dict[str, Callable[[Scene], Request]] = {
    "first contact": lambda _: _join(),
    "first contact, unannounced": lambda _: _join(require_member_id=False),
    "first contact, static": lambda _: _join(instance_id="new"),
    "S again, same protocols": lambda s: _unchanged(s, "", "s"),
    "S again, old id": lambda _: _join("old", "s"),
    "F unchanged": lambda s: _unchanged(s, s.follower),
    "F changed": lambda s: _join(s.follower),
    "L unchanged": lambda s: _unchanged(s, s.leader),
    "L changed": lambda s: _join(s.leader),
    "F, other time-out": lambda s: msgspec.structs.replace(
        _unchanged(s, s.follower), session_timeout_ms=2000
    ),
    "S unchanged": lambda s: _unchanged(s, s.static, "s"),
    "S again, drained": lambda s: _after(
        s, commands.DrainMember(member_id=s.static, draining=True), _unchanged(s, "", "s")
    ),
    "S's instance under F's id": lambda s: _join(s.follower, "s"),
    "F under an unknown instance": lambda s: _join(s.follower, "nobody"),
    "expected id": lambda s: _join(_expected(s)),
    "expected id, no common protocol": lambda s: _join(
        _expected(s), protocols=(Protocol("own", encode_opaque(None)),)
    ),
    "made-up id": lambda _: _join(NOBODY),
    "other type": lambda _: _join(protocol_type="consumer"),
    "no common protocol": lambda _: _join(protocols=(Protocol("own", encode_opaque(None)),)),
    "no protocols": lambda _: _join(protocols=()),
    "session too short": lambda _: _join(session_timeout_ms=1),
}

SYNCS: dict[str, Callable[[Scene], Request]] = {
    "L with the assignment": lambda s: _sync(s, s.leader, leads=True),
    "F": lambda s: _sync(s, s.follower),
    "F again, parked": lambda s: _after(s, _sync(s, s.follower), _sync(s, s.follower)),
    "L with the assignment, F parked": lambda s: _after(
        s, _sync(s, s.follower), _sync(s, s.leader, leads=True)
    ),
    "L with no assignment": lambda s: _sync(s, s.leader),
    "F with an assignment": lambda s: _sync(
        s, s.follower, assignments=(MemberAssignment(s.follower, encode_opaque({"tasks": ["no"]})),)
    ),
    "F, wrong generation": lambda s: _sync(s, s.follower, generation_id=s.generation + 1),
    "F, other protocol": lambda s: _sync(s, s.follower, protocol_name="other"),
    "S, old id": lambda s: _sync(s, "old", instance_id="s"),
    "S's instance under F's id": lambda s: _sync(s, s.follower, instance_id="s"),
    "nobody": lambda s: _sync(s, NOBODY),
    "L, unknown task": lambda s: _sync(
        s, s.leader, assignments=(MemberAssignment(s.leader, encode_opaque({"tasks": ["no"]})),)
    ),
    "L asks for more tasks": lambda s: _ask(s, s.leader),
    "F asks for more tasks": lambda s: _ask(s, s.follower),
    "nobody asks for more tasks": lambda s: _ask(s, "nobody"),
    "L asks for more tasks, wrong generation": lambda s: _ask(s, s.leader, generation_id=s.generation + 1),
}

HEARTBEATS: dict[str, Callable[[Scene], Request]] = {
    "F": lambda s: _beat(s, s.follower),
    "F, held": lambda s: _beat(s, s.follower, wait_ms=1000),
    "F again, held": lambda s: _after(
        s, _beat(s, s.follower, wait_ms=1000), _beat(s, s.follower, wait_ms=1000)
    ),
    "S, held": lambda s: _beat(s, s.static, instance_id="s", wait_ms=1000),
    "F, held, revision behind": lambda s: _beat(s, s.follower, wait_ms=1000, tasks_revision=0),
    "F, wrong generation": lambda s: _beat(s, s.follower, generation_id=s.generation + 1),
    "S, old id": lambda s: _beat(s, "old", instance_id="s"),
    "nobody": lambda s: _beat(s, NOBODY),
    "unknown instance": lambda s: _beat(s, s.follower, instance_id="nobody"),
}

LEAVES: dict[str, Callable[[Scene], Request]] = {
    "F leaves": lambda s: LeaveRequest(members=(Leaver(s.follower),)),
    "L leaves": lambda s: LeaveRequest(members=(Leaver(s.leader),)),
    "F leaves, heartbeat held": lambda s: _after(
        s, _beat(s, s.follower, wait_ms=1000), LeaveRequest(members=(Leaver(s.follower),))
    ),
    "expected id leaves": lambda s: LeaveRequest(members=(Leaver(_expected(s)),)),
    "S leaves by instance": lambda _: LeaveRequest(members=(Leaver("", "s"),)),
    "S leaves, old id": lambda _: LeaveRequest(members=(Leaver("old", "s"),)),
    "nobody leaves": lambda _: LeaveRequest(members=(Leaver(NOBODY),)),
    "all leave": lambda s: LeaveRequest(
        members=(Leaver(s.leader), Leaver(s.follower), Leaver(s.static, "s"))
    ),
    "F is removed": lambda s: commands.RemoveMember(member_id=s.follower),
    "nobody is removed": lambda _: commands.RemoveMember(member_id=NOBODY),
}

OFFSETS: dict[str, Callable[[Scene], Request]] = {
    "F commits": lambda s: _commit(s.follower, s.generation),
    "F commits, wrong generation": lambda s: _commit(s.follower, s.generation + 1),
    "F commits, no generation": lambda s: _commit(s.follower, -1),
    "S commits, old id": lambda s: msgspec.structs.replace(_commit("old", s.generation), instance_id="s"),
    "nobody commits, generation": lambda s: _commit(NOBODY, s.generation),
    "anybody commits": lambda _: _commit("", -1),
    "fetch": lambda _: FetchOffsetsRequest(keys=None),
    "delete": lambda _: DeleteOffsetsRequest(keys=("k",)),
}

TASKS: dict[str, Callable[[Scene], Request]] = {
    "F claims its own": lambda s: _claim(s, s.follower, "u"),
    "F claims L's": lambda s: _claim(s, s.follower, "t"),
    "F claims, wrong generation": lambda s: _claim(s, s.follower, "u", generation_id=s.generation + 1),
    "F claims the unknown": lambda s: _claim(s, s.follower, "no"),
    "nobody claims": lambda s: _claim(s, NOBODY, "u"),
    "S claims, old id": lambda s: _claim(s, "old", "u", instance_id="s"),
    "F releases": lambda s: ReleaseRequest(member_id=s.follower, tasks={"u": 1}),
    "F releases, old token": lambda s: ReleaseRequest(member_id=s.follower, tasks={"u": 0}),
    "S releases, old id": lambda _: ReleaseRequest(member_id="old", instance_id="s", tasks={"u": 1}),
    "nobody releases": lambda _: ReleaseRequest(member_id=NOBODY, tasks={"u": 1}),
    "F reports": lambda s: _report(s.follower, 1),
    "F reports, old token": lambda s: _report(s.follower, 0),
    "S reports, old id": lambda _: msgspec.structs.replace(_report("old", 1), instance_id="s"),
    "nobody reports": lambda _: _report(NOBODY, 1),
    "F tells lags": lambda s: LagRequest(member_id=s.follower),
    "S tells lags, old id": lambda _: LagRequest(member_id="old", instance_id="s"),
    "nobody tells lags": lambda _: LagRequest(member_id=NOBODY),
    "check v": lambda _: commands.CheckDefinition(
        definition=definition(), rows=1, begin="end", timeout_ms=1000
    ),
    "F fetches a check": lambda s: _fetch(s.follower),
    "S fetches a check, old id": lambda _: msgspec.structs.replace(_fetch("old"), instance_id="s"),
    "nobody fetches a check": lambda _: _fetch(NOBODY),
    "F tells of a check": lambda s: _told(s.follower),
    "S tells of a check, old id": lambda _: msgspec.structs.replace(_told("old"), instance_id="s"),
    "nobody tells of a check": lambda _: _told(NOBODY),
    "rows of u": lambda _: _ask_rows("u"),
    "rows of the unknown": lambda _: _ask_rows("no"),
    "F fetches a rows request": lambda s: _fetch_rows(s.follower),
    "S fetches a rows request, old id": lambda _: msgspec.structs.replace(
        _fetch_rows("old"), instance_id="s"
    ),
    "nobody fetches a rows request": lambda _: _fetch_rows(NOBODY),
    "F tells of rows": lambda s: _told_rows(s.follower),
    "S tells of rows, old id": lambda _: msgspec.structs.replace(_told_rows("old"), instance_id="s"),
    "nobody tells of rows": lambda _: _told_rows(NOBODY),
    "create v": lambda _: commands.CreateTask(task="v", definition=definition(), target=Target.RUNNING),
    "create u": lambda _: commands.CreateTask(task="u", definition=definition(), target=Target.RUNNING),
    "put u, same": lambda _: commands.PutTask(task="u", definition=definition()),
    "put u, other": lambda _: commands.PutTask(task="u", definition=definition(x=1)),
    "put a list": lambda _: commands.PutTasks(
        tasks=(
            commands.PutTask(task="u", definition=definition()),
            commands.PutTask(task="v", definition=definition()),
        ),
        delete=("w",),
    ),
    "put u, other weight": lambda _: commands.PutTask(task="u", definition=definition(weight=2.0)),
    "pause u": lambda _: commands.SetTarget(task="u", target=Target.PAUSED),
    "stop u": lambda _: commands.SetTarget(task="u", target=Target.STOPPED),
    "restart u": lambda _: commands.RestartTask(task="u"),
    "reset u": lambda _: commands.ResetTask(task="u"),
    "reset u, stopped": lambda s: _after(
        s, commands.SetTarget(task="u", target=Target.STOPPED), commands.ResetTask(task="u")
    ),
    "delete u": lambda _: commands.DeleteTask(task="u"),
    "list": lambda _: commands.ListTasks(),
    "count": lambda _: commands.CountTasks(),
    "rank": lambda _: commands.RankTasks(states=("UNASSIGNED",), limit=1),
    "costs of F": lambda s: commands.ListCosts(owner=s.follower),
    "get u": lambda _: commands.GetTask(task="u"),
    "alarms of u": lambda _: commands.GetTaskAlarms(task="u"),
    "history of u": lambda _: commands.GetTaskHistory(task="u"),
    "status of u": lambda _: commands.GetTaskStatus(task="u"),
    "status of the unknown": lambda _: commands.GetTaskStatus(task="no"),
}

TRANSFERS: dict[str, Callable[[Scene], Request]] = {
    "give u": lambda _: _give("u"),
    "give u, only checked": lambda _: msgspec.structs.replace(_give("u"), validate_only=True),
    "give u again": lambda s: _after(s, _give("u"), _give("u")),
    "give the unknown": lambda _: _give("no"),
    "give u, cancelled": lambda s: _after(s, _give("u"), CancelTransfer(transfer="m", cause="why not")),
    "cancel the unknown": lambda _: CancelTransfer(transfer="m", cause="why not"),
    "stop u, being given": lambda s: _after(
        s, _give("u"), commands.SetTarget(task="u", target=Target.STOPPED)
    ),
    "word of the unknown": lambda _: AdvanceTransfer(transfer="m", peers=()),
    "v arrives": lambda _: AdvanceTransfer(transfer="m", peers=(_packed("v", TransferStep.STOPPED),)),
    "u arrives, whose name is taken": lambda _: AdvanceTransfer(
        transfer="m", peers=(_packed("u", TransferStep.STOPPED),)
    ),
    "v, arrived, is given": lambda s: _after(
        s,
        AdvanceTransfer(transfer="m", peers=(_packed("v", TransferStep.STOPPED),)),
        AdvanceTransfer(transfer="m", peers=(_packed("v", TransferStep.GIVEN),)),
    ),
    "v, arrived, stays where it was": lambda s: _after(
        s,
        AdvanceTransfer(transfer="m", peers=(_packed("v", TransferStep.STOPPED),)),
        AdvanceTransfer(transfer="m", peers=(_packed("v", TransferStep.CANCELLED),)),
    ),
}

ADMIN: dict[str, Callable[[Scene], Request]] = {
    "describe": lambda _: commands.DescribeGroup(),
    "rebalance": lambda _: commands.StartRebalance(reason="why not"),
    "rebalances": lambda _: commands.ListRebalances(limit=1),
    "moves": lambda _: commands.ListMoves(),
    "alarms": lambda _: commands.ListAlarms(limit=10, past=10),
    "acknowledge": lambda _: commands.AcknowledgeAlarms(rule="lag", by="ann"),
    "delete": lambda _: commands.DeleteGroup(),
    "drain F": lambda s: commands.DrainMember(member_id=s.follower, draining=True),
    "undrain F": lambda s: commands.DrainMember(member_id=s.follower, draining=False),
    "drain nobody": lambda _: commands.DrainMember(member_id=NOBODY, draining=True),
}

TABLES = {
    "join": JOINS,
    "sync": SYNCS,
    "heartbeat": HEARTBEATS,
    "leave": LEAVES,
    "offsets": OFFSETS,
    "tasks": TASKS,
    "transfers": TRANSFERS,
    "admin": ADMIN,
}
