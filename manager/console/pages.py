"""The pages of the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from manager.core.commands import DescribeGroup, ListTasks
from manager.http.endpoints import Endpoint
from manager.http.replying import refusal
from protocol.errors import Failure
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.cluster.directory import Directory
    from manager.http.endpoints import CallHandler, Plain
    from manager.runtime.runtime import Runtime

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Nothing but the page itself: no scripts, no frames, no requests elsewhere."""

UNHEALTHY = ("FAILED", "UNASSIGNED", "RESTARTING")
"""States of a task that a person should look at, worst first."""


class Console:
    """GET / and GET /groups/{group}."""

    def __init__(self, runtime: Runtime, directory: Directory) -> None:
        self._runtime = runtime
        self._directory = directory
        self._templates = Environment(
            loader=PackageLoader("manager.console"), autoescape=True, undefined=StrictUndefined
        )

    def endpoints(self) -> list[Endpoint]:
        """The pages."""
        return [
            _page_at("/", "showOverview", "Every group in one line", self.overview),
            _page_at("/groups/{group}", "showGroup", "A group, what is wrong first", self.group),
        ]

    async def overview(self, _: Plain) -> web.Response:
        """Every group in one line."""
        return self._page("overview.html", groups=await self._directory.groups())

    async def group(self, call: Plain) -> web.Response:
        """One group: its members, and who runs what; what is wrong comes first."""
        described = await self._runtime.ask(call.group, DescribeGroup())
        listed = await self._runtime.ask(call.group, ListTasks())
        for outcome in (described, listed):
            if isinstance(outcome, Failure):
                return refusal(outcome)
        tasks = msgspec.to_builtins(listed, builtin_types=(msgspec.Raw,))["tasks"]
        return self._page("group.html", group=described, tasks=sorted(tasks, key=_worst_first))

    def _page(self, template: str, **values: Any) -> web.Response:
        html = self._templates.get_template(template).render(**values)
        return web.Response(text=html, content_type="text/html", headers=HEADERS)


def _page_at(path: str, operation: str, summary: str, handler: CallHandler) -> Endpoint:
    return Endpoint(
        "GET", path, operation, summary, handler, role=Role.VIEWER, response=None, media=("text/html",)
    )


def _worst_first(task: dict[str, Any]) -> tuple[int, str]:
    state = task["state"]
    return (UNHEALTHY.index(state) if state in UNHEALTHY else len(UNHEALTHY), task["task"])
