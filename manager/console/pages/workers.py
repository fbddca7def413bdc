"""The workers of all groups: how much each has to do, and whether it is still heard of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.page import Page, PageRequest
from manager.console.pages.links import group_path, with_query
from manager.console.pages.members import MemberLine, member_lines
from manager.console.paging import ListPage, list_page
from manager.core.commands import DescribeGroup, ListTasks
from protocol.errors import RefusedError
from protocol.messages.groups import DescribeGroupResponse
from protocol.messages.tasks import TaskListResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from manager.console.page_data import PageData
    from manager.core.views.group_status import GroupStatus

WORKERS_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A worker and its group."""

    group: str
    path: str
    member: MemberLine


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A group with workers that another manager has."""

    group: str
    path: str
    workers: int


@dataclass(frozen=True, slots=True)
class WorkersPage:
    """What the page shows."""

    now_ms: int
    workers: ListPage[WorkerLine]
    wanted: str
    elsewhere: tuple[Elsewhere, ...]
    page_path: str


async def workers(page_data: PageData, request: PageRequest) -> Page:
    """The page at `/workers`."""
    known = [status for status in await page_data.group_statuses() if request.caller.covers(status.group)]
    statuses = [status for status in known if status.workers]
    here = [status for status in statuses if page_data.is_here(status.group)]
    now_ms = page_data.now_ms()
    lines = [line for each in here for line in await _lines(page_data, each.group, now_ms)]
    newest = await page_data.latest_events(limit=1)
    view = workers_page(lines, [status for status in statuses if status not in here], request, now_ms)
    return Page("workers.html", "Workers", "workers", view, newest[0].id if newest else 0)


async def _lines(page_data: PageData, group: str, now_ms: int) -> Sequence[WorkerLine]:
    """Those of one group; none if it has gone meanwhile."""
    try:
        described = await page_data.ask(group, DescribeGroup(), DescribeGroupResponse)
        tasks = await page_data.ask(group, ListTasks(), TaskListResponse)
    except RefusedError:
        return ()
    return [
        WorkerLine(group, group_path(group), line) for line in member_lines(described, tasks.tasks, now_ms)
    ]


def workers_page(
    lines: Sequence[WorkerLine], elsewhere: Iterable[GroupStatus], request: PageRequest, now_ms: int
) -> WorkersPage:
    """What the page shows of the workers there are."""
    wanted = request.query.get("q", "").strip()
    looked_for = wanted.lower()
    named = [
        line for line in lines if looked_for in f"{line.member.name} {line.group} {line.member.host}".lower()
    ]
    return WorkersPage(
        now_ms=now_ms,
        workers=list_page(sorted(named, key=_worst_first), request.query.get("page"), WORKERS_SHOWN),
        wanted=wanted,
        elsewhere=tuple(Elsewhere(t.group, group_path(t.group), t.workers) for t in elsewhere),
        page_path=with_query("/workers", q=wanted),
    )


def _worst_first(line: WorkerLine) -> tuple[bool, bool, str, str]:
    member = line.member
    return (not member.silent, not member.failed, line.group, member.name)
