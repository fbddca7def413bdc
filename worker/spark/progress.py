"""What Spark tells of a finished batch, as the few figures that a worker reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker.left_out import NOTHING, LeftOut
from worker.query_engine import Progress, StateSize, Totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OBSERVED = "sparkherd.left_out"
"""What Spark tells by this name among the metrics that a query observes."""
ALL_LEFT_OUT = "all rows"
"""Among those: the rows that were left out, whatever they violate; no expectation has a space in its name."""
_OUTSTANDING = {"numFilesOutstanding": "files", "numBytesOutstanding": "bytes"}
"""What sources of files and tables tell among their metrics, as text."""


class ProgressTracker:
    """Follows one query's batches; `last` is the latest, None before the first."""

    def __init__(self) -> None:
        self.last: Progress | None = None
        self._totals = Totals()
        self._seen = NOTHING

    @property
    def batch_id(self) -> int:
        """The latest batch seen, -1 before the first."""
        return -1 if self.last is None or self.last.batch_id is None else self.last.batch_id

    def observe(
        self, told: Mapping[str, Any], sink_rows: int | None = None, left_out: LeftOut = NOTHING
    ) -> bool:
        """Take in one of Spark's progress records; one that is not news, or of no batch, changes nothing.

        Args:
            told: the record as a dict, as `StreamingQueryProgress.json` has it.
            sink_rows: how many rows of the task its fenced sink holds by now, under any owner.
            left_out: what of the rows of all batches since the query's start did not go there; without what
                Spark itself tells in its records.

        Returns:
            Whether it is of a batch that was finished since the last one.
        """
        if told["batchId"] <= self.batch_id or is_idle(told):
            return False
        batch_ms = told.get("batchDuration", 0)
        self._seen += left_out_in(told)
        totals = self._totals + Totals(1, told["numInputRows"], batch_ms)
        self._totals = replace(totals, left_out=left_out + self._seen)
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
        self.last = Progress(told["batchId"], metrics, self._totals, state_of(told))
        return True


def state_of(told: Mapping[str, Any]) -> StateSize | None:
    """What the query's stateful operators have in their stores, all together; None if it has none."""
    operators = told.get("stateOperators") or ()
    if not operators:
        return None
    rows = sum(each.get("numRowsTotal", 0) for each in operators)
    return StateSize(rows, sum(each.get("memoryUsedBytes", 0) for each in operators))


def left_out_in(told: Mapping[str, Any]) -> LeftOut:
    """What Spark has left out of a batch for one of its own sinks, which it has counted in passing.

    Of a part that was computed twice it counts rows twice.
    """
    found = (told.get("observedMetrics") or {}).get(OBSERVED)
    if not found:
        return NOTHING
    reasons = {name: int(rows) for name, rows in found.items() if name != ALL_LEFT_OUT and rows}
    return LeftOut(int(found.get(ALL_LEFT_OUT) or 0), 0, reasons)


def is_idle(told: Mapping[str, Any]) -> bool:
    """Whether nothing was there to do: Spark tells that every ten seconds, with the id of a batch to come."""
    durations = told.get("durationMs", {})
    return "triggerExecution" in durations and "addBatch" not in durations


def lag_of(sources: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """What is left to read, by unit, of all sources together; empty when none of them tells.

    A source that knows its newest offset (Kafka, sockets, rates) lags by the difference to where the batch
    ended; offsets are numbers, or numbers by topic and partition.
    """
    lag: dict[str, float] = {}
    for source in sources:
        for unit, behind in _of(source):
            lag[unit] = lag.get(unit, 0) + behind
    return lag


def _of(source: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    told = source.get("metrics") or {}
    for name, unit in _OUTSTANDING.items():
        if (behind := _number(told.get(name))) is not None:
            yield unit, behind
    behind = _distance(source.get("endOffset"), source.get("latestOffset"))
    if behind is not None:
        yield "offsets", max(behind, 0)


def _distance(end: Any, latest: Any) -> float | None:
    """From one offset to the other; None if they are no numbers, or not of one shape."""
    if isinstance(end, dict) and isinstance(latest, dict):
        parts = [_distance(end.get(name, 0), each) for name, each in latest.items()]
        return None if None in parts or not parts else sum(part for part in parts if part is not None)
    if _is_number(end) and _is_number(latest):
        return float(latest - end)
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None
