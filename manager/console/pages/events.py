"""The events: the newest first, by group, task and type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from manager.console.page import Page, PageRequest
from manager.console.pages.links import with_query
from protocol.messages.events import EventType

if TYPE_CHECKING:
    from manager.console.page_data import PageData
    from protocol.messages.events import Event


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events; each empty for any. `before` is an id that is not shown any more."""

    group: str
    task: str
    type: str
    before: int | None

    def takes(self, event: Event) -> bool:
        """Whether the event is among them; its group is looked at by the log."""
        named = self.task.lower() in (event.task or "").lower()
        return named and (not self.type or event.type == self.type)


@dataclass(frozen=True, slots=True)
class EventsPage:
    """What the page shows. `older` leads on."""

    now_ms: int
    wanted: EventFilter
    types: tuple[str, ...]
    events: tuple[Event, ...]
    older: str | None
    newest: str


async def events(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/events`."""
    wanted = filter_of(request)
    found, goes_on_at = await page_data.events_like(
        lambda event: wanted.takes(event) and request.may_see(event),
        before=wanted.before,
        group=wanted.group or None,
    )
    newest = await page_data.latest_events(limit=1)
    view = events_page(wanted, found, goes_on_at, page_data.now_ms())
    return Page("events.html", "Events", "events", view, newest[0].id if newest else 0)


def filter_of(request: PageRequest) -> EventFilter:
    """What the address asks for; what it cannot mean is passed over."""
    query = request.query
    before = query.get("before", "")
    return EventFilter(
        group=query.get("group", "").strip(),
        task=query.get("task", "").strip(),
        type=query.get("type", ""),
        before=int(before) if before.isascii() and before.isdigit() and len(before) < len("1" * 16) else None,
    )


def events_page(
    wanted: EventFilter, found: tuple[Event, ...], goes_on_at: int | None, now_ms: int
) -> EventsPage:
    """What the page shows of what was found; `goes_on_at` is where older ones begin, None at the oldest."""
    filters = {"group": wanted.group, "task": wanted.task, "type": wanted.type}
    return EventsPage(
        now_ms=now_ms,
        wanted=wanted,
        types=tuple(kind.value for kind in EventType),
        events=found,
        older=with_query("/events", **filters, before=goes_on_at) if goes_on_at else None,
        newest=with_query("/events", **filters),
    )
