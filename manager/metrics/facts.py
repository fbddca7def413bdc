"""What turns come to, in the few facts that groups are watched by; read off the effects of the core."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from manager.core.commands import DrainMember, RemoveMember, StartRebalance
from manager.core.stored_rows import Dropped, GroupRow, MemberRow, OwnershipRow, RebalanceRow
from protocol.messages.membership import JoinRequest, LeaveRequest
from protocol.messages.ownership import ReportRequest
from protocol.states import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from manager.core.turn import Turn
    from protocol.messages.base import Request


class RebalanceCause(StrEnum):
    """What a rebalance began with. The reason in its history is for people, and may be any text."""

    JOIN = "join"
    LEAVE = "leave"
    REMOVED = "removed"
    LOST = "lost"
    TASKS = "tasks"
    PACE = "pace"
    DRAIN = "drain"
    ADMIN = "admin"
    RESTORED = "restored"
    OTHER = "other"


class DepartureKind(StrEnum):
    """How a member went."""

    LEFT = "left"
    LOST = "lost"
    REMOVED = "removed"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """A rebalance came to its end."""

    cause: RebalanceCause
    line: RebalanceRow


@dataclass(frozen=True, slots=True)
class MemberGone:
    """A member went; only one that was in a completed generation counts."""

    group: str
    generation: int
    member: str
    how: DepartureKind


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """A task failed for good, until somebody restarts it."""

    row: OwnershipRow


@dataclass(frozen=True, slots=True)
class GroupForgotten:
    """There is no such group any more."""

    group: str


Fact = Rebalanced | MemberGone | TaskFailed | GroupForgotten

_CAUSES: dict[type[Request], RebalanceCause] = {
    JoinRequest: RebalanceCause.JOIN,
    LeaveRequest: RebalanceCause.LEAVE,
    RemoveMember: RebalanceCause.REMOVED,
    DrainMember: RebalanceCause.DRAIN,
    StartRebalance: RebalanceCause.ADMIN,
}
_DEPARTURES: dict[type[Request], DepartureKind] = {
    LeaveRequest: DepartureKind.LEFT,
    RemoveMember: DepartureKind.REMOVED,
    JoinRequest: DepartureKind.REPLACED,
}


class Facts:
    """Reads turns; remembers of each rebalance under way what it began with."""

    def __init__(self) -> None:
        self._began: dict[str, RebalanceCause] = {}

    def read(self, asked: type[Request] | None, turn: Turn) -> list[Fact]:
        """The facts of `turn`.

        Args:
            asked: the type of the request it answers; None if a deadline was due, or a connection closed.
            turn: carried out, whether durable yet or not.
        """
        cause = _cause(asked, turn)
        facts = [fact for change in turn.changes for fact in self._of(change, asked, cause, turn)]
        self._note_beginning(turn, cause)
        return facts

    def loaded(self, turn: Turn) -> list[Fact]:
        """The facts of a turn that took a group up: whatever it was in the middle of is another thing now."""
        self._began.pop(turn.group.name, None)
        facts = [
            fact for change in turn.changes for fact in self._of(change, None, RebalanceCause.RESTORED, turn)
        ]
        self._note_beginning(turn, RebalanceCause.RESTORED)
        return facts

    def _note_beginning(self, turn: Turn, cause: RebalanceCause) -> None:
        """More of what was decided before, a member asks for as it joins (protocol §5, Pace)."""
        if (begun := turn.group.round) is not None:
            self._began.setdefault(turn.group.name, RebalanceCause.PACE if begun.goes_on else cause)

    def _of(
        self, change: object, asked: type[Request] | None, cause: RebalanceCause, turn: Turn
    ) -> Iterator[Fact]:
        match change:
            case RebalanceRow(group=group):
                yield Rebalanced(self._began.pop(group, cause), change)
            case Dropped(kind=kind, key=(group, member)) if kind is MemberRow:
                how = DepartureKind.LOST if asked is None else _DEPARTURES.get(asked, DepartureKind.REMOVED)
                yield MemberGone(group, turn.group.generation, member, how)
            case Dropped(kind=kind, key=(group,)) if kind is GroupRow:
                self._began.pop(group, None)
                yield GroupForgotten(group)
            case OwnershipRow(state=TaskState.FAILED) if asked is ReportRequest:
                yield TaskFailed(change)


def _cause(asked: type[Request] | None, turn: Turn) -> RebalanceCause:
    if asked is not None:
        return _CAUSES.get(asked, RebalanceCause.OTHER)
    loses = any(isinstance(change, Dropped) and change.kind is MemberRow for change in turn.changes)
    return RebalanceCause.LOST if loses else RebalanceCause.TASKS
