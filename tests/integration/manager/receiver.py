"""A system that takes webhooks, as well or as badly as a test says."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from worker.waiting import ChangeSignal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PATIENCE_S = 120.0
HANG = 0


@dataclass(frozen=True)
class Got:
    """One request."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(msgspec.json.decode(self.body))


@dataclass
class Receiver:
    """Answers with what is in `answers`, an HTTP status or `HANG`, then with `always`."""

    answers: deque[int] = field(default_factory=deque)
    always: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    got: list[Got] = field(default_factory=list)
    url: str = ""

    def __post_init__(self) -> None:
        self._changed = ChangeSignal()
        self._runner: web.AppRunner | None = None

    async def open(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._take)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook/secret-path"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        self.got.append(Got(request.headers, await request.read()))
        self._changed.notify()
        answer = self.answers.popleft() if self.answers else self.always
        if answer == HANG:
            await asyncio.Event().wait()
        return web.Response(status=answer, headers=self.headers)

    @property
    def ids(self) -> list[int]:
        """Of everything that came, in order."""
        return [int(got.headers["webhook-id"]) for got in self.got]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for requests until `holds`."""
        async with asyncio.timeout(PATIENCE_S):
            await self._changed.until(holds)
