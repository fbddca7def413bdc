"""What is told of the rows that a task puts aside: how many, what for, and how often (docs/events.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from protocol.task_metrics import figure, figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

EVERY_MS: Final = 60_000
"""The shortest time between two events of one task."""


class AsideNews(NamedTuple):
    """How many rows were put aside since that was told last, and how many of them for each reason."""

    rows: int
    reasons: dict[str, int]


class AsideWatch:
    """Follows what reports say that a task has put aside; how much of it was told already.

    A worker counts since it has the task, so a new owner begins at 0. Where a manager finds a task with an
    owner, nobody knows how much of the first count it hears was told by the manager before: none of that is
    told, for all managers that take a group over would tell it again.
    """

    __slots__ = ("_batch", "_count", "_reasons", "_told_at", "_untold", "_untold_reasons")

    def __init__(self) -> None:
        self._count: int | None = None
        self._reasons: Mapping[str, float] = {}
        self._batch = -1
        self._untold = 0
        self._untold_reasons: dict[str, int] = {}
        self._told_at: int | None = None

    def begin(self) -> None:
        """The task has a new owner, which counts from 0."""
        self._count, self._reasons, self._batch = 0, {}, -1

    def take_in(
        self, batch_id: int | None, metrics: Mapping[str, Any] | None, reasons: Callable[[], Iterable[str]]
    ) -> None:
        """Take in what a report says.

        A count that has fallen begins anew, unless the report is an older one that comes late.

        Args:
            batch_id: the last batch that was finished, if one was.
            metrics: as the worker tells them, and so perhaps anything; an old one tells nothing of this.
            reasons: gives those that are told of; asked only if there is anything to tell.
        """
        told = figure(metrics, "quarantined")
        if told is None:
            return
        count, batch = int(told), -1 if batch_id is None else batch_id
        if self._count is not None and count < self._count:
            if batch < self._batch:
                return
            self.begin()
        before, reasons_before = self._count, self._reasons
        self._count, self._reasons, self._batch = count, figures(metrics, "left_out"), batch
        if before is not None and count > before:
            self._untold += count - before
            self._add(reasons(), reasons_before)

    def _add(self, reasons: Iterable[str], before: Mapping[str, float]) -> None:
        for reason in reasons:
            gained = int(self._reasons.get(reason, 0) - before.get(reason, 0))
            if gained > 0:
                self._untold_reasons[reason] = self._untold_reasons.get(reason, 0) + gained

    def due_at(self, now: int) -> int | None:
        """When there is something to tell; None if there is nothing.

        Args:
            now: the present moment, in milliseconds of the monotonic clock, as is the answer.
        """
        if not self._untold:
            return None
        return now if self._told_at is None else max(self._told_at + EVERY_MS, now)

    def tell(self, now: int) -> AsideNews:
        """What there is to tell, and is told now."""
        news = AsideNews(self._untold, self._untold_reasons)
        self._untold, self._untold_reasons, self._told_at = 0, {}, now
        return news
