"""Several managers in one process on one PostgreSQL, each on a socket; what time would do, the test does."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

from manager.app import make_app
from manager.cluster.node import open_node
from manager.cluster.slot_controller import SlotController
from manager.http.front.server import Runner
from manager.settings import ManagerSettings
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.sql_storage import SqlStorage
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from manager.cluster.held_slots import HeldSlots
    from tests.integration.manager.backends import Database

FOR_EVER_MS = 600_000
"""Leases that no busy machine lets lapse; a test lets them."""
SLOTS = 8


class Manager:
    """One of them. Its controller looks when the test says so."""

    def __init__(self, database: Database, name: str) -> None:
        self.database = database
        self.name = name
        self.storage = SqlStorage(database.url)

    async def start(self, incarnation: str = "1") -> None:
        """Register, take what is due, serve."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = ManagerSettings(lease_ms=FOR_EVER_MS, slots=SLOTS, initial_rebalance_delay_ms=0)
        self.me = ManagerIdentity(self.name, f"{self.name}-{incarnation}", self.url)
        self.node = await open_node(settings, self.storage, self.me)
        self.runtime = self.node.runtime
        assert isinstance(self.node.controller, SlotController)
        self.controller = self.node.controller
        await self.controller.start()
        assert self.controller._watch is not None
        await self.controller._watch.stop()
        me = Coordinator(self.name, self.url)
        app = make_app(self.runtime, me, 1_000_000, self.node.directory, alarms=self.node.alarms)
        self._runner = Runner(app)
        await self._runner.setup()
        await web.SockSite(self._runner, listener).start()

    async def stop(self) -> None:
        """In order."""
        await self.node.leave()
        await self._runner.cleanup()

    @property
    def leases(self) -> HeldSlots:
        """What it believes."""
        return self.controller._held_slots

    def look_by_itself(self) -> None:
        """From now on as it would: when a lease is due, or a stranger asks."""
        self.controller.watch()

    async def look(self) -> None:
        """As it would in a moment; what comes of it is carried out."""
        await self.controller._look_safely()
        await self.moved()

    async def moved(self) -> None:
        """Until no slot is on the move."""
        if self.controller._moving is not None:
            await asyncio.wait([self.controller._moving])

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


async def started(database: Database, stack: AsyncExitStack, name: str) -> Manager:
    """One that stops with the test."""
    manager = Manager(database, name)
    await manager.start()
    stack.push_async_callback(manager.stop)
    return manager
