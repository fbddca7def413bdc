"""What Kafka clients of Spark's are asked for, beside the queries that run: lags, topics, consumer groups."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker.lag.group_offsets import Mark, Outcome
    from worker.lag.measure import PartitionState
    from worker.lag.offset_log import Offsets


class Question(StrEnum):
    """What brokers are asked for, beside what Spark's own queries ask."""

    LAG = "lag"
    START = "start"
    WATCH = "watch"
    GROUP = "group"


class Watching(Protocol):
    """A look at a cluster that goes on while a query needs it."""

    @property
    def trouble(self) -> str | None:
        """Why nothing comes from there, in one line; None while it answers. Never blocks."""
        ...

    def close(self) -> None:
        """Look no more. Never blocks."""
        ...


class Brokers(Protocol):
    """What is asked about topics; a call may take as long as a broker does."""

    def states(
        self, options: Mapping[str, Any], committed: Offsets, purpose: Question = Question.LAG
    ) -> Mapping[str, Mapping[int, PartitionState | None]]:
        """The partitions of the topics that a source with these options reads, by topic and number.

        None is one that is there and that no broker answers for, as while it has no leader.

        Args:
            options: the source's, with its secrets.
            committed: what it has read; the first unread row of a partition is looked at for its time.
            purpose: what for.

        Raises:
            QueryError: no broker answers in time, or lets nobody in; in one line.
        """
        ...

    def commit(
        self, options: Mapping[str, Any], consumer_group: str, offsets: Offsets, mark: Mark
    ) -> Outcome:
        """Write offsets to a consumer group, but not over a higher token's or somebody else's.

        Args:
            options: of the source, with its secrets.
            consumer_group: its name.
            offsets: the next ones to read.
            mark: the task, and the token that it is run under.

        Raises:
            QueryError: no broker answers in time, or lets nobody in; in one line.
        """
        ...

    def watch(self, options: Mapping[str, Any]) -> Watching:
        """Ask, every few seconds from now on, whether the cluster of a source with these options answers."""
        ...

    def requests(self) -> Mapping[tuple[str, bool], int]:
        """How often brokers were asked, by purpose and whether they answered. Never blocks."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...
