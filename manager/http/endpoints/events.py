"""What happened, as a list or as a stream (protocol §5, docs/events.md)."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from aiohttp import web

from manager.http.authorization import judge_of
from manager.http.endpoint import Endpoint
from manager.http.front.replying import JSON
from manager.http.revocation import while_let_in
from manager.outbox.feed import events_after
from manager.storage.base import StorageError
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.events import EventListQuery, EventListResponse
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.core.turn import Outcome
    from manager.http.endpoint import Call
    from manager.http.front.reading import HttpRequest
    from manager.outbox.feed import Feed
    from manager.storage.base import LogPage
    from protocol.messages.events import Event

STREAM = "text/event-stream"
HEADERS = {"Content-Type": STREAM, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
HEARTBEAT_S = 15.0

_encode = msgspec.json.Encoder().encode


class ReadPosition(NamedTuple):
    """From where on somebody reads what; `after` None is the oldest event that is kept."""

    after: int | None
    group: str | None


class EventHandlers:
    """GET /v1/events."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def endpoints(self) -> list[Endpoint]:
        """One path, two forms."""
        return [
            Endpoint(
                "GET",
                "/v1/events",
                "listEvents",
                "What happened after an event, in order, as a list or as a stream that goes on",
                self.events,
                role=Role.VIEWER,
                asks=EventListQuery,
                response=EventListResponse,
                media=(JSON, STREAM),
            )
        ]

    async def events(self, call: Call[None, EventListQuery]) -> Outcome | web.StreamResponse:
        """What happened after an event, in order."""
        place = _place_of(call.asked)
        page = await self._feed.read(place.after or 0, call.asked.limit, place.group)
        _check_known(place, page)
        if STREAM in call.request.headers.get("Accept", ""):
            return await self._stream(call.request, place)
        return EventListResponse(events=events_after(page, place.after), last_id=page.through)

    async def _stream(self, request: HttpRequest, place: ReadPosition) -> web.StreamResponse:
        response = web.StreamResponse(headers={**HEADERS, **request.common_headers})
        await response.prepare(request)
        after, group = place
        try:
            async with (
                while_let_in(judge_of(request)),
                aclosing(self._feed.follow(after or 0, group, HEARTBEAT_S)) as pages,
            ):
                async for page in pages:
                    await response.write(_block(events_after(page, after), page.through))
                    after = page.through
        except StorageError:
            pass  # the reader comes back, and is told why there is nothing to read
        return response


def _place_of(asked: EventListQuery) -> ReadPosition:
    """How far a reader came that comes back counts more than where it was sent off."""
    resumed = asked.last_event_id
    return ReadPosition(asked.after if resumed is None else resumed, asked.group)


def _check_known(place: ReadPosition, page: LogPage) -> None:
    """Whoever has seen what never was would wait for it to come about again, and miss all until then."""
    if place.after is not None and place.after > page.last_id:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST,
            f"after: the newest event is {page.last_id}; {place.after} is not of this database",
        )


def _block(events: tuple[Event, ...], through: int) -> bytes:
    """Events as the stream has them; without any, a comment, and an id that moves the reader's place on."""
    lines = [b"id: %d\ndata: %b\n\n" % (event.id, _encode(event)) for event in events]
    return b"".join(lines) or b": nothing new\nid: %d\n\n" % through
