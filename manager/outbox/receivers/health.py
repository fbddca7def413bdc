"""Whether a receiver takes what it is told. Pure: what was, the outcome and the time give what is.

It is *failing* from the first message that it did not take, *away* when that has gone on for `AWAY_AFTER_MS`,
and *delivering* again with the next one that it takes. Only becoming away and coming back are told to others.
"""

from __future__ import annotations

from typing import Final

from manager.storage.receiver_health import ReceiverHealth
from protocol.messages.alarm_receivers import ReceiverState

AWAY_AFTER_MS: Final = 300_000
LONGEST_PAUSE_MS: Final = 60_000
"""Between two tries, so that it is found away, and back, about when it is."""
LONGEST_REASON: Final = 300


def after_delivery(health: ReceiverHealth, at_ms: int) -> ReceiverHealth:
    """A message was taken at `at_ms`; the last error stays, for whoever looks why it was away."""
    if health.state is ReceiverState.DELIVERING:
        return health
    return ReceiverHealth(ReceiverState.DELIVERING, at_ms, health.last_error)


def after_refusal(health: ReceiverHealth, at_ms: int, reason: str) -> ReceiverHealth:
    """A message was not taken at `at_ms`, or nobody knows."""
    reason = reason[:LONGEST_REASON]
    if health.state not in {ReceiverState.FAILING, ReceiverState.AWAY} or health.since_ms is None:
        return ReceiverHealth(ReceiverState.FAILING, at_ms, reason)
    is_away = health.is_away or at_ms - health.since_ms >= AWAY_AFTER_MS
    return ReceiverHealth(ReceiverState.AWAY if is_away else ReceiverState.FAILING, health.since_ms, reason)


def as_new(health: ReceiverHealth, at_ms: int) -> ReceiverHealth:
    """It is in the file no more, as was seen at `at_ms`; the last error stays."""
    return ReceiverHealth(ReceiverState.NEW, at_ms, health.last_error)
