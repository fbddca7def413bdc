"""The tasks that the leader is to place, which it is told of in pages (protocol §3.1).

None that is kept for a worker that may still return, and none to be settled or transferred where somebody
knows nothing of that.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from manager.core.tasks import homes, lost_workers, probation, settling
from protocol.messages.tasks import OfferedTask
from protocol.states import Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from manager.core.group import Group
    from manager.core.member import Member
    from manager.core.stored_rows import TaskRow

PAGE: Final = 1_000
"""Tasks that one answer has at most: making it holds up the requests of everybody else."""
LOOKED_AT: Final = 10 * PAGE
"""Names that are gone through for one: there may be many tasks of which few are to be placed."""


class Page(NamedTuple):
    """Some of them in the order of their names; `more` is the name after which there may be others."""

    tasks: tuple[OfferedTask, ...]
    more: str | msgspec.UnsetType


class Offers:
    """Which tasks of a group are to be placed as it is now."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._returned = lost_workers.returned(group)
        self._is_settled = settling.is_possible(group)
        self._are_homes_known = homes.are_known(group)

    def __contains__(self, task: object) -> bool:
        """Whether the task of that name is."""
        row = self._group.tasks.definitions.get(str(task))
        return row is not None and self._is_offered(row)

    def page(self, after: str) -> Page:
        """Those that come after that name, as many as one answer has."""
        names = self._group.tasks.names
        first = bisect_right(names, after)
        found: list[OfferedTask] = []
        for looked_at, name in enumerate(names[first : first + LOOKED_AT]):
            if len(found) == PAGE:
                return Page(tuple(found), names[first + looked_at - 1])
            found += self._offered([name])
        is_all = first + LOOKED_AT >= len(names)
        return Page(tuple(found), msgspec.UNSET if is_all else names[first + LOOKED_AT - 1])

    def all(self) -> Page:
        """For a leader that knows no pages."""
        return Page(tuple(self._offered(self._group.tasks.names)), msgspec.UNSET)

    def _offered(self, names: Sequence[str]) -> Iterator[OfferedTask]:
        definitions = self._group.tasks.definitions
        return (self._told(row) for name in names if self._is_offered(row := definitions[name]))

    def _is_offered(self, row: TaskRow) -> bool:
        registry = self._group.tasks
        if not registry.is_runnable(row.task) or (row.target is Target.STOPPED and not self._is_settled):
            return False
        if not self._are_homes_known and homes.has_home(self._group, row.task):
            return False
        if self._group.transfers.is_packed(row.task):
            return False
        lost_by = registry.ownership_of(self._group.name, row.task).lost_by
        return lost_by is None or lost_by in self._returned

    def _told(self, row: TaskRow) -> OfferedTask:
        group = self._group
        lost_by = group.tasks.ownership_of(group.name, row.task).lost_by
        return OfferedTask(
            task=row.task,
            weight=row.weight,
            worker=row.worker,
            labels=row.labels,
            load=_load(group, row.task),
            returns_to=msgspec.UNSET if lost_by is None else self._returned[lost_by],
            suspect=probation.is_suspect(group, row.task) or msgspec.UNSET,
            needs=row.needs or msgspec.UNSET,
            exclusive=row.exclusive or row.task == group.tasks.heap.apart or msgspec.UNSET,
            lag=_lag(group, row.task),
        )


def first(group: Group, leader: Member) -> Page:
    """The first page, or all for a leader that knows no pages."""
    metadata = leader.worker_metadata()
    offers = Offers(group)
    knows_pages = metadata is not None and metadata.offer_pages
    return _noted(group, offers.page("") if knows_pages else offers.all())


def following(group: Group, after: str) -> Page:
    """The page after that name."""
    return _noted(group, Offers(group).page(after))


def _noted(group: Group, page: Page) -> Page:
    """What the leader is told of, it may place."""
    group.tasks.offered.update(each.task for each in page.tasks)
    return page


def _load(group: Group, task: str) -> float | None:
    """How much work it is by the last worker that has measured it, None while none has."""
    progress = group.tasks.progress.get(task)
    return None if progress is None else progress.load


def _lag(group: Group, task: str) -> int | msgspec.UnsetType:
    """How many rows it is behind by the last word, however old that is."""
    progress = group.tasks.progress.get(task)
    rows = None if progress is None or progress.lag is None else progress.lag.rows
    return msgspec.UNSET if rows is None else rows
