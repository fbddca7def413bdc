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
ROWS, BATCHES, BATCH_MS, LAG, WIDTH = 1, 2, 3, 4, 5
"""Places within a slot, of which the first figure is its number; -1 stands for what nobody knows."""


class TaskMetrics:
    """A ring of slots, grown as it fills; taking a report in is O(1).

    Workers count the rows of a query from its start, so a total that falls is that of another query. The
    slots are one array, of `WIDTH` figures each: a group may have a hundred thousand tasks.
    """

    __slots__ = ("_batch", "_newest", "_ring", "_total")

    def __init__(self) -> None:
        self._ring = array("d")
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
        ring, first = self._ring, self._place_of(at_ms // INTERVAL_MS)
        ring[first + ROWS] += rows
        ring[first + BATCHES] = min(ring[first + BATCHES] + batches, MAX_INT)
        if batches and (batch_ms := figure(metrics, "batch_ms")) is not None:
            ring[first + BATCH_MS] = max(ring[first + BATCH_MS], batch_ms)

    def note_lag(self, at_ms: int, rows: int | None) -> None:
        """How far the task is behind, in rows; the latest word in a slot stays."""
        if rows is not None:
            self._ring[self._place_of(at_ms // INTERVAL_MS) + LAG] = rows

    def points(self, now_ms: int) -> Iterator[FiguresPoint]:
        """The slots of the hour that ends at `now_ms`, oldest first; one without a batch is left out."""
        oldest = now_ms // INTERVAL_MS - SLOTS
        length = len(self._ring) // WIDTH
        for place in ((self._newest + 1 + step) % length for step in range(length)):
            if self._ring[place * WIDTH] > oldest:
                yield self._point(place * WIDTH)

    def _point(self, first: int) -> FiguresPoint:
        slot, rows, batches, took, lag = self._ring[first : first + WIDTH]
        return FiguresPoint(
            at_ms=int(slot) * INTERVAL_MS,
            rows=rows,
            batches=int(batches),
            batch_ms=took if took >= 0 else None,
            lag=int(lag) if lag >= 0 else None,
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
        """Where the figures of `slot` begin; a clock that was set back goes on in the newest one."""
        ring, newest = self._ring, self._newest * WIDTH
        if ring and slot <= ring[newest]:
            return newest
        empty = array("d", (slot, 0.0, 0.0, -1.0, -1.0))
        if len(ring) < SLOTS * WIDTH:
            ring.extend(empty)
        self._newest = (self._newest + 1) % (len(ring) // WIDTH)
        first = self._newest * WIDTH
        ring[first : first + WIDTH] = empty
        return first
