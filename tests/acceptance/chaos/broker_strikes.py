"""What is done to the broker, and how it is made good again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.acceptance.chaos.kafka_feed import KafkaFeed
from tests.acceptance.chaos.plan import Strike
from tests.acceptance.chaos.stage import SESSION_TIMEOUT_MS
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.stage import Stage

FROZEN_S = 1.2 * SESSION_TIMEOUT_MS / 1000
"""Longer than a worker's session with its manager, and than the broker's own with its controller."""


class BrokerStrikes:
    """The broker of a stage whose tasks read from Kafka."""

    def __init__(self, stage: Stage) -> None:
        assert isinstance(stage.feed, KafkaFeed)
        self._stage = stage
        self._feed = stage.feed

    def strike(self, strike: Strike) -> Callable[[], None]:
        """Do it, while rows are on their way; returns what makes it good again."""
        do: dict[Strike, Callable[[], Callable[[], None]]] = {
            Strike.BROKER: self._kill,
            Strike.BROKER_FROZEN: self._freeze,
            Strike.PARTITION: self._add_partitions,
            Strike.RETENTION: self._run_retention,
        }
        self._feed.add()
        return do[strike]()

    def _kill(self) -> Callable[[], None]:
        self._feed.broker.kill()
        return self._feed.broker.start

    def _freeze(self) -> Callable[[], None]:
        self._feed.broker.freeze()
        until = time.monotonic() + FROZEN_S

        def thaw() -> None:
            self._wait(lambda: time.monotonic() >= until, "the broker was frozen long enough")
            self._feed.broker.thaw()

        return thaw

    def _add_partitions(self) -> Callable[[], None]:
        """Queries that run have to take them up, and one that is started next from its checkpoint as well."""
        self._feed.add_partitions()
        return lambda: None

    def _run_retention(self) -> Callable[[], None]:
        """Records go as soon as they were read, until all were.

        Only those go that lie before the last batch that a checkpoint says is finished, and a topic has one
        task: whoever goes on from that checkpoint begins right there, be it with the batch that was planned
        next or with a new one. Retention that overtakes a task loses rows whatever anybody does, and the
        count of lost rows would say nothing.
        """
        self._delete_all_read()
        return lambda: self._wait(self._delete_all_read, "all was read, and deleted")

    def _wait(self, look: Callable[[], bool], what: str) -> None:
        """Until `look` says yes; a worker may be dead meanwhile."""
        eventually(look, what, alive=[self._stage.herd.manager])

    def _delete_all_read(self) -> bool:
        """Whether nothing is left in any topic."""
        left = [flow for flow in self._feed.flows if not self._delete_read(flow)]
        return not left

    def _delete_read(self, flow: Flow) -> bool:
        """Whether nothing is left in its topic."""
        topic = self._feed.topic(flow)
        ends, read = topic.ends(), self._stage.read_up_to(flow)
        topic.delete_before({n: read[n] for n, (begin, _) in ends.items() if read.get(n, 0) > begin})
        return all(read.get(number, 0) == end for number, (_, end) in ends.items())
