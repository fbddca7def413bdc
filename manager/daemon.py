"""The manager as a process: start, serve, stop in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import socket
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from configuration.listener import listen
from manager.access.authorizer import Authorizer
from manager.access.exposure import Exposure
from manager.access.rates import Rates
from manager.app import make_app
from manager.background.audit_writer import AuditWriter
from manager.background.supervision import once, tell_unhandled
from manager.background.token_refresh import TokenRefresh
from manager.cluster.node import Node, open_node
from manager.http.front.limits import Limits
from manager.http.front.server import Runner
from manager.outbox.outbox import Outbox
from manager.runtime.full_collections import short_full_collections
from manager.runtime.transfer_driver import TransferDriver
from manager.storage.base import StorageError
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.sql_storage import SqlStorage
from manager.tls import certificate_of, trust_in_managers
from manager.watch.figures import own_figures
from manager.watch.herd_watcher import HerdWatcher
from protocol.errors import StartupError
from protocol.messages.groups import Coordinator

if TYPE_CHECKING:
    from collections.abc import Callable

    from manager.background.herd_alarms import HerdAlarms
    from manager.outbox.receivers.service import AlarmReceivers
    from manager.settings import ManagerSettings
    from manager.tls import Certificate

log = structlog.get_logger(__name__)

BURST_S = 5
"""A client that was silent may have the requests of so many seconds at once."""
FAILED = 1
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - recognised, not bound


async def run(settings: ManagerSettings, started: Callable[[str], None]) -> int:
    """Serve until SIGTERM or SIGINT.

    Args:
        settings: what to serve, and where.
        started: called once with the URL when requests are served.

    Returns:
        The exit code.

    Raises:
        StartupError: it cannot start, or another process has its id by now; one line that names the setting
            to change.
    """
    asyncio.get_running_loop().set_exception_handler(tell_unhandled)
    stop = _stop_on_signals()
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(short_full_collections())
        listener = listen("--listen", settings.listen)
        stack.callback(listener.close)
        address, port = listener.getsockname()[:2]
        certificate, trust = certificate_of(settings), trust_in_managers(settings)
        exposure = Exposure(settings.listen, address, allowed=settings.allow_insecure)
        exposure.require_tls(has_tls=certificate is not None)
        url = f"{'http' if certificate is None else 'https'}://{settings.listen.rsplit(':', 1)[0]}:{port}"
        me = identify(settings, url)
        access = Authorizer(
            _now_ms,
            open_without_tokens=exposure.is_harmless,
            members_show_certificates=settings.tls_client_ca is not None,
        )
        node, token_refresh = await _start(settings, me, access, exposure)
        audit_writer = AuditWriter(
            node.audit, settings.audit_retention_ms, settings.audit_retention_count, _now_ms
        )
        await stack.enter_async_context(audit_writer)
        outbox = Outbox(node.runtime.feed, node.events, settings, node.routing, node.runtime.meter)
        app = make_app(
            node.runtime,
            Coordinator(me.id, me.url),
            settings.max_request_bytes,
            node.directory,
            access=access,
            rates=Rates(settings.client_rate, BURST_S * settings.client_rate),
            tls=trust,
            audit_writer=audit_writer,
            alarms=node.alarms,
            receivers=outbox.receivers,
            hsts_max_age_s=None if certificate is None else settings.hsts_max_age_s,
        )
        runner = Runner(app, _limits(settings))
        stack.push_async_callback(runner.cleanup)
        stack.push_async_callback(node.leave)
        await stack.enter_async_context(outbox)
        driver = TransferDriver(node.runtime, node.routing, node.transfers)
        await stack.enter_async_context(driver)
        await stack.enter_async_context(token_refresh)
        await stack.enter_async_context(node.alarms)
        await stack.enter_async_context(_watcher(node, me, outbox))
        await runner.setup()
        context = None if certificate is None else certificate.context
        await web.SockSite(runner, listener, ssl_context=context).start()
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGHUP, _reload, certificate, outbox.receivers, node.alarms
        )
        _tell_missing(outbox.receivers, node.alarms)
        gc.freeze()  # what was imported stays: looking through it again and again stops everything
        log.info("manager serves", url=url, manager=me.id, advertised=me.url)
        started(url)
        broken = once("waiting for bugs", node.runtime.broken.wait)
        stack.callback(broken.cancel)
        ends: set[asyncio.Future[Any]] = {stop, broken, node.controller.deposed}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        log.info("manager stops")
        if node.controller.deposed.done():
            raise node.controller.deposed.result()
        return FAILED if node.runtime.broken.is_set() else 0


async def _start(
    settings: ManagerSettings, me: ManagerIdentity, access: Authorizer, exposure: Exposure
) -> tuple[Node, TokenRefresh]:
    """A manager that has taken up what there is for it, if it may be reached by those who reach it."""
    storage = SqlStorage(settings.database)
    try:
        node = await open_node(settings, storage, me)
        token_refresh = TokenRefresh(node.tokens, access)
        await token_refresh.read()
        exposure.require_tokens(has_tokens=access.has_tokens)
        await node.controller.start()
    except StorageError as error:
        await storage.close()
        raise StartupError(f"--database: {error}") from error
    except StartupError:
        await storage.close()
        raise
    return node, token_refresh


def _watcher(node: Node, me: ManagerIdentity, outbox: Outbox) -> HerdWatcher:
    return HerdWatcher(
        me,
        node.herd,
        node.alarms,
        node.routing,
        outbox.receivers,
        figures=partial(own_figures, node.tally, node.runtime.meter.loop_lag.worst),
        wake=node.runtime.feed.wake,
        is_alone=node.lock is not None,
        firing=node.runtime.meter.herd_alarms_fire,
    )


def identify(settings: ManagerSettings, url: str) -> ManagerIdentity:
    """Who this manager is to others: by default, where it listens. Its incarnation is the process.

    Args:
        settings: what was said about it.
        url: where it listens; one that listens everywhere goes by the machine's name.
    """
    parts = urlsplit(url)
    reachable = (
        f"{parts.scheme}://{socket.gethostname()}:{parts.port}" if parts.hostname in EVERYWHERE else url
    )
    advertised = (settings.advertise or reachable).rstrip("/")
    return ManagerIdentity(settings.manager_id or urlsplit(advertised).netloc, uuid.uuid4().hex, advertised)


def _limits(settings: ManagerSettings) -> Limits:
    return Limits(
        request_s=settings.request_timeout_ms / 1000,
        answer_s=settings.answer_timeout_ms / 1000,
        idle_s=settings.idle_timeout_ms / 1000,
        connections=settings.client_connections,
    )


def _reload(certificate: Certificate | None, receivers: AlarmReceivers, alarms: HerdAlarms) -> None:
    """SIGHUP: files may have something new; one that is of no use leaves the old in place."""

    async def read_receivers() -> None:
        await receivers.reload()
        _tell_missing(receivers, alarms)

    once("reading alarm receivers again", read_receivers)
    if certificate is None:
        return
    try:
        certificate.reload()
        log.info("certificate read again")
    except StartupError as error:
        log.warning("certificate cannot be read again; the old one stays", why=str(error))


def _tell_missing(receivers: AlarmReceivers, alarms: HerdAlarms) -> None:
    """Rules are checked when they are put; a file may lose one later, and nobody hears of its alarms."""
    if missing := sorted(alarms.receivers_named.difference(receivers.names)):
        log.error("rules of alarms tell receivers that are not in the file", receivers=", ".join(missing))


def _now_ms() -> int:
    return int(time.time() * 1000)


def _stop_on_signals() -> asyncio.Future[None]:
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()

    def asked() -> None:
        if not stop.done():
            stop.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked)
    return stop
