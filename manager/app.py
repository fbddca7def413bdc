"""The application: every endpoint of the manager."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiohttp import HttpVersion11, web

from manager.access.access import open_to_all
from manager.cluster.directory import OneManager
from manager.console.site import Console
from manager.http.audit_log import Audit
from manager.http.authorization import Authorization
from manager.http.endpoints.audit import AuditHandlers, NothingKept
from manager.http.endpoints.cluster import ClusterHandlers
from manager.http.endpoints.events import EventHandlers
from manager.http.endpoints.groups import GroupHandlers
from manager.http.endpoints.health import HealthHandlers
from manager.http.endpoints.login import Login
from manager.http.endpoints.members import MemberHandlers
from manager.http.endpoints.metrics import MetricsHandlers
from manager.http.endpoints.task_lists import TaskListHandlers
from manager.http.endpoints.tasks import TaskHandlers
from manager.http.forwarding import Forwarding
from manager.http.front.express import Express
from manager.http.front.reading import is_announced_too_large
from manager.http.front.server import EXPRESS
from manager.http.openapi.description import OpenApiHandlers

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from manager.access.access import Access
    from manager.access.rates import Rates
    from manager.background.audit_writer import AuditWriter
    from manager.cluster.directory import Directory
    from manager.http.endpoint import Endpoint
    from manager.http.endpoints.audit import AuditReader
    from manager.runtime.runtime import Runtime
    from protocol.messages.groups import Coordinator


def make_app(
    runtime: Runtime,
    this_manager: Coordinator,
    max_request_bytes: int,
    directory: Directory | None = None,
    *,
    access: Access | None = None,
    rates: Rates | None = None,
    tls: ssl.SSLContext | None = None,
    hsts_max_age_s: int | None = None,
    audit_writer: AuditWriter | None = None,
) -> web.Application:
    """Put the handlers together; `manager.http.front.server` serves them.

    Args:
        runtime: where requests go.
        this_manager: what is told to whoever looks for a group's coordinator, and who forwards requests.
        directory: who has which group; without it, this manager has them all.
        max_request_bytes: larger bodies are refused, unread if they say so themselves.
        access: who may ask for what; without it, everybody for everything.
        rates: how often one client may ask; without it, as often as it likes.
        tls: how other managers' certificates are checked.
        audit_writer: where what admins do is written down; without it, in the log only.
        hsts_max_age_s: how long browsers are to ask by https only; None where that is not spoken.
    """
    access = access or open_to_all()
    app = web.Application(client_max_size=max_request_bytes)
    app[EXPRESS] = Express(runtime, max_request_bytes, access)
    directory = directory or OneManager(runtime, this_manager)
    forwarding = Forwarding(directory, this_manager, tls)
    authorization = Authorization(
        access, rates, Audit(None if audit_writer is None else audit_writer.put, this_manager.id)
    )
    app.cleanup_ctx.append(forwarding.session)
    if hsts_max_age_s is not None:
        app.on_response_prepare.append(_strict_transport(hsts_max_age_s))
    for endpoint in endpoints_of(runtime, directory, audit_writer):
        handler = forwarding.wrap(endpoint.serve) if endpoint.is_forwarded else endpoint.serve
        guarded = authorization.wrap(endpoint, handler)
        route = web.RouteDef(endpoint.method, _pattern(endpoint.path), guarded, {"expect_handler": _go_on})
        app.add_routes([route])
    app.add_routes(Login(access, rates).routes())
    return app


def endpoints_of(runtime: Runtime, directory: Directory, audit: AuditReader | None = None) -> list[Endpoint]:
    """Everything that a manager can be asked: the API, and the pages for people."""
    api = api_of(runtime, directory, audit)
    return [*api, *OpenApiHandlers(api).endpoints(), *Console(runtime, directory, api).endpoints()]


def api_of(runtime: Runtime, directory: Directory, audit: AuditReader | None = None) -> list[Endpoint]:
    """What programs ask, but for its description; `audit` is what admins did, nothing without it.

    What is asked most often comes first: aiohttp tries one path after the other.
    """
    return [
        *MemberHandlers(runtime).endpoints(),
        *TaskListHandlers(runtime).endpoints(),
        *TaskHandlers(runtime).endpoints(),
        *ClusterHandlers(directory).endpoints(),
        *EventHandlers(runtime.feed).endpoints(),
        *GroupHandlers(runtime).endpoints(),
        *AuditHandlers(audit or NothingKept()).endpoints(),
        *HealthHandlers(runtime).endpoints(),
        *MetricsHandlers(runtime.meter.instruments).endpoints(),
    ]


def _pattern(path: str) -> str:
    """`path` for aiohttp: a name is what stands there; an empty group id is an illegal one."""
    return re.sub(r"{(\w+)}", lambda name: f"{{{name[1]}:[^/]{'*' if name[1] == 'group' else '+'}}}", path)


def _strict_transport(max_age_s: int) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Browsers that have been here once let nobody lead them to the same name without TLS (RFC 6797)."""
    value = f"max-age={max_age_s}"

    async def add(_: web.Request, response: web.StreamResponse) -> None:
        response.headers["Strict-Transport-Security"] = value

    return add


async def _go_on(request: web.Request) -> None:
    """Tell a client that waits for it to send its body, unless it would be refused for its size."""
    waits = request.headers["Expect"].lower() == "100-continue" and request.version >= HttpVersion11
    if waits and not is_announced_too_large(request):
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # the answer itself has not begun
