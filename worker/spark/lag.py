"""How far a query's sources are ahead of it, as far as Spark's progress tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_OUTSTANDING = {"numFilesOutstanding": "files", "numBytesOutstanding": "bytes"}
"""What sources of files and tables tell among their metrics, as text."""


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
