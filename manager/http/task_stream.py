"""A long list of tasks as it is read: in one answer, but not in one turn of the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import hdrs, web

from manager.http.front.replying import JSON
from protocol.messages.tasks import TaskListResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from manager.core.turn import Outcome
    from manager.http.front.reading import HttpRequest

AT_ONCE: Final = 1000
"""Tasks that are read in one turn, which takes some 7 ms."""
_NO_TASKS: Final = b'"tasks":[]'
_encode = msgspec.json.Encoder().encode


async def stream_tasks(
    request: HttpRequest,
    first: TaskListResponse,
    headers: Mapping[str, str],
    read_after: Callable[[str], Awaitable[Outcome]],
) -> web.StreamResponse:
    """Answer with `first` and all that follows, under its tag and revision.

    What changes meanwhile may be in the list or not: its tag is not that of the group any more then, and
    whoever shows it is refused, as has to be. An answer that cannot be brought to its end is cut off.
    """
    response = web.StreamResponse(headers={**headers, **request.common_headers, "Content-Type": JSON})
    await response.prepare(request)
    if request.method == hdrs.METH_HEAD:
        return response
    head, _, tail = _encode(msgspec.structs.replace(first, tasks=(), next=None)).partition(_NO_TASKS)
    await response.write(head + _NO_TASKS[:-1] + _inner(first))
    page = first
    while page.next is not None:
        outcome = await read_after(page.next)
        if not isinstance(outcome, TaskListResponse):
            _cut_off(request)
            return response
        page = outcome
        await response.write(b"," + _inner(page) if page.tasks else b"")
    await response.write(_NO_TASKS[-1:] + tail)
    return response


def _inner(page: TaskListResponse) -> bytes:
    return _encode(page.tasks)[1:-1]


def _cut_off(request: HttpRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
