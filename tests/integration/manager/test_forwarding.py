"""What another manager answers to whom this one asks for, over real sockets."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from manager.http.forwarding import Forwarding
from manager.http.front.application import Application
from manager.http.front.server import Runner
from protocol.messages.groups import Coordinator
from protocol.request_timeouts import client_wait_s, work_s
from tests.fakes.endpoints import api_endpoints

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from manager.http.front.reading import HttpRequest
    from manager.http.front.replying import Handler

ME = Coordinator(id="me", url="http://me")


class Core:
    """Does not care for connections."""

    def closed(self, *_: object, **__: object) -> None:
        """Nothing comes of it."""


class Elsewhere:
    """A `Directory` that knows of one other manager, which has every group."""

    def __init__(self, url: str) -> None:
        self._owner = Coordinator(id="owner", url=url)

    def is_here(self, _: str) -> bool:
        return False

    def coordinator(self, _: str) -> Coordinator:
        return self._owner


async def _never(_: HttpRequest) -> web.StreamResponse:
    raise AssertionError("the group is not here")


@asynccontextmanager
async def _serving(handler: Handler, forwarding: Forwarding | None = None) -> AsyncIterator[str]:
    session = nullcontext if forwarding is None else forwarding.session
    app = Application(Core(), 2_000_000, session=session)
    for method in ("GET", "PUT"):
        app.add(method, "/taken", handler)
        app.add(method, "/groups/{group}", handler)
    runner = Runner(app)
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

    async def stranger(request: HttpRequest) -> web.Response:
        asked.append(request.path)
        return web.Response()

    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(_serving(stranger)) + "/taken"

        async def owner(_: HttpRequest) -> web.Response:
            return web.Response(status=status, headers={"Location": place})

        directory: Any = Elsewhere(await stack.enter_async_context(_serving(owner)))
        forwarding = Forwarding(directory, ME)
        url = await stack.enter_async_context(_serving(forwarding.wrap(_never), forwarding))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        async with session.put(url + "/groups/g", data=b"secret", allow_redirects=False) as answer:
            told = answer.status, answer.headers.get("Location")
    assert asked == []
    assert told == (status, place)


@asynccontextmanager
async def _between(owner_url: str) -> AsyncIterator[str]:
    """The URL of a manager that forwards to `owner_url`."""
    directory: Any = Elsewhere(owner_url)
    forwarding = Forwarding(directory, ME)
    async with _serving(forwarding.wrap(_never), forwarding) as url:
        yield url


async def test_the_owner_has_the_more_time_the_more_is_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And whoever asks waits longer than the manager in between, whatever the size."""
    waited: list[float] = []
    ask = aiohttp.ClientSession.request

    def request(session: aiohttp.ClientSession, *asked: Any, timeout: Any = None, **more: Any) -> Any:
        waited.append(timeout.total)
        return ask(session, *asked, timeout=timeout, **more)

    async def owner(_: HttpRequest) -> web.Response:
        return web.Response()

    async with _serving(owner) as place, _between(place) as url, aiohttp.ClientSession() as session:
        monkeypatch.setattr(aiohttp.ClientSession, "request", request)
        for size in (0, 1_000_000):
            async with session.put(url + "/groups/g", data=bytes(size)) as answer:
                assert answer.status == 200
    assert waited == [work_s(0), work_s(1_000_000)]
    assert work_s(0) == 20
    assert work_s(1_000_000) > 20 + 2000 * 0.01  # so many tasks of that size, at ten times what each takes
    assert all(work_s(size) < client_wait_s(size) for size in (0, 1000, 8_388_608))


async def test_what_may_be_held_is_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check is answered when a worker is done, and not when the manager is."""
    waited = []

    async def forward(
        _: Forwarding, request: Any, owner: Coordinator, held_s: float, body: bytes | None
    ) -> web.Response:
        del request, owner, body
        waited.append(held_s)
        return web.Response()

    monkeypatch.setattr(Forwarding, "_forward", forward)
    [check] = [each for each in api_endpoints() if each.operation == "checkDefinition"]
    forwarding = Forwarding(Elsewhere("http://owner"), ME)  # type: ignore[arg-type]  # as far as it is asked
    request: Any = SimpleNamespace(match_info={"group": "g"}, headers={})
    await forwarding.wrap(_never, check.held_s)(request)
    assert waited == [60]


async def test_what_an_owner_that_does_not_answer_has_done_is_not_known() -> None:
    """It says so; of an owner that was never reached it says that nothing was sent."""

    async def owner(request: HttpRequest) -> web.Response:
        await request.read()
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        url = await stack.enter_async_context(_between(await stack.enter_async_context(_serving(owner))))
        async with session.put(url + "/groups/g", data=b"x") as answer:
            told = await answer.json()
            assert (answer.status, told["error"]) == (503, "COORDINATOR_NOT_AVAILABLE")
            assert "whether it has done what was asked for is not known" in told["message"]
            assert "was_sent" not in told
        url = await stack.enter_async_context(_between("http://127.0.0.1:1"))
        async with session.put(url + "/groups/g", data=b"x") as answer:
            told = await answer.json()
            assert (answer.status, told["was_sent"]) == (503, False)
            assert "cannot be reached" in told["message"]


async def test_of_an_owner_that_lets_nobody_connect_it_says_that_nothing_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that is gone refuses nothing: the connection only never comes about."""

    async def unheard(_: HttpRequest) -> web.Response:
        raise AssertionError("nobody connects")

    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(_serving(unheard))
        url = await stack.enter_async_context(_between(place))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        loop = asyncio.get_running_loop()
        connect = loop.sock_connect

        async def connecting(sock: Any, address: Any) -> None:
            await (asyncio.Event().wait() if place.endswith(f":{address[1]}") else connect(sock, address))

        monkeypatch.setattr(loop, "sock_connect", connecting)
        monkeypatch.setattr("manager.http.forwarding.CONNECT_S", 0.01)
        async with session.put(url + "/groups/g", data=b"x") as answer:
            told = await answer.json()
    assert (answer.status, told["was_sent"]) == (503, False)
    assert "cannot be reached" in told["message"]
