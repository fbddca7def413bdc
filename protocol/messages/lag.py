"""How far a task is behind its topics, partition by partition (protocol §5)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from protocol.messages.base import MAX_INT, Millis, Revision
from protocol.names import MAX_NAME_LENGTH

MOST_PARTITIONS: Final = 200
"""Of a task, that are told one by one: those that are furthest behind. The sums are over all of them."""


MAX_TROUBLE_LENGTH: Final = 500
"""Characters."""
Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]


class PartitionLag(msgspec.Struct, frozen=True, kw_only=True):
    """One partition.

    `committed` is the next offset that the task will read, by its last finished batch, None before the first;
    `end` is the one that the next row will get, None if no broker answers for the partition, as while it has
    no leader: then nothing else is known of it. `behind` is what is between, in offsets; markers of
    transactions count as rows there. `behind_ms` is how old the first row is that was not read; None if that
    is not known. `lost` are the offsets that the task wants and the topic no longer has.
    """

    topic: Annotated[str, msgspec.Meta(max_length=MAX_NAME_LENGTH)]
    partition: Count
    committed: Count | None
    end: Count | None
    behind: Count | None
    behind_ms: Count | None = None
    lost: Count = 0


class TaskLag(msgspec.Struct, frozen=True, kw_only=True):
    """All partitions that a task reads; `at_ms` is when the broker was asked, in milliseconds since 1970.

    `rows` and `lost` are sums over all of them, `behind_ms` is the largest; of `partitions` there are
    `MOST_PARTITIONS` at most, and `left_out` is how many more there are. `unknown` are those that no broker
    answers for, which are in no sum. `trouble` is why nothing is known.
    `tasks_revision` is the group's as of which the task was known to whoever measured it: a definition or a
    reset of before would have come to another figure. None if that is not told.
    """

    at_ms: Millis
    rows: Count | None = None
    behind_ms: Count | None = None
    lost: Count = 0
    partitions: Annotated[tuple[PartitionLag, ...], msgspec.Meta(max_length=MOST_PARTITIONS)] = ()
    left_out: Count = 0
    unknown: Count = 0
    trouble: Annotated[str, msgspec.Meta(max_length=MAX_TROUBLE_LENGTH)] | None = None
    tasks_revision: Revision | None = None


def without_partitions(lag: TaskLag) -> TaskLag:
    """The sums alone; how many partitions are not told one by one is."""
    return msgspec.structs.replace(lag, partitions=(), left_out=lag.left_out + len(lag.partitions))
