"""Several managers in one process on one PostgreSQL, each on a socket; what time would do, the test does."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from manager.app import make_app
from manager.cluster.joining import find_place
from manager.cluster.steward import Steward
from manager.cluster.view import Identity
from manager.http.front.server import Runner
from manager.settings import ManagerSettings
from manager.storage.sql import SqlStorage
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from manager.cluster.leases import Leases
    from tests.integration.manager.backends import Database

FOR_EVER_MS = 600_000
"""Leases that no busy machine lets lapse; a test lets them."""
SLOTS = 8


class Manager:
    """One of them. Its steward looks when the test says so."""

    def __init__(self, database: Database, name: str) -> None:
        self.database = database
        self.name = name
        self.storage = SqlStorage(database.url)

    async def start(self, incarnation: str = "1") -> None:
        """Register, take what is due, serve."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = ManagerSettings(lease_ms=FOR_EVER_MS, slots=SLOTS, initial_rebalance_delay_ms=0)
        self.me = Identity(self.name, f"{self.name}-{incarnation}", self.url)
        self.place = await find_place(settings, self.storage, self.me)
        self.runtime = self.place.runtime
        assert isinstance(self.place.steward, Steward)
        self.steward = self.place.steward
        await self.steward.start()
        assert self.steward._watch is not None
        await self.steward._watch.stop()
        app = make_app(self.runtime, Coordinator(self.name, self.url), 1_000_000, self.place.directory)
        self._runner = Runner(app)
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def stop(self) -> None:
        """In order."""
        await self.place.leave()
        await self._runner.cleanup()

    @property
    def leases(self) -> Leases:
        """What it believes."""
        return self.steward._leases

    def look_by_itself(self) -> None:
        """From now on as it would: when a lease is due, or a stranger asks."""
        self.steward.watch()

    async def look(self) -> None:
        """As it would in a moment; what comes of it is carried out."""
        await self.steward._look_safely()
        await self.moved()

    async def moved(self) -> None:
        """Until no slot is on the move."""
        if self.steward._moving is not None:
            await asyncio.wait([self.steward._moving])

    def expire(self) -> None:
        """By the database's clock its lease has ended; it does not know."""
        self.database.run(f"UPDATE managers SET expires_at_ms = 1 WHERE manager_id = '{self.name}'")

    async def http(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request over its socket."""
        async with (
            aiohttp.ClientSession() as client,
            client.request(method, self.url + path, json=body) as answer,
        ):
            return answer.status, await answer.json()
