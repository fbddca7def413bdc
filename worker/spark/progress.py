"""What Spark tells of a finished batch, as the few figures that a worker reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker.query_engine import Progress, Totals
from worker.spark.lag import lag_of

if TYPE_CHECKING:
    from collections.abc import Mapping


class Tally:
    """Follows one query's batches; `last` is the latest, None before the first."""

    def __init__(self) -> None:
        self.last: Progress | None = None
        self._totals = Totals()

    @property
    def batch_id(self) -> int:
        """The latest batch seen, -1 before the first."""
        return -1 if self.last is None or self.last.batch_id is None else self.last.batch_id

    def observe(self, told: Mapping[str, Any], sink_rows: int | None = None) -> None:
        """Take in one of Spark's progress records; one that is not news, or of no batch, changes nothing.

        Args:
            told: the record as a dict, as `StreamingQueryProgress.json` has it.
            sink_rows: how many rows of the task its fenced sink holds by now, under any owner.
        """
        if told["batchId"] <= self.batch_id or _is_idle(told):
            return
        batch_ms = told.get("batchDuration", 0)
        self._totals += Totals(1, told["numInputRows"], batch_ms)
        metrics: dict[str, Any] = {
            "rows": told["numInputRows"],
            "total_rows": self._totals.rows,
            "rows_per_second": round(told.get("processedRowsPerSecond") or 0.0, 1),
            "batch_ms": batch_ms,
            "at": told["timestamp"],
        }
        if sink_rows is not None:
            metrics["sink_rows"] = sink_rows
        if lag := lag_of(told.get("sources", ())):
            metrics["lag"] = lag
        self.last = Progress(told["batchId"], metrics, self._totals)


def _is_idle(told: Mapping[str, Any]) -> bool:
    """Whether nothing was there to do: Spark tells that every ten seconds, with the id of a batch to come."""
    durations = told.get("durationMs", {})
    return "triggerExecution" in durations and "addBatch" not in durations
