"""What another manager answers to whom this one asks for, over real sockets."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from manager.http.forwarding import Forwarding
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from manager.http.replying import Handler

ME = Coordinator(id="me", url="http://me")


class Elsewhere:
    """A `Directory` that knows of one other manager, which has every group."""

    def __init__(self, url: str) -> None:
        self._owner = Coordinator(id="owner", url=url)

    def is_here(self, _: str) -> bool:
        return False

    def coordinator(self, _: str) -> Coordinator:
        return self._owner


async def _never(_: web.Request) -> web.StreamResponse:
    raise AssertionError("the group is not here")


@asynccontextmanager
async def _serving(handler: Handler, forwarding: Forwarding | None = None) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{rest:(?!groups).*}", handler)
    app.router.add_route("*", "/groups/{group}", handler)
    if forwarding is not None:
        app.cleanup_ctx.append(forwarding.session)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_an_answer_that_leads_elsewhere_is_passed_back_and_not_followed(status: int) -> None:
    """Else the owner could have this manager ask anybody for anything, with the caller's token and body."""
    asked: list[str] = []

    async def stranger(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(_serving(stranger)) + "/taken"

        async def owner(_: web.Request) -> web.Response:
            return web.Response(status=status, headers={"Location": place})

        directory: Any = Elsewhere(await stack.enter_async_context(_serving(owner)))
        forwarding = Forwarding(directory, ME)
        url = await stack.enter_async_context(_serving(forwarding.wrap(_never), forwarding))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        async with session.put(url + "/groups/g", data=b"secret", allow_redirects=False) as answer:
            told = answer.status, answer.headers.get("Location")
    assert asked == []
    assert told == (status, place)
