"""The pages of the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from manager.core.commands import DescribeGroup, ListTasks
from manager.http.reading import group_of
from manager.http.replying import refusal
from protocol.errors import Failure

if TYPE_CHECKING:
    from manager.cluster.directory import Directory
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

    def routes(self) -> list[web.RouteDef]:
        """The pages."""
        return [web.get("/", self.overview), web.get("/groups/{group}", self.group)]

    async def overview(self, _: web.Request) -> web.Response:
        """Every group in one line."""
        return self._page("overview.html", groups=await self._directory.groups())

    async def group(self, request: web.Request) -> web.Response:
        """One group: its members, and who runs what; what is wrong comes first."""
        name = group_of(request)
        described = await self._runtime.ask(name, DescribeGroup())
        listed = await self._runtime.ask(name, ListTasks())
        for outcome in (described, listed):
            if isinstance(outcome, Failure):
                return refusal(outcome)
        tasks = msgspec.to_builtins(listed, builtin_types=(msgspec.Raw,))["tasks"]
        return self._page("group.html", group=described, tasks=sorted(tasks, key=_worst_first))

    def _page(self, template: str, **values: Any) -> web.Response:
        html = self._templates.get_template(template).render(**values)
        return web.Response(text=html, content_type="text/html", headers=HEADERS)


def _worst_first(task: dict[str, Any]) -> tuple[int, str]:
    state = task["state"]
    return (UNHEALTHY.index(state) if state in UNHEALTHY else len(UNHEALTHY), task["task"])
