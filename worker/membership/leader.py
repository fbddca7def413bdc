"""The leader's part: who runs what, decided off the event loop by an assignor that may be wrong."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from assignors.base import Member, Task
from assignors.checked import make_valid
from assignors.exclusive import give_own
from assignors.isolation import Isolation, isolate
from assignors.limits import within_limits
from assignors.pace import Paced, Progress, Terms, paced
from assignors.registry import AssignorError, load_assignor
from protocol.connectors import NOTHING
from protocol.errors import StartupError
from protocol.messages.base import encode_opaque
from protocol.messages.membership import MemberAssignment
from protocol.worker_metadata import TaskAssignment, WorkerMetadata, read_metadata
from telemetry.cause_ids import new_cause_id
from worker.clock import SystemClock
from worker.membership.assignor_calls import AssignorCalls, UnusableError
from worker.membership.left_out import why_left_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assignors.base import Assignment, Assignor
    from protocol.messages.membership import JoinedMember, JoinResponse
    from worker.clock import Clock

log = structlog.get_logger(__name__)

LIMIT_S: Final = 10.0
"""How long an assignor may take. Half the session if that is shorter: the leader is silent meanwhile."""


def load_assignors(specs: Iterable[str]) -> tuple[Assignor, ...]:
    """The assignors a worker is to work with, in order of preference.

    Raises:
        StartupError: there is none of that name, or two go by the same one.
    """
    found: dict[str, Assignor] = {}
    for spec in specs:
        try:
            assignor = load_assignor(spec)
        except AssignorError as error:
            raise StartupError(f"--assignor: {error}") from None
        if assignor.name in found:
            raise StartupError(
                f"--assignor: {spec!r} goes by the name {assignor.name!r}, as one before it does"
            )
        found[assignor.name] = assignor
    return tuple(found.values())


class Leader:
    """Assigns when its worker leads the group; remembers the last assignment that could be used.

    Args:
        assignors: those the worker may be asked to decide by.
        session_timeout_ms: the worker's, in milliseconds.
        move_at_once: how many tasks may move to a member at the same time; 0 for any number.
        clock: what an assignor's time is measured by.
    """

    def __init__(
        self,
        assignors: Sequence[Assignor],
        *,
        session_timeout_ms: int,
        move_at_once: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self._move_at_once = move_at_once
        self._unfinished: tuple[Terms, Assignment] | None = None
        limit_s = min(LIMIT_S, session_timeout_ms / 2000)
        self._calls = AssignorCalls(assignors, clock or SystemClock(), limit_s)
        self._last_good: Assignment = {}

    async def assign(self, joined: JoinResponse, faults: str | None = None) -> tuple[MemberAssignment, ...]:
        """An assignment for every member, by the assignor the group has voted for.

        Args:
            joined: the answer to the leader's join.
            faults: what the manager found wrong with the assignment before this one; the assignor is not
                asked again then.
        """
        metadata = {member.member_id: _metadata(member) for member in joined.members}
        members, tasks = _members(joined, metadata), _tasks(joined, metadata)
        suspects = _suspects(joined)
        isolation = _isolation(members, tasks, suspects)
        name = joined.protocol_name or ""
        dealt = self._under_way(name, isolation, faults)
        if dealt is None:
            dealt = await self._decide(name, isolation.members, isolation.tasks, faults)
        at_once = self._move_at_once if _ask_for_more(metadata) else 0
        now = _paced(dealt, isolation, at_once, _progress(metadata, self._last_good))
        self._unfinished = (_terms(name, isolation), dealt) if now.to_come and faults is None else None
        self._last_good = isolation.complete(now.assignment)
        left_out = {joined.member_id: why_left_out(self._last_good, members, tasks, suspects)}
        return tuple(
            _encode(
                member.member_id,
                self._last_good,
                left_out.get(member.member_id),
                now.to_come.get(member.member_id, 0),
            )
            for member in joined.members
        )

    def _under_way(self, name: str, isolation: Isolation, faults: str | None) -> Assignment | None:
        """The decision of which a part was put off, if it may be carried out as it was made.

        An assignor that decides otherwise each time, which none should, would have tasks move without end.
        """
        if self._unfinished is None or faults is not None:
            return None
        terms, dealt = self._unfinished
        return dealt if terms == _terms(name, isolation) else None

    async def _decide(
        self, name: str, members: Sequence[Member], tasks: Sequence[Task], faults: str | None
    ) -> Assignment:
        """What the assignor decides; failing that, the last good assignment made valid."""
        if not members:
            return {}
        trouble = faults
        if trouble is None:
            current = {member_id: tuple(names) for member_id, names in self._last_good.items()}
            try:
                return await self._calls.decide(name, members, tasks, current)
            except UnusableError as error:
                trouble = str(error)
        log.error("assignor failed, the last good assignment stands in", assignor=name, why=trouble)
        return _stand_in(self._last_good, members, tasks)


def _isolation(members: Sequence[Member], tasks: Sequence[Task], suspects: frozenset[str]) -> Isolation:
    """Nobody is reserved for tasks that are to be alone if it cannot be found out who: the others go on."""
    try:
        return give_own(isolate(members, tasks, suspects))
    except Exception:
        log.exception("bug: no worker is reserved for suspected and exclusive tasks", cause_id=new_cause_id())
        return Isolation(members, [task for task in tasks if not task.exclusive], {})


def _terms(name: str, isolation: Isolation) -> Terms:
    return Terms.of(name, isolation.members, isolation.tasks)


def _paced(dealt: Assignment, isolation: Isolation, at_once: int, progress: Progress) -> Paced:
    """All at once if it cannot be found out what may wait: the moves themselves are right."""
    try:
        return paced(dealt, isolation.members, isolation.tasks, at_once, progress)
    except Exception:
        log.exception("bug: tasks move without a pace", cause_id=new_cause_id())
        return Paced(dealt)


def _progress(metadata: Mapping[str, WorkerMetadata], given: Assignment) -> Progress:
    """How far `given`, the assignment before, is carried out by the members' own words."""
    return Progress(
        {task: member_id for task, (_, member_id) in _holders(metadata).items()},
        {member_id: each.starting for member_id, each in metadata.items()},
        given,
    )


def _ask_for_more(metadata: Mapping[str, WorkerMetadata]) -> bool:
    """Whether all members do: each round has everybody join, which others stop all their tasks for."""
    return all(each.paces for each in metadata.values())


def _stand_in(last_good: Assignment, members: Sequence[Member], tasks: Sequence[Task]) -> Assignment:
    """The last good assignment made valid; should that fail, too, everybody keeps what it owns."""
    try:
        return within_limits(partial(make_valid, last_good), members, tasks)
    except Exception:
        log.exception("bug: the last good assignment cannot be used", cause_id=new_cause_id())
        runnable = {task.name for task in tasks}
        return {each.member_id: sorted(each.owned & runnable)[: each.max_tasks] for each in members}


def _members(joined: JoinResponse, metadata: Mapping[str, WorkerMetadata]) -> tuple[Member, ...]:
    """The group as the assignor sees it: whoever is drained is not there."""
    owned: defaultdict[str, set[str]] = defaultdict(set)
    holders = {task: member_id for task, (_, member_id) in _holders(metadata).items()}
    for task, holder in (holders | _returned(joined)).items():
        owned[holder].add(task)
    return tuple(
        _member(member, metadata[member.member_id], owned[member.member_id])
        for member in joined.members
        if not _is_drained(member)
    )


def _holders(metadata: Mapping[str, WorkerMetadata]) -> dict[str, tuple[int, str]]:
    """The token of each task, and who owns it. If two say they do, the higher token is the present one."""
    highest: dict[str, tuple[int, str]] = {}
    for member_id, each in metadata.items():
        for task, token in each.owned.items():
            if token > highest.get(task, (-1, ""))[0]:
                highest[task] = (token, member_id)
    return highest


def _returned(joined: JoinResponse) -> dict[str, str]:
    """What a worker owned when it was lost counts as its own when it is back."""
    offered = () if joined.tasks is msgspec.UNSET else joined.tasks
    return {task.task: task.returns_to for task in offered if task.returns_to is not msgspec.UNSET}


def _suspects(joined: JoinResponse) -> frozenset[str]:
    """The tasks that are to be on a worker of their own."""
    offered = () if joined.tasks is msgspec.UNSET else joined.tasks
    return frozenset(task.task for task in offered if task.suspect is not msgspec.UNSET and task.suspect)


def _is_drained(member: JoinedMember) -> bool:
    return member.draining is not msgspec.UNSET and member.draining


def _member(member: JoinedMember, metadata: WorkerMetadata, owned: Iterable[str]) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        capacity=metadata.capacity,
        labels=MappingProxyType(metadata.labels),
        owned=frozenset(owned),
        spark=metadata.spark,
        formats=metadata.formats,
        max_tasks=metadata.max_tasks,
    )


def _metadata(member: JoinedMember) -> WorkerMetadata:
    """What a member tells of itself; one whose metadata cannot be read is a worker like any other."""
    try:
        return read_metadata(member.metadata)
    except msgspec.ValidationError as error:
        log.warning("a member's metadata cannot be read", member=member.member_id, why=str(error))
        return WorkerMetadata()


def _tasks(joined: JoinResponse, metadata: Mapping[str, WorkerMetadata]) -> tuple[Task, ...]:
    offered = () if joined.tasks is msgspec.UNSET else joined.tasks
    holders = _holders(metadata)
    return tuple(
        Task(
            task.task,
            task.weight,
            task.worker,
            MappingProxyType(task.labels),
            task.load,
            NOTHING if task.needs is msgspec.UNSET else task.needs,
            task.exclusive is True,
            holders.get(task.task, (0,))[0],
            None if task.lag is msgspec.UNSET else task.lag,
        )
        for task in offered
    )


def _encode(
    member_id: str, assignment: Assignment, left_out: dict[str, str] | None, more: int
) -> MemberAssignment:
    given = TaskAssignment(
        tasks=tuple(assignment.get(member_id, ())),
        left_out=left_out or msgspec.UNSET,
        more=more or msgspec.UNSET,
    )
    return MemberAssignment(member_id, encode_opaque(given))
