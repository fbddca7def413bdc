"""The workers of all groups: how much each has to do, and whether it is still heard of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from manager.console.page import Page, PageRequest
from manager.console.pages.links import group_path, with_query
from manager.console.pages.members import KnownMember, MemberLine, known_members, member_line
from manager.console.paging import ListPage, list_page
from manager.core.commands import CountTasks, DescribeGroup, TaskCounts
from protocol.errors import RefusedError
from protocol.messages.groups import DescribeGroupResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from manager.console.page_data import PageData
    from manager.core.views.group_status import GroupStatus

WORKERS_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class KnownWorker:
    """A worker and the name of its group, before it is shown."""

    group: str
    member: KnownMember

    @property
    def trouble(self) -> tuple[bool, bool, str, str]:
        """What it is sorted by: those with trouble first."""
        silent, failed, name = self.member.trouble
        return silent, failed, self.group, name

    def has(self, part: str) -> bool:
        """Whether its name, its group or its host does, `part` being in small letters."""
        return part in f"{self.member.label.name} {self.group} {self.member.told.host}".lower()


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
    known_here = [each for status in here for each in await _workers(page_data, status.group, now_ms)]
    newest = await page_data.latest_events(limit=1)
    view = workers_page(known_here, [status for status in statuses if status not in here], request, now_ms)
    return Page("workers.html", "Workers", "workers", view, newest[0].id if newest else 0)


async def _workers(page_data: PageData, group: str, now_ms: int) -> Sequence[KnownWorker]:
    """Those of one group; none if it has gone meanwhile."""
    try:
        described = await page_data.ask(group, DescribeGroup(), DescribeGroupResponse)
        counts = await page_data.ask(group, CountTasks(), TaskCounts)
    except RefusedError:
        return ()
    return [KnownWorker(group, member) for member in known_members(described, counts, now_ms)]


def workers_page(
    known: Sequence[KnownWorker], elsewhere: Iterable[GroupStatus], request: PageRequest, now_ms: int
) -> WorkersPage:
    """What the page shows of the workers there are."""
    wanted = request.query.get("q", "").strip()
    found = sorted(
        (worker for worker in known if worker.has(wanted.lower())), key=lambda worker: worker.trouble
    )
    return WorkersPage(
        now_ms=now_ms,
        workers=list_page(found, request.query.get("page"), WORKERS_SHOWN).shown(_line),
        wanted=wanted,
        elsewhere=tuple(Elsewhere(t.group, group_path(t.group), t.workers) for t in elsewhere),
        page_path=with_query("/workers", q=wanted),
    )


def _line(worker: KnownWorker) -> WorkerLine:
    return WorkerLine(worker.group, group_path(worker.group), member_line(worker.member))
