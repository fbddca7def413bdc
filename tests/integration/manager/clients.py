"""A manager with limits of its own, and the connections that a test has to it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import ClientSession, web

from manager.app import make_app
from manager.http.front.channel import Channel
from manager.http.front.server import Runner
from manager.storage.sql_storage import SqlStorage
from protocol.messages.groups import Coordinator
from tests.integration.manager.fuzz.front import Wire
from tests.integration.node import started_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import trustme

    from manager.access.authorizer import Authorizer
    from manager.access.rates import Rates
    from manager.http.front.limits import Limits
    from manager.runtime.coordinator_runtime import CoordinatorRuntime


MAX_BYTES = 1_000_000
FEW_BYTES = 4096
BOTH_LOOPS = [
    pytest.mark.asyncio(loop_factories=["asyncio", "uvloop"]),
    pytest.mark.timeout(400, method="thread"),  # uvloop keeps signals to itself
]
"""For what depends on the event loop: transports of uvloop, the manager's own, are of another kind."""


@dataclass
class Served:
    """A manager, and the connections that a test has to it."""

    runtime: CoordinatorRuntime
    storage: SqlStorage
    runner: Runner
    session: ClientSession
    trust: ssl.SSLContext | None
    _wires: list[Wire] = field(default_factory=list)

    @property
    def port(self) -> int:
        """On 127.0.0.1."""
        return int(self.runner.addresses[0][1])

    @property
    def url(self) -> str:
        """Without TLS."""
        return f"http://127.0.0.1:{self.port}"

    async def connect(self) -> Wire:
        """One more."""
        opened = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trust)
        self._wires.append(Wire(*opened))
        return self._wires[-1]

    @property
    def connections(self) -> list[web.RequestHandler]:
        """As aiohttp has them."""
        assert self.runner.server is not None
        return self.runner.server.connections

    @property
    def channels(self) -> list[Channel]:
        """Those in front of them."""
        return [each.transport for each in self.connections if isinstance(each.transport, Channel)]

    async def close(self) -> None:
        """Hang up everywhere."""
        await self.session.close()
        for wire in self._wires:
            await wire.close()


@asynccontextmanager
async def serving(
    folder: Path,
    limits: Limits | None = None,
    authority: trustme.CA | None = None,
    *,
    storage_type: type[SqlStorage] = SqlStorage,
    access: Authorizer | None = None,
    rates: Rates | None = None,
    **settings: Any,
) -> AsyncIterator[Served]:
    """A manager with these limits; by TLS if there is an `authority` that signs its certificate."""
    own, trust = (None, None) if authority is None else _tls(authority)
    storage = storage_type(f"sqlite+aiosqlite:///{folder}/m.db")
    chosen = {"initial_rebalance_delay_ms": 0, "max_session_timeout_ms": 3_600_000} | settings
    node = await started_node(storage, **chosen)
    me = Coordinator("m", "http://m")
    runner = Runner(make_app(node.runtime, me, MAX_BYTES, node.directory, access=access, rates=rates), limits)
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0))
    if own is not None:  # or megabytes of what the manager does not listen to are in the system's buffers
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, FEW_BYTES)
    await web.SockSite(runner, listening, ssl_context=own).start()
    served = Served(node.runtime, storage, runner, ClientSession(), trust)
    try:
        yield served
    finally:
        await served.close()
        await node.leave()
        await runner.cleanup()


def _tls(authority: trustme.CA) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The manager's, and that of whoever asks it."""
    own, trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(own)
    authority.configure_trust(trust)
    return own, trust
