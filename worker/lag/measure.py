"""From offsets to lag; rules without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from protocol.messages.lag import MOST_PARTITIONS, PartitionLag, TaskLag

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker.lag.offset_log import Offsets


class PartitionState(NamedTuple):
    """What a broker says of a partition: its first offset, the next one, and when the first unread row came.

    That time is in milliseconds since 1970, None if it was not asked for, or there is no such row. `topic_id`
    is the one that a topic keeps as long as it lives, `cluster_id` that of the cluster that has given it out;
    None of brokers that give out none, or were not asked for it.
    """

    begin: int
    end: int
    unread_at_ms: int | None = None
    topic_id: str | None = None
    cluster_id: str | None = None


def lags(
    committed: Offsets, topics: Mapping[str, Mapping[int, PartitionState | None]], now_ms: int
) -> list[PartitionLag]:
    """The lag of each partition that a topic has now; one that was deleted is nobody's any more.

    None is the state of a partition that no broker answers for.

    A partition that the query has not seen yet, in a topic that it has, was added since: all of it is unread.
    """
    return [
        _lag(topic, number, _position(committed, topic, number), state, now_ms)
        for topic, partitions in sorted(topics.items())
        for number, state in sorted(partitions.items())
    ]


def _position(committed: Offsets, topic: str, partition: int) -> int | None:
    return committed[topic].get(partition, 0) if topic in committed else None


def _lag(
    topic: str, partition: int, committed: int | None, state: PartitionState | None, now_ms: int
) -> PartitionLag:
    if committed is None or state is None:
        end = None if state is None else state.end
        return PartitionLag(topic=topic, partition=partition, committed=committed, end=end, behind=None)
    behind = max(state.end - max(committed, state.begin), 0)
    age_ms = None if state.unread_at_ms is None else max(now_ms - state.unread_at_ms, 0)
    return PartitionLag(
        topic=topic,
        partition=partition,
        committed=committed,
        end=state.end,
        behind=behind,
        behind_ms=age_ms if behind else 0,
        lost=max(min(state.begin, state.end) - committed, 0),
    )


def total(partitions: Iterable[PartitionLag], now_ms: int) -> TaskLag:
    """The lag of a task, with those partitions that nobody knows of, and that are furthest behind."""
    every = list(partitions)
    rows = [each.behind for each in every if each.behind is not None]
    late = [each for each in every if each.behind] or every
    ages = [each.behind_ms for each in late if each.behind_ms is not None]
    unknown = sum(each.end is None for each in every)
    by_need = sorted(every, key=lambda each: (each.end is not None, -(each.behind or 0), *_place(each)))
    first = by_need[:MOST_PARTITIONS]
    return TaskLag(
        at_ms=now_ms,
        rows=sum(rows) if rows else None,
        behind_ms=max(ages, default=None),
        lost=sum(each.lost for each in every),
        partitions=tuple(sorted(first, key=_place)),
        left_out=len(every) - len(first),
        unknown=unknown,
    )


def _place(each: PartitionLag) -> tuple[str, int]:
    return each.topic, each.partition
