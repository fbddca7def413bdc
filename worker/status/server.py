"""Serving the worker's own endpoint: it asks nobody who they are, so on this machine only."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

from aiohttp import web

from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from worker.status.handlers import StatusHandlers


MAX_PORT = 65_535


def listen(address: str) -> socket.socket:
    """A bound socket for `HOST:PORT`; port 0 takes a free one.

    Raises:
        StartupError: it is not a loopback address, or cannot be had.
    """
    host, port = address.rsplit(":", 1)
    try:
        found = socket.getaddrinfo(host.strip("[]"), _port(port), type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
        _require_loopback(address, str(place[0]))
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise StartupError(f"--status-listen {address}: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except (OSError, OverflowError) as error:
        listener.close()
        raise StartupError(f"--status-listen {address}: {getattr(error, 'strerror', error)}") from error
    return listener


def _port(text: str) -> int:
    """The resolver would take any number, and cut it to 16 bits."""
    if int(text) > MAX_PORT:
        raise OverflowError(f"a port is at most {MAX_PORT}")
    return int(text)


def _require_loopback(address: str, host: str) -> None:
    if not ip_address(host).is_loopback:
        raise StartupError(
            f"--status-listen {address}: nobody is asked who they are there, so it must be an address of this"
            " machine only, such as 127.0.0.1:PORT"
        )


def is_local(host: str | None) -> bool:
    """Whether a request's `Host` names this machine: a page of elsewhere may have its own name lead here."""
    name = (host or "").rsplit(":", 1)[0] if not (host or "").endswith("]") else (host or "")
    name = name.strip("[]")
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


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
