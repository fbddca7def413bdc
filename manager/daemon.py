"""The manager as a process: start, serve, stop in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import uuid
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from manager.http.app import make_app
from manager.http.server import Runner
from manager.outbox.outbox import Outbox
from manager.runtime.runtime import Runtime
from manager.storage.sql import SqlStorage
from protocol.errors import StartupError
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.settings import ManagerSettings

log = structlog.get_logger(__name__)


async def run(settings: ManagerSettings, started: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT.

    Args:
        settings: what to serve, and where.
        started: called once with the URL when requests are served.

    Returns:
        The exit code.

    Raises:
        StartupError: it cannot start; one line that names the setting to change.
    """
    stop = _stop_on_signals()
    storage = SqlStorage(settings.database)
    runtime = Runtime(settings, storage)
    outbox = Outbox(runtime.feed, storage.events, settings)
    listener = _listen(settings.listen)
    host, port = settings.listen.rsplit(":", 1)[0], listener.getsockname()[1]
    url = f"http://{host}:{port}"
    this_manager = Coordinator(id=uuid.uuid4().hex[:12], url=url)
    app = make_app(runtime, this_manager, settings.max_request_bytes)
    runner = Runner(app)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(listener.close)
        await runtime.start()
        stack.push_async_callback(runner.cleanup)
        stack.push_async_callback(runtime.stop)
        await stack.enter_async_context(outbox)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        log.info("manager serves", url=url, manager=this_manager.id)
        started(url)
        await stop.wait()
        log.info("manager stops")
    return 0


def _listen(address: str) -> socket.socket:
    """A socket of our own, so that a taken port is found out before anything else is touched."""
    host, port = address.rsplit(":", 1)
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise StartupError(f"--listen {address}: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except (OSError, OverflowError) as error:
        listener.close()
        raise StartupError(f"--listen {address}: {getattr(error, 'strerror', error)}") from error
    return listener


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop
