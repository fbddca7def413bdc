"""The console: pages made on the server, and the files they need."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web
from jinja2 import Environment, PackageLoader, StrictUndefined

from manager.console import formatting, state_labels
from manager.console.assets import KINDS, Assets
from manager.console.page import Page, PageRequest
from manager.console.page_data import PageData, others_first
from manager.console.pages import links
from manager.console.pages.add_task import add_task
from manager.console.pages.alarm_rules import alarm_rules
from manager.console.pages.alarms import alarms
from manager.console.pages.edit_task import edit_task
from manager.console.pages.events import events
from manager.console.pages.group import group
from manager.console.pages.overview import overview
from manager.console.pages.quarantine import ASKED_MS, quarantine
from manager.console.pages.task import task
from manager.console.pages.worker import worker
from manager.console.pages.workers import workers
from manager.http.authorization import caller_of
from manager.http.endpoint import Endpoint
from manager.http.front.replying import headers_of
from manager.runtime.replies import UNAVAILABLE
from manager.storage.base import StorageError
from protocol.errors import Failure, RefusedError
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manager.background.herd_alarms import HerdAlarms
    from manager.cluster.directory import Directory
    from manager.console.page import MakePage
    from manager.http.endpoint import CallHandler, Plain
    from manager.http.front.reading import HttpRequest
    from manager.runtime.coordinator_runtime import CoordinatorRuntime

GROUP: Final = "/groups/{group}"
TASK: Final = f"{GROUP}/tasks/{{task}}"
HTML: Final = ("text/html",)
MEDIA: Final = tuple(KINDS.values())
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Nothing from elsewhere, and nothing inline: neither script nor style."""

PAGES: Final[tuple[tuple[str, str, str, MakePage, Role], ...]] = (
    ("/", "showOverview", "Everything at a glance, what is wrong first", overview, Role.VIEWER),
    ("/workers", "showWorkers", "The workers of all groups", workers, Role.VIEWER),
    ("/alarms", "showAlarms", "What fires, silences and rules", alarms, Role.VIEWER),
    ("/alarms/rules", "showAlarmRules", "A form for the rules of alarms", alarm_rules, Role.ADMIN),
    ("/events", "showEvents", "What happened, the newest first", events, Role.VIEWER),
    ("/add-task", "showTaskForm", "A form for a new task", add_task, Role.ADMIN),
    (f"{TASK}/edit", "showTaskEditor", "A form for a task's definition", edit_task, Role.ADMIN),
    (
        f"{TASK}/quarantine",
        "showQuarantine",
        "Rows that a task has put aside, as its worker tells them",
        quarantine,
        Role.VIEWER,
    ),
    (TASK, "showTask", "A task: how it is doing, and where it ran", task, Role.VIEWER),
    (
        f"{GROUP}/workers/{{member_id}}",
        "showWorker",
        "A worker: what it takes, and which of its tasks costs what",
        worker,
        Role.VIEWER,
    ),
    (GROUP, "showGroup", "A group: who owns what, and how that came about", group, Role.VIEWER),
)
OF_THE_HERD: Final = frozenset({"showAlarmRules"})
"""Pages that have nothing for a token of some groups; the others leave out what it may not see."""
HELD_S: Final = {"showQuarantine": ASKED_MS / 1000}
"""Pages for which a worker is asked."""


class Console:
    """Every page of the console, and its files.

    Args:
        runtime: what pages ask.
        directory: who has which group.
        api: what buttons and forms ask for; who may not is not offered them.
        alarms: their rules and silences; pages of these are turned away without it.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        directory: Directory,
        api: Iterable[Endpoint],
        alarms: HerdAlarms | None = None,
    ) -> None:
        self._roles = {endpoint.operation: endpoint.roles for endpoint in api}
        self._page_data = PageData(runtime, directory, alarms)
        self._assets = Assets()
        self._templates = _environment(self._assets)

    def endpoints(self) -> list[Endpoint]:
        """GET of each page, and of the files."""
        pages = [
            Endpoint(
                "GET",
                path,
                name,
                summary,
                self._page(make),
                role=role,
                any_group=name not in OF_THE_HERD,
                response=None,
                media=HTML,
                held_s=HELD_S.get(name, 0.0),
            )
            for path, name, summary, make, role in PAGES
        ]
        summary = "What pages need beside themselves"
        files = Endpoint(
            "GET", "/assets/{name}", "getAsset", summary, self.asset, role=None, response=None, media=MEDIA
        )
        return [*pages, files]

    async def asset(self, call: Plain) -> web.Response:
        """A style sheet, a script, the icon."""
        return self._assets.answer(call.request.match_info["name"], call.request.query_string)

    def _page(self, make: MakePage) -> CallHandler:
        async def show(call: Plain) -> web.Response:
            page_request = self._page_request(call.request)
            try:
                page = await make(self._page_data, page_request)
                await others_first()
            except RefusedError as error:
                return self._trouble(error.failure, page_request)
            except StorageError:
                return self._trouble(UNAVAILABLE, page_request)
            return self._rendered(page, page_request)

        return show

    def _page_request(self, request: HttpRequest) -> PageRequest:
        named = request.match_info
        group, task = named.get("group", ""), named.get("task", "")
        member = named.get("member_id", "")
        return PageRequest(group, task, request.query, caller_of(request), self._roles, member)

    def _trouble(self, failure: Failure, page_request: PageRequest) -> web.Response:
        status = HTTPStatus(failure.code.status)
        response = self._rendered(Page("error.html", status.phrase, "", failure), page_request)
        response.set_status(status)
        response.headers.update(headers_of(failure))
        return response

    def _rendered(self, page: Page, page_request: PageRequest) -> web.Response:
        template = self._templates.get_template(page.template)
        html = template.render(
            page=page,
            view=page.view,
            stream=stream_for(page_request),
            now_ms=self._page_data.now_ms(),
            caller=page_request.caller,
            may=page_request.may,
        )
        return web.Response(text=html, content_type="text/html", headers=HEADERS)


def stream_for(page_request: PageRequest) -> str:
    """The stream of events that a page follows; none for who may not see all and looks at no one group."""
    if page_request.group:
        return links.with_query("/v1/events", group=page_request.group)
    return "" if page_request.caller.is_limited else "/v1/events"


def _environment(assets: Assets) -> Environment:
    made = Environment(
        loader=PackageLoader("manager.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "duration": formatting.duration,
        "figure": formatting.figure,
        "moment": formatting.moment,
        "iso": formatting.iso,
        "shortened": formatting.shortened,
    }
    made.globals |= {
        "asset": assets.address,
        "ago": formatting.ago,
        "counted": formatting.counted,
        "meaning": state_labels.MEANINGS,
        "links": links,
    }
    return made
