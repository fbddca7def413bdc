"""From one of Spark's records of a batch to figures: where its time went, its state, its watermark.

Whatever a record lacks is told of by nobody: Spark's versions and clients differ in what they have.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from worker.costs import Costs, Phases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_READING: Final = ("latestOffset", "getOffset", "setOffsetRange", "getEndOffset", "getBatch")
_COMMIT: Final = ("walCommit", "commitOffsets", "commitBatch")
_STATE_BYTES: Final = ("stateOnCurrentVersionSizeBytes", "rocksdbSstFileSize")
"""How large the state is, by the name that each of Spark's stores has for it."""


def costs_of(told: Mapping[str, Any], interval_ms: int | None) -> Costs:
    """What a batch has cost.

    Args:
        told: the record.
        interval_ms: of the query's trigger, in milliseconds; None if it has none.
    """
    operators = told.get("stateOperators") or ()
    has_watermark = watermark_ms(told) is not None
    return Costs(
        phases_of(told),
        late_batches=None if interval_ms is None else int(told.get("batchDuration", 0) > interval_ms),
        late_rows=_sum_of(operators, "numRowsDroppedByWatermark") if operators and has_watermark else None,
    )


def phases_of(told: Mapping[str, Any]) -> Phases:
    """Where the time of a batch went."""
    took = told.get("durationMs") or {}
    return Phases(
        planning=took.get("queryPlanning", 0),
        reading=sum(took.get(name, 0) for name in _READING),
        writing=took.get("addBatch", 0),
        commit=sum(took.get(name, 0) for name in _COMMIT),
    )


def metrics_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """The last batch's own figures, as they are reported."""
    phases = phases_of(told)
    return {
        **({"phases_ms": structs.asdict(phases)} if phases.total else {}),
        **_state(told.get("stateOperators") or ()),
        **_watermark(told),
    }


def watermark_ms(told: Mapping[str, Any]) -> int | None:
    """The watermark that a batch ran under, in milliseconds since 1970; 0 before the first, None without."""
    told_at = (told.get("eventTime") or {}).get("watermark")
    return None if told_at is None else _millis(told_at)


def _state(operators: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of all stateful operators together."""
    if not operators:
        return {}
    state = {
        "rows": _sum_of(operators, "numRowsTotal"),
        "memory_bytes": _sum_of(operators, "memoryUsedBytes"),
    }
    sizes = [size for operator in operators if (size := _size(operator)) is not None]
    return {"state": {**state, "bytes": sum(sizes)} if sizes else state}


def _size(operator: Mapping[str, Any]) -> int | None:
    metrics = operator.get("customMetrics") or {}
    return next((int(metrics[name]) for name in _STATE_BYTES if name in metrics), None)


def _sum_of(operators: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(int(operator.get(name) or 0) for operator in operators)


def _watermark(told: Mapping[str, Any]) -> dict[str, int]:
    """Of the first batch there is none yet, and Spark tells the year 1970."""
    watermark = watermark_ms(told)
    if not watermark:
        return {}
    return {"watermark_ms": watermark, "watermark_lag_ms": max(_millis(told["timestamp"]) - watermark, 0)}


def _millis(text: str) -> int:
    """Since 1970; Spark writes moments in UTC, with a Z."""
    return round(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000)
