"""What happened, as it is told outside: `GET /v1/events`, its stream, and webhooks (docs/events.md)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from protocol.messages.alarm_notice import AlarmNotice
from protocol.messages.base import MAX_INT, Response
from protocol.messages.groups import Coordinator
from protocol.names import Name

EventId = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT, description="the id of an event")]


class EventType(StrEnum):
    """What can happen; readers have to tolerate names they do not know."""

    REBALANCE_COMPLETED = "rebalance.completed"
    WORKER_LOST = "worker.lost"
    TASK_CREATED = "task.created"
    TASK_CHANGED = "task.changed"
    TASK_RESET = "task.reset"
    TASK_DELETED = "task.deleted"
    TASK_STOPPED = "task.stopped"
    TASK_COMPLETED = "task.completed"
    TASK_FAILED = "task.failed"
    TASK_QUARANTINED = "task.quarantined"
    TASK_SUSPECTED = "task.suspected"
    TASK_LIMIT_EXCEEDED = "task.limit_exceeded"
    ROWS_QUARANTINED = "rows.quarantined"
    TRANSFER_STARTED = "transfer.started"
    TRANSFER_GIVEN = "transfer.given"
    TRANSFER_COMPLETED = "transfer.completed"
    TRANSFER_CANCELLED = "transfer.cancelled"
    ALARM_FIRING = "alarm.firing"
    ALARM_RESOLVED = "alarm.resolved"
    GROUP_DELETED = "group.deleted"
    MANAGER_CHANGED = "manager.changed"
    EVENTS_PRUNED = "events.pruned"


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened; what a type does not have is left out.

    `id` is its place in the order of all events of the database, counted from 1 without holes; 0 is one that
    was not stored yet. `at_ms` (since 1970) never falls as ids grow.
    """

    id: int
    at_ms: int
    type: str
    group: str | None = None
    task: str | None = None
    member: str | None = None
    generation_id: int | None = None
    cause: str | None = None
    duration_ms: int | None = None
    members: int | None = None
    moved: int | None = None
    tasks: int | None = None
    target: str | None = None
    definition_version: int | None = None
    restart_count: int | None = None
    rows: int | None = None
    reasons: dict[str, int] | None = None
    transfer: str | None = None
    to_group: str | None = None
    to_task: str | None = None
    manager: Coordinator | None = None
    slots: int | None = None
    after: int | None = None
    alarm: AlarmNotice | None = None


class EventListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which events are asked for: those after `after`, in a list at most `limit` of them.

    A reader that comes back by itself says with `Last-Event-ID` how far it came since it was sent off.
    """

    after: EventId | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    group: Name | None = None
    last_event_id: EventId | None = msgspec.field(default=None, name="Last-Event-ID")


class EventListResponse(Response, frozen=True, kw_only=True):
    """Events in order; `last_id` is what to ask `after` next: all there is up to it has been told."""

    events: tuple[Event, ...]
    last_id: int
