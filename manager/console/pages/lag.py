"""How far a task is behind its topics, as its page shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from manager.console.formatting import duration, figure

if TYPE_CHECKING:
    from protocol.messages.lag import PartitionLag, TaskLag


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """One partition; None where nobody knows."""

    topic: str
    partition: int
    committed: str | None
    end: str | None
    behind: str | None
    age: str | None
    lost: str | None


@dataclass(frozen=True, slots=True)
class LagPanel:
    """The panel: a sentence, and a line a partition; `trouble` is why there is no more to say."""

    at_ms: int
    sentence: str
    trouble: str | None
    lines: tuple[PartitionLine, ...]
    left_out: int


def lag_panel(lag: TaskLag | None) -> LagPanel | None:
    """What is shown; nothing of a task that reads no topics."""
    if lag is None:
        return None
    lines = tuple(_line(each) for each in lag.partitions)
    return LagPanel(lag.at_ms, lag_sentence(lag), lag.trouble, lines, lag.left_out)


def lag_sentence(lag: TaskLag) -> str:
    """`1,234 rows behind, the oldest 5 min old; 3 rows that it has not read are no longer there`."""
    if lag.trouble is not None:
        return "It is not known how far it is behind."
    if lag.rows is None:
        no_batch = "No batch of it was finished yet."
        return (
            f"Partitions without a broker that answers: {figure(lag.unknown)}." if lag.unknown else no_batch
        )
    age = f", the oldest {duration(lag.behind_ms)} old" if lag.rows and lag.behind_ms else ""
    lost = f"; {figure(lag.lost)} rows that it has not read are no longer there" if lag.lost else ""
    unknown = f"; partitions without a broker that answers, which are not counted: {figure(lag.unknown)}"
    return f"{figure(lag.rows)} rows behind{age}{lost}{unknown if lag.unknown else ''}."


def _line(each: PartitionLag) -> PartitionLine:
    return PartitionLine(
        topic=each.topic,
        partition=each.partition,
        committed=None if each.committed is None else f"{each.committed:,}",
        end=None if each.end is None else f"{each.end:,}",
        behind=None if each.behind is None else f"{each.behind:,}",
        age=None if not each.behind or each.behind_ms is None else duration(each.behind_ms),
        lost=f"{each.lost:,}" if each.lost else None,
    )
