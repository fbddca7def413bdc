from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from manager.http.front.replying import JsonResponse

if TYPE_CHECKING:
    from collections.abc import Callable

LAST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


HEADERS = {"ETag": '"1"'}


def ours() -> web.Response:
    return JsonResponse({"error": "NONE"}, 201, HEADERS)


def theirs() -> web.Response:
    return web.Response(
        body=b'{"error":"NONE"}', status=201, headers=HEADERS, content_type="application/json"
    )


async def answered(make: Callable[[], web.Response], requests: bytes, *, closes: bool) -> bytes:
    """All that a server sends until it closes the connection, without the dates."""

    async def handle(_: web.BaseRequest) -> web.Response:
        response = make()
        if closes:
            response.force_close()
        return response

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    reader, writer = await asyncio.open_connection(*runner.addresses[0])
    writer.write(requests)
    sent = await reader.read()
    writer.close()
    await runner.cleanup()
    return re.sub(rb"Date: [^\r]*", b"Date: then", sent)


async def test_an_answer_that_is_sent_keeps_nothing() -> None:
    """Aiohttp keeps it for as long as the connection is idle, or the next request is held."""
    made: list[web.Response] = []

    def kept() -> web.Response:
        made.append(ours())
        return made[-1]

    await answered(kept, LAST.replace(b"Connection: close\r\n", b"") + LAST, closes=False)
    assert (made[0].body, len(made[0].headers)) == (None, 0)


@pytest.mark.parametrize(
    ("requests", "closes"),
    [
        (LAST.replace(b"Connection: close\r\n", b"") + LAST, False),
        (LAST.replace(b"GET", b"HEAD"), False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + LAST, False),
        (LAST.replace(b"Connection: close\r\n", b""), True),
    ],
)
async def test_an_answer_that_leaves_in_one_piece_is_the_one_that_aiohttp_would_send(
    requests: bytes, *, closes: bool
) -> None:
    """Byte by byte, whether the connection goes on after it or not."""
    sent = await answered(ours, requests, closes=closes)
    assert sent == await answered(theirs, requests, closes=closes)
    assert sent.count(b" 201 Created") == requests.count(b"HTTP/1.")
