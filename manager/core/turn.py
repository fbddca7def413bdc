"""What one request, or one deadline, does to one group: answers to send, rows to store first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from manager.core.new_group_ids import NewGroupIds
from manager.core.stored_rows import Dropped, OwnershipRow, Record, Row
from protocol.messages.events import Event, EventType
from protocol.messages.groups import GroupHistoryLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.core.group import Group
    from manager.core.member import Parked
    from protocol.errors import Failure
    from protocol.messages.base import Response
    from protocol.messages.tasks import TaskResponse, TaskStatusResponse
    from protocol.messages.transfers import TransferResponse

    Outcome = Response | TaskResponse | TaskStatusResponse | TransferResponse | Failure

MAX_NOTE_LENGTH = 512
MAX_CAUSE_LENGTH = 2000
"""In characters; a task's status has all of it."""


class ClockReading(NamedTuple):
    """One moment on two clocks, both in milliseconds.

    `mono` only grows and is what deadlines are made of; `wall` counts from 1970 and is what people are shown.
    """

    mono: int
    wall: int


class Turn:
    """The effects of one step on `group`.

    `new_id` makes the unique half of a member id, and `new_group_ids` are those that were handed out in
    groups that do not exist yet.
    """

    __slots__ = ("answers", "changes", "group", "instant", "new_group_ids", "new_id")

    def __init__(
        self,
        group: Group,
        instant: ClockReading,
        new_id: Callable[[], str],
        new_group_ids: NewGroupIds | None = None,
    ) -> None:
        self.group = group
        self.instant = instant
        self.new_id = new_id
        self.new_group_ids = new_group_ids or NewGroupIds()
        self.answers: list[tuple[Parked, Outcome]] = []
        self.changes: list[Record] = []

    @property
    def now(self) -> int:
        """The moment on the monotonic clock, in milliseconds."""
        return self.instant.mono

    def answer(self, parked: Parked, outcome: Outcome) -> None:
        """Decide the one answer of `parked`; it is sent once this turn's rows are durable."""
        parked.settle()
        self.answers.append((parked, outcome))

    def note(self, event: str) -> None:
        """Add a line to the group's history; a long one is cut, since requests may bring their own words."""
        group = self.group
        event = event[:MAX_NOTE_LENGTH]
        group.history.add(GroupHistoryLine(self.instant.wall, group.generation, event), event)

    def tell(self, kind: EventType, *, cause: str | None = None, **details: Any) -> None:
        """Tell the outside, in the transaction that makes it so; `details` are fields of `Event`."""
        told = cause[:MAX_CAUSE_LENGTH] if cause is not None else None
        at_ms, group = self.instant.wall, self.group.name
        self.changes.append(Event(id=0, at_ms=at_ms, type=kind, group=group, cause=told, **details))

    def put(self, row: Row) -> None:
        """Make `row` part of the group, durably."""
        if isinstance(row, OwnershipRow):
            self.group.tasks.note_history(self.instant.wall, row)
        self.group.apply(row)
        self.changes.append(row)

    def update(self, row: Row, **changes: Any) -> None:
        """Put `row` with other values in some of its fields."""
        self.put(msgspec.structs.replace(row, **changes))

    def drop(self, row: Row) -> None:
        """Take `row` out of the group, durably."""
        dropped = Dropped(type(row), row.key)
        self.group.apply(dropped)
        self.changes.append(dropped)
