"""A group on a fake clock: requests by name, answers kept, the invariants looked at after every step."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from manager.core.commands import CreateTask, NewDefinition
from manager.core.coordinator import GroupCoordinator
from manager.core.group import Group
from manager.core.member import Connection, Parked
from manager.core.stored_rows import Dropped, GroupRow, OwnershipRow, Row
from manager.core.turn import ClockReading, Turn
from manager.settings import GroupSettings
from protocol.connectors import NOTHING, Needs
from protocol.errors import Failure
from protocol.messages.base import Request, encode_opaque
from protocol.messages.events import Event
from protocol.messages.membership import (
    EngineEnd,
    HeartbeatRequest,
    JoinRequest,
    Leaver,
    LeaveRequest,
    MemberAssignment,
    Protocol,
    SyncRequest,
)
from protocol.messages.ownership import ClaimRequest, ReleaseRequest, ReportRequest, TaskReport
from protocol.states import Target, TaskState
from protocol.worker_metadata import PROTOCOL_TYPE
from tests.fakes.rows import durable, tally_of

WALL = -1_700_000_000_000
"""Long before 1970: tokens count from 1, whatever time goes by; for another clock there is `Bench.wall`."""
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Ask(Parked):
    """A request in flight; `answers` holds what came of it."""

    __slots__ = ("answers",)

    def __init__(self, connection: Connection | None = None) -> None:
        super().__init__(connection or Connection("10.0.0.1"))
        self.answers: list[Any] = []

    @property
    def waits(self) -> bool:
        """Whether nothing was decided yet."""
        return not self.settled

    @property
    def answer(self) -> Any:
        """The one answer."""
        assert len(self.answers) == 1, "still parked" if not self.answers else "answered twice"
        return self.answers[0]

    @property
    def error(self) -> str:
        """The answer's code."""
        answer = self.answer
        return answer.code.name if isinstance(answer, Failure) else str(answer.error)


class Bench:
    """One coordinator and one group of it, a store of rows, a clock that jumps from deadline to deadline."""

    def __init__(self, name: str = "g", **settings: Any) -> None:
        self.settings = GroupSettings(**({"initial_rebalance_delay_ms": 0} | settings))
        self.name = name
        self._ids = count(1)
        self.coordinator = GroupCoordinator(self.settings, lambda: f"id{next(self._ids)}")
        self.over: Connection | None = None
        """What requests come over from now on; each has a connection of its own without."""
        self.now = 1000
        self.wall = WALL
        self.store: dict[tuple[type[Row], tuple[Any, ...]], Row] = {}
        self.told: list[Event] = []
        self.generations: list[int] = []

    @property
    def instant(self) -> ClockReading:
        """The present moment."""
        return ClockReading(self.now, self.wall + self.now)

    @property
    def group(self) -> Group:
        """The group as it lives."""
        group = self.coordinator.group(self.name)
        assert group is not None
        return group

    @property
    def state(self) -> str:
        """The group's state as it is shown."""
        return self.group.state.value

    def ask(self, request: Request) -> Ask:
        """Put a request to the group."""
        ask = Ask(self.over)
        self._take(self.coordinator.handle(self.name, request, ask, self.instant))
        return ask

    def disconnect(self, ask: Ask, *, by_peer: bool = True) -> None:
        """Close the connection that `ask` came over."""
        self.close(ask.connection, by_peer=by_peer)

    def close(self, connection: Connection, *, by_peer: bool = True) -> None:
        """Close `connection`."""
        turn = self.coordinator.closed(connection, self.instant, by_peer=by_peer)
        if turn is not None:
            self._take(turn)

    def pass_time(self, ms: int = 0) -> None:
        """Let `ms` go by, through every deadline between."""
        end = self.now + ms
        while (due := self.coordinator.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            for turn in self.coordinator.advance(self.instant):
                self._take(turn)
        self.now = end

    def crash(self) -> None:
        """Lose the memory; take the group up from what was stored."""
        self.coordinator = GroupCoordinator(self.settings, lambda: f"id{next(self._ids)}")
        self._take(self.coordinator.load(self.name, self._rows(), self.instant))

    def reload(self, *, is_evicted: bool = True) -> None:
        """Let go of the group, and take it up again, while connections stay as they are."""
        if is_evicted:
            self.coordinator.evict(self.name)
        self._take(self.coordinator.load(self.name, self._rows(), self.instant))

    def _rows(self) -> list[Row]:
        return sorted(self.store.values(), key=lambda row: getattr(row, "position", 0))

    def _take(self, turn: Turn) -> None:
        for change in turn.changes:
            if isinstance(change, Event):
                self.told.append(change)
            elif isinstance(change, Dropped):
                self.store.pop((change.kind, change.key), None)
            else:
                self._put(change)
        for ask, outcome in turn.answers:
            assert isinstance(ask, Ask)
            ask.answers.append(outcome)
        self._check_reload()

    def _put(self, row: Row) -> None:
        before = self.store.get((type(row), row.key))
        if isinstance(row, OwnershipRow) and isinstance(before, OwnershipRow):
            assert row.token >= before.token, "a token went down"
        if isinstance(row, GroupRow) and isinstance(before, GroupRow):
            assert row.generation - before.generation in {0, 1}, "generations grow by one"
            assert row.tasks_revision >= before.tasks_revision, "a revision went down"
        self.store[type(row), row.key] = row

    def _check_reload(self) -> None:
        """Invariant 4: what is stored is the group."""
        live = self.coordinator.group(self.name)
        again = Group(self.name, self.settings)
        for row in self._rows():
            again.apply(row)
        assert durable(again) == durable(live or Group(self.name, self.settings))
        if live is not None:
            assert live.tasks.tally == tally_of(live), "the tally is not what is counted"
            lost = {row.task for row in live.tasks.ownership.values() if row.lost_by is not None}
            assert live.tasks.kept.keys() == lost, "the index of what is kept for lost workers is not true"
            self._check_concern(live)
            self._check_shares(live)

    def _check_concern(self, live: Group) -> None:
        """What a member is given concerns it, or it would not hear of a change that came before."""
        for task, member_id in live.tasks.assigned.items():
            row = live.tasks.definitions.get(task)
            if row is not None and member_id in live.members:
                assert live.members[member_id].concern_revision >= row.revision

    def _check_shares(self, live: Group) -> None:
        """What members have of the assignment is there once more, by member, and says the same."""
        for member_id, tasks in live.tasks.shares.items():
            assert dict.fromkeys(tasks, member_id).items() <= live.tasks.assigned.items()

    def join(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        *,
        protocols: tuple[str, ...] = ("range",),
        metadata: Any = None,
        kind: str = "test",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        announced: bool = False,
        reason: str | None = None,
        client_id: str = "c",
    ) -> Ask:
        """A join; `announced` asks for the two-step way of KIP-394."""
        return self.ask(
            JoinRequest(
                member_id=member_id,
                instance_id=instance_id,
                client_id=client_id,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=rebalance_ms,
                protocol_type=kind,
                protocols=tuple(Protocol(name, encode_opaque(_told(kind, metadata))) for name in protocols),
                require_member_id=announced,
                reason=reason,
            )
        )

    def announced_id(self, **join: Any) -> str:
        """The id that a first contact is told to join with."""
        ask = self.join(announced=True, **join)
        assert ask.error == "MEMBER_ID_REQUIRED"
        return str(ask.answer.fields["member_id"])

    def sync(
        self,
        member_id: str,
        generation: int | None = None,
        given: dict[str, Any] | None = None,
        **fields: Any,
    ) -> Ask:
        """A sync, of the present generation unless told otherwise."""
        assignments = tuple(MemberAssignment(m, encode_opaque(a)) for m, a in (given or {}).items())
        return self.ask(
            SyncRequest(
                member_id=member_id,
                generation_id=self.group.generation if generation is None else generation,
                assignments=assignments,
                **fields,
            )
        )

    def heartbeat(self, member_id: str, generation: int | None = None, **fields: Any) -> Ask:
        """A heartbeat, of the present generation unless told otherwise."""
        present = self.group.generation if generation is None else generation
        return self.ask(HeartbeatRequest(member_id=member_id, generation_id=present, **fields))

    def leave(self, *leavers: tuple[str, str | None], stopped: bool = True) -> Ask:
        """A leave of (member id, instance id) pairs."""
        return self.ask(LeaveRequest(members=tuple(Leaver(m, i, stopped=stopped) for m, i in leavers)))

    def die(self, member_id: str, engine: EngineEnd | None = None, *, out_of_memory: bool = False) -> None:
        """Leave with the word of a dead engine, or without one fall silent."""
        if engine is not None:
            why = f"the engine died: {engine}"
            leaver = Leaver(member_id, reason=why, engine=engine, out_of_memory=out_of_memory)
            assert self.ask(LeaveRequest(members=(leaver,))).error == "NONE"
            return
        deadline = self.group.timers.deadline(("session", member_id))
        assert deadline is not None
        for other in [m for m in self.group.members if m != member_id]:
            self.heartbeat(other)
        self.pass_time(max(deadline - self.now - 1, 0))
        for other in [m for m in self.group.members if m != member_id]:
            self.heartbeat(other)
        self.pass_time(1)

    def stable(self, *instances: str | None, **join: Any) -> list[str]:
        """One member for each of `instances`, joined and synced; the first one leads."""
        first = self.join(instance_id=instances[0], **join)
        self.pass_time()
        ids = [str(first.answer.member_id)]
        for instance in instances[1:]:
            newcomer = self.join(instance_id=instance, **join)
            held = {m.id: m.row.instance_id for m in self.group.members.values()}
            for member_id in ids:
                self.join(member_id, held[member_id], **join)
            ids.append(str(newcomer.answer.member_id))
        return self.settle(ids)

    def settle(self, ids: list[str], given: dict[str, Any] | None = None) -> list[str]:
        """Sync everybody; each gets {"for": id}, or what `given` says."""
        default: dict[str, Any] = {member_id: {"for": member_id} for member_id in ids}
        asks = [self.sync(member_id) for member_id in ids if member_id != self.group.leader_id]
        asks.append(self.sync(str(self.group.leader_id), given=given or default))
        assert [ask.error for ask in asks] == ["NONE"] * len(ids)
        return ids

    def rejoin(self, ids: list[str], **join: Any) -> list[Ask]:
        """Everybody joins again."""
        return [self.join(member_id, **join) for member_id in ids]

    # tasks

    def create(self, *tasks: str, target: Target = Target.RUNNING, **placement: Any) -> None:
        """New tasks with an empty definition."""
        for task in tasks:
            command = CreateTask(task=task, definition=definition(**placement), target=target)
            assert self.ask(command).error == "NONE"

    def herd(self, members: int, *tasks: str) -> list[str]:
        """A sparkherd group of so many workers that own `tasks`, dealt out in turn."""
        self.create(*tasks)
        ids = self.worker_group(members)
        self.deal(ids, dealt(ids, tasks))
        for member_id in ids:
            self.claim(member_id, *(t for t, m in dealt(ids, tasks).items() if m == member_id))
        return ids

    def worker_group(self, members: int) -> list[str]:
        """So many workers in AwaitingSync."""
        asks = [self.join(kind="sparkherd")]
        self.pass_time()
        for _ in range(members - 1):
            newcomer = self.join(kind="sparkherd")
            self.rejoin([ask.answer.member_id for ask in asks[:1]], kind="sparkherd")
            for ask in asks[1:]:
                self.join(ask.answer.member_id, kind="sparkherd")
            asks.append(newcomer)
        return [str(ask.answer.member_id) for ask in asks]

    def deal(self, ids: list[str], owners: dict[str, str]) -> None:
        """Sync everybody with the given task -> member."""
        given = {m: {"tasks": [t for t, owner in owners.items() if owner == m]} for m in ids}
        self.settle(ids, given)

    def redeal(self, ids: list[str], owners: dict[str, str]) -> None:
        """A rebalance in which everybody keeps what it owns until told otherwise."""
        for member_id in ids:
            owned = {t: self.group.tasks.ownership[t].token for t in self.group.tasks.owned_by(member_id)}
            self.join(member_id, kind="sparkherd", metadata={"owned": owned, "x": self.group.generation})
        self.deal(ids, owners)

    def claim(self, member_id: str, *tasks: str, generation: int | None = None, **fields: Any) -> Ask:
        """A claim."""
        present = self.group.generation if generation is None else generation
        return self.ask(ClaimRequest(member_id=member_id, generation_id=present, tasks=tasks, **fields))

    def release(self, member_id: str, **tokens: int) -> dict[str, str]:
        """A release; task -> error."""
        return dict(self.ask(ReleaseRequest(member_id=member_id, tasks=tokens)).answer.tasks)

    def report(
        self, member_id: str, task: str, token: int, state: TaskState = TaskState.RUNNING, **more: Any
    ) -> str:
        """A report on one task; the error."""
        entry = TaskReport(task=task, token=token, state=state, **more)
        return str(self.ask(ReportRequest(member_id=member_id, tasks=(entry,))).answer.tasks[task])

    def owner(self, task: str) -> tuple[str | None, int, str]:
        """Owner, token, state."""
        row = self.group.tasks.ownership[task]
        return row.owner, row.token, row.state.value


def _told(kind: str, metadata: Any) -> Any:
    """What a member tells of itself; a worker says what those of this version can do."""
    told = {} if metadata is None else metadata
    return (
        {"settles": True, "homes": True, **told} if kind == PROTOCOL_TYPE and isinstance(told, dict) else told
    )


def definition(
    weight: float = 1.0, worker: str | None = None, needs: Needs = NOTHING, **document: Any
) -> NewDefinition:
    """A definition the core takes nearly unread; it has a fence unless `document` says otherwise."""
    whole = {"sink": {"format": "sql"}, **document, "weight": weight}
    return NewDefinition(msgspec.Raw(msgspec.json.encode(whole)), weight, worker, {}, needs)


def dealt(ids: list[str], tasks: tuple[str, ...]) -> dict[str, str]:
    """Task -> member, in turn."""
    return {task: ids[i % len(ids)] for i, task in enumerate(tasks)}
