"""What a reader is told of a page of the log. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.messages.events import Event, EventType

if TYPE_CHECKING:
    from manager.storage.base import Page


def told(page: Page, after: int | None) -> tuple[Event, ...]:
    """The events of `page`, which was read from `after` on; first of all, what is not among them any more.

    Args:
        page: as it was read.
        after: the last event the reader has; None if it takes what is kept, and misses nothing.
    """
    if after is None or after >= page.pruned_through:
        return page.events
    at_ms = page.events[0].at_ms if page.events else page.last_at_ms
    gap = Event(id=page.pruned_through, at_ms=at_ms, type=EventType.EVENTS_PRUNED, after=after)
    return (gap, *page.events)
