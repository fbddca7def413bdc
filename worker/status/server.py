"""Serving the worker's own endpoint while the worker works."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from aiohttp import web

from worker.status.address import listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.status.handlers import StatusHandlers

SHUTDOWN_S = 1.0


@asynccontextmanager
async def serving(address: str | None, handlers: StatusHandlers) -> AsyncIterator[str | None]:
    """Serve at `HOST:PORT` and yield the URL; None serves nothing.

    Raises:
        StartupError: the address is none it may have, or cannot be had.
    """
    if address is None:
        yield None
        return
    listener = listen(address)
    runner = web.AppRunner(handlers.app(), access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield f"http://{address.rsplit(':', 1)[0]}:{listener.getsockname()[1]}"
    finally:
        await runner.cleanup()
        listener.close()
