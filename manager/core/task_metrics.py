"""A task's figures over the last hour, a slot every ten seconds, from what its reports happen to carry."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from protocol.messages.base import MAX_INT
from protocol.messages.history import FiguresPoint
from protocol.task_metrics import figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

INTERVAL_MS: Final = 10_000
SLOTS: Final = 360


class TaskMetrics:
    """A ring of slots, grown as it fills; taking a report in is O(1).

    Workers count the rows of a query from its start, so a total that falls is that of another query.
    """

    __slots__ = ("_batch", "_batch_ms", "_batches", "_lag", "_newest", "_rows", "_slots", "_total")

    def __init__(self) -> None:
        self._slots = array("q")
        self._rows = array("d")
        self._batches = array("q")
        self._batch_ms = array("d")
        self._lag = array("q")
        self._newest = -1
        self._total: float | None = None
        self._batch: int | None = None

    def record(self, at_ms: int, batch_id: int | None, metrics: Mapping[str, Any] | None) -> None:
        """Take in what a report says.

        Args:
            at_ms: when it came, in milliseconds since 1970.
            batch_id: the last batch that was finished, if one was.
            metrics: as the worker tells them, and so perhaps anything; None before the first batch.
        """
        rows = self._rows_gained(metrics)
        batches = self._batches_gained(batch_id)
        if not rows and not batches:
            return
        place = self._place_of(at_ms // INTERVAL_MS)
        self._rows[place] += rows
        self._batches[place] = min(self._batches[place] + batches, MAX_INT)
        if batches and (batch_ms := figure(metrics, "batch_ms")) is not None:
            self._batch_ms[place] = max(self._batch_ms[place], batch_ms)

    def note_lag(self, at_ms: int, rows: int | None) -> None:
        """How far the task is behind, in rows; the latest word in a slot stays."""
        if rows is not None:
            self._lag[self._place_of(at_ms // INTERVAL_MS)] = rows

    def points(self, now_ms: int) -> Iterator[FiguresPoint]:
        """The slots of the hour that ends at `now_ms`, oldest first; one without a batch is left out."""
        oldest = now_ms // INTERVAL_MS - SLOTS
        length = len(self._slots)
        for place in ((self._newest + 1 + step) % length for step in range(length)):
            if self._slots[place] > oldest:
                yield self._point(place)

    def _point(self, place: int) -> FiguresPoint:
        took, lag = self._batch_ms[place], self._lag[place]
        return FiguresPoint(
            at_ms=self._slots[place] * INTERVAL_MS,
            rows=self._rows[place],
            batches=self._batches[place],
            batch_ms=took if took >= 0 else None,
            lag=lag if lag >= 0 else None,
        )

    def _rows_gained(self, metrics: Mapping[str, Any] | None) -> float:
        total = figure(metrics, "total_rows") if metrics is not None else 0.0
        if total is None:
            return 0.0
        before, self._total = self._total, total
        if before is None:
            return 0.0  # how much of it is from before the manager looked, nobody knows
        return total - before if total >= before else total

    def _batches_gained(self, batch_id: int | None) -> int:
        if batch_id is None:
            return 0
        before, self._batch = self._batch, batch_id
        if before is None or batch_id == before:
            return 0
        return batch_id - before if batch_id > before else 1

    def _place_of(self, slot: int) -> int:
        """Where `slot` is; a clock that was set back goes on in the newest one."""
        if self._slots and slot <= self._slots[self._newest]:
            return self._newest
        if len(self._slots) < SLOTS:
            for column in (self._slots, self._batches):
                column.append(0)
            self._rows.append(0.0)
            self._batch_ms.append(-1.0)
            self._lag.append(-1)
        self._newest = (self._newest + 1) % len(self._slots)
        self._slots[self._newest], self._batches[self._newest] = slot, 0
        self._rows[self._newest], self._batch_ms[self._newest], self._lag[self._newest] = 0.0, -1.0, -1
        return self._newest
