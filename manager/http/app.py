"""The application: every route of the manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from manager.console.pages import Console
from manager.http import members
from manager.http.groups import GroupHandlers
from manager.http.health import HealthHandlers
from manager.http.tasks import TaskHandlers

if TYPE_CHECKING:
    from manager.runtime.runtime import Runtime
    from protocol.messages.groups import Coordinator


def make_app(runtime: Runtime, this_manager: Coordinator, max_request_bytes: int) -> web.Application:
    """Put the handlers together; `manager.http.server` serves them.

    Args:
        runtime: where requests go.
        this_manager: what is told to whoever looks for a group's coordinator.
        max_request_bytes: larger bodies are refused, unread if they say so themselves.
    """
    app = web.Application(client_max_size=max_request_bytes)
    app.add_routes(members.routes(runtime))
    app.add_routes(GroupHandlers(runtime, this_manager).routes())
    app.add_routes(TaskHandlers(runtime).routes())
    app.add_routes(Console(runtime).routes())
    app.add_routes(HealthHandlers(runtime).routes())
    return app
