"""The workers of all groups: how much each has to do, and whether it is still heard of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.page import Asked, Page
from manager.console.pages.links import group_path, with_query
from manager.console.pages.members import MemberLine, member_lines
from manager.console.paging import Part, part_of
from manager.core.commands import DescribeGroup, ListTasks
from protocol.errors import RefusedError
from protocol.messages.groups import DescribeGroupResponse
from protocol.messages.tasks import TaskListResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from manager.console.sources import Sources
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
    workers: Part[WorkerLine]
    wanted: str
    elsewhere: tuple[Elsewhere, ...]
    page_path: str


async def workers(sources: Sources, asked: Asked) -> Page:
    """The page at `/workers`."""
    known = [status for status in await sources.group_statuses() if asked.caller.covers(status.group)]
    statuses = [status for status in known if status.workers]
    here = [status for status in statuses if sources.is_here(status.group)]
    now_ms = sources.now_ms()
    lines = [line for each in here for line in await _lines(sources, each.group, now_ms)]
    newest = await sources.latest_events(limit=1)
    view = workers_page(lines, [status for status in statuses if status not in here], asked, now_ms)
    return Page("workers.html", "Workers", "workers", view, newest[0].id if newest else 0)


async def _lines(sources: Sources, group: str, now_ms: int) -> Sequence[WorkerLine]:
    """Those of one group; none if it has gone meanwhile."""
    try:
        described = await sources.ask(group, DescribeGroup(), DescribeGroupResponse)
        tasks = await sources.ask(group, ListTasks(), TaskListResponse)
    except RefusedError:
        return ()
    return [
        WorkerLine(group, group_path(group), line) for line in member_lines(described, tasks.tasks, now_ms)
    ]


def workers_page(
    lines: Sequence[WorkerLine], elsewhere: Iterable[GroupStatus], asked: Asked, now_ms: int
) -> WorkersPage:
    """What the page shows of the workers there are."""
    wanted = asked.query.get("q", "").strip()
    looked_for = wanted.lower()
    named = [
        line for line in lines if looked_for in f"{line.member.name} {line.group} {line.member.host}".lower()
    ]
    return WorkersPage(
        now_ms=now_ms,
        workers=part_of(sorted(named, key=_worst_first), asked.query.get("page"), WORKERS_SHOWN),
        wanted=wanted,
        elsewhere=tuple(Elsewhere(t.group, group_path(t.group), t.workers) for t in elsewhere),
        page_path=with_query("/workers", q=wanted),
    )


def _worst_first(line: WorkerLine) -> tuple[bool, bool, str, str]:
    member = line.member
    return (not member.silent, not member.failed, line.group, member.name)
