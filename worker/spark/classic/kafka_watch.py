"""Whether the brokers of running queries answer: Spark itself says nothing for minutes when they do not.

One question to each cluster every few seconds, however many tasks read from it.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from telemetry.scope import in_scope
from telemetry.secrets import scrub
from worker.query_engine import QueryError
from worker.spark.classic.kafka_clients import client_key
from worker.spark.kafka.brokers import Question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker.spark.classic.kafka_clients import ClientKey, KafkaClients

LOOK_S: Final = 5.0
"""Seconds between two questions to a cluster; with the time it has to answer, a cause is there after 17."""


class ClusterWatch:
    """Asks one cluster in a thread of its own, as long as a query needs it."""

    def __init__(
        self, clients: KafkaClients, options: Mapping[str, Any], now: Callable[[], float] = time.time
    ) -> None:
        """`now` is the wall clock, in seconds since 1970, for what is told of when it began."""
        self.trouble: str | None = None
        self.users = 0
        self._clients = clients
        self._options = dict(options)
        self._now = now
        self._over = threading.Event()

    def start(self) -> None:
        """Ask, until `close`."""
        threading.Thread(target=in_scope(self._run), name="kafka-watch", daemon=True).start()

    def close(self) -> None:
        """Ask no more. Never blocks."""
        self._over.set()

    def look(self) -> None:
        """Ask once, and note what is wrong, and since when."""
        began = self._now()
        try:
            with self._clients.asking(self._options, Question.WATCH, anyway=True) as client:
                client.answer(client.admin.describeCluster().nodes(), of_any=True)
        except QueryError as error:
            if self.trouble is None:
                since = datetime.fromtimestamp(began, UTC)
                line = scrub(error.cause.partition("\n")[0])
                self.trouble = f"stands still since {since:%Y-%m-%d %H:%M:%S} UTC: {line}"
            return
        self.trouble = None

    def _run(self) -> None:
        while not self._over.wait(LOOK_S):
            self.look()


class Watching:
    """A query's interest in one cluster; `close` ends it."""

    def __init__(self, watches: ClusterWatches, key: ClientKey, watch: ClusterWatch) -> None:
        self._watches = watches
        self._key = key
        self._watch = watch

    @property
    def trouble(self) -> str | None:
        """Why nothing comes from it, None while it answers. Never blocks."""
        return self._watch.trouble

    def close(self) -> None:
        """It is over."""
        self._watches.leave(self._key, self._watch)


class ClusterWatches:
    """One watch for each cluster that a running query reads from; for any thread."""

    def __init__(self, clients: KafkaClients) -> None:
        self._clients = clients
        self._lock = threading.Lock()
        self._watches: dict[ClientKey, ClusterWatch] = {}

    def join(self, options: Mapping[str, Any]) -> Watching:
        """A query reads from a source with these options now."""
        key = client_key(options)
        with self._lock:
            watch = self._watches.get(key)
            if watch is None:
                watch = self._watches[key] = ClusterWatch(self._clients, options)
                watch.start()
            watch.users += 1
        return Watching(self, key, watch)

    def leave(self, key: ClientKey, watch: ClusterWatch) -> None:
        """A query is over; nobody asks a cluster that none is left for."""
        with self._lock:
            watch.users -= 1
            if watch.users == 0:
                self._watches.pop(key, None)
                watch.close()

    def close(self) -> None:
        """Ask nobody any more."""
        with self._lock:
            for watch in self._watches.values():
                watch.close()
