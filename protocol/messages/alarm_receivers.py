"""Who is told of alarms, and whether that works (docs/alarm-receivers.md)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from protocol.messages.base import Response


class ReceiverState(StrEnum):
    """How a receiver is: `new` until its first message, `away` when it has been failing for five minutes."""

    NEW = "new"
    DELIVERING = "delivering"
    FAILING = "failing"
    AWAY = "away"


class AlarmReceiver(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver. `since_ms` (since 1970) is since when it is so, `last_error` why it last took nothing."""

    name: str
    kind: str
    fallback: bool
    state: ReceiverState
    since_ms: int | None = None
    last_error: str | None = None


class AlarmReceiverListResponse(Response, frozen=True, kw_only=True):
    """All of them, in the order of the manager's file."""

    receivers: tuple[AlarmReceiver, ...]


class ReceiverTestResponse(Response, frozen=True, kw_only=True):
    """Whether a test message was taken, and if not, or not by all, why."""

    delivered: bool
    reason: str | None = None
