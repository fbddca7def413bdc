"""Telling a Kafka consumer group how far a task has come, for those who watch groups.

Spark keeps its progress in the checkpoint, and that alone counts: nobody of ours reads what is told here.
When a query starts, and after each finished batch, the offsets that the checkpoint has are written to the
group that the source names, by a thread of its own; of several that wait only the latest is written. Beside
each offset stands who has written it. An owner whose token is lower than the one there stops writing, and
what somebody else has written stays. Kafka has no way to compare and set, so an owner that was frozen between
its look and its write may put the group back once; the next write of the new owner mends it.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from telemetry.cause_ids import new_cause_id
from telemetry.scope import in_scope
from telemetry.secrets import scrub
from worker.lag.group_offsets import Mark, reasons
from worker.query_engine import QueryError
from worker.spark.commit_schedule import RETRY, CommitSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from definition.source import Source
    from worker.lag.group_offsets import Outcome
    from worker.lag.offset_log import Offsets
    from worker.query_engine import QuerySpec
    from worker.spark.kafka.brokers import Brokers
    from worker.waiting import Backoff

log = structlog.get_logger(__name__)

CLOSE_S: Final = 2.0
"""How long the end of Spark waits for what was not tried yet, such as the last batches of stopped queries."""


class _Key(NamedTuple):
    """A source of a task under a token."""

    task: str
    token: int
    path: str


class _News(NamedTuple):
    """What is to be written for a source, and who is to hear how that went."""

    source: Source
    offsets: Offsets
    following: Following

    @property
    def group(self) -> str:
        return self.source.commit_group or ""


class GroupProgress:
    """Writes for all queries of a worker, one after another; for any thread."""

    def __init__(
        self,
        brokers: Brokers,
        retry: Backoff = RETRY,
        now: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`retry` is how tries follow each other, `now` a clock in seconds, `chance` is in [0, 1)."""
        self._brokers = brokers
        self._schedule: CommitSchedule[_Key, _News] = CommitSchedule(retry)
        self._now = now
        self._chance = chance
        self._news = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=in_scope(self._run), name="kafka-groups", daemon=True)
        self._thread.start()

    def follow(
        self,
        spec: QuerySpec,
        sources: Sequence[tuple[str, Source]],
        committed: Mapping[str, Offsets],
        ended: Callable[[Mapping[str, Any]], Mapping[str, Offsets]],
    ) -> Following:
        """Tell what a query that has just started does, until it is closed; never waits.

        Args:
            spec: the query's.
            sources: those that name a group, each with its place in the definition.
            committed: where the last batch ended that was finished before, by the place of the source.
            ended: where a batch has ended, by Spark's record of it.
        """
        following = Following(self, spec, sources, ended)
        following.tell(committed)
        return following

    def put(self, key: _Key, news: _News) -> None:
        """To be told soon. Never waits for brokers."""
        with self._news:
            self._schedule.put(key, news, self._now())
            self._news.notify()

    def end(self, key: _Key) -> None:
        """There is no more to come. Never waits for brokers."""
        with self._news:
            self._schedule.end(key, self._now())

    def close(self) -> None:
        """Write what was not tried yet, for a moment at most, and then no more."""
        with self._news:
            self._over = True
            self._news.notify()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while (found := self._next()) is not None:
            self._write(*found)

    def _next(self) -> tuple[_Key, _News] | None:
        with self._news:
            while True:
                if self._over and not self._schedule.has_untried:
                    return None
                if (due := self._schedule.due(self._now())) is not None:
                    return due
                self._news.wait(self._schedule.wait_s(self._now()))

    def _write(self, key: _Key, news: _News) -> None:
        """Whatever goes wrong is told once, and tried again later."""
        mark = Mark(news.following.spec.group, key.task, key.token)
        try:
            outcome = self._brokers.commit(news.source.options, news.group, news.offsets, mark)
        except QueryError as error:
            news.following.note_failure(key, error)
            self._failed(key)
        except Exception as error:  # noqa: BLE001 - the next ones are to be told, whatever became of this one
            news.following.note_surprise(key, error)
            self._failed(key)
        else:
            news.following.note(key, outcome)
            self._wrote(key, news, outcome)

    def _wrote(self, key: _Key, news: _News, outcome: Outcome) -> None:
        with self._news:
            if outcome.is_fenced:
                self._schedule.drop(key)
            elif outcome.has_members or news.offsets.keys() <= outcome.kept_topics:
                self._schedule.failed(key, self._now(), self._chance())
            elif outcome.kept:
                self._schedule.told_in_part(key, news, self._now(), self._chance())
            else:
                self._schedule.told(key, news, self._now())

    def _failed(self, key: _Key) -> None:
        with self._news:
            self._schedule.failed(key, self._now(), self._chance())


class Following:
    """One query whose progress is told (a `worker.spark.kafka.brokers.Watching`), and what goes wrong."""

    def __init__(
        self,
        groups: GroupProgress,
        spec: QuerySpec,
        sources: Sequence[tuple[str, Source]],
        ended: Callable[[Mapping[str, Any]], Mapping[str, Offsets]],
    ) -> None:
        self.spec = spec
        self._ended = ended
        self._groups = groups
        self._sources = {_Key(spec.task, spec.token, path): source for path, source in sources}
        self._troubles: dict[_Key, str] = {}
        self._unreached: set[_Key] = set()
        self._is_fenced = False

    @property
    def trouble(self) -> str | None:
        """Why a group is not told, in one line; None if it is, or brokers are away, which others tell."""
        return next(iter(tuple(self._troubles.values())), None)

    def finished(self, record: Mapping[str, Any]) -> None:
        """A batch is finished, by Spark's record of it."""
        self.tell(self._ended(record))

    def tell(self, committed: Mapping[str, Offsets]) -> None:
        """All is finished up to there, by the place of the source."""
        for key, source in self._sources.items():
            offsets = committed.get(key.path)
            if offsets and not self._is_fenced:
                self._groups.put(key, _News(source, offsets, self))

    def close(self) -> None:
        """The query is over."""
        for key in self._sources:
            self._groups.end(key)

    def note(self, key: _Key, outcome: Outcome) -> None:
        """Brokers have answered."""
        self._unreached.discard(key)
        self._is_fenced = self._is_fenced or outcome.is_fenced
        if outcome.is_fenced:
            log.info("a consumer group has a newer owner's offsets", **self._about(key))
        self._note_trouble(key, reasons(self._sources[key].commit_group or "", outcome))

    def note_failure(self, key: _Key, error: QueryError) -> None:
        """They have not, or refused; a group's own trouble is the task's, too."""
        line = error.cause.partition("\n")[0]
        if not error.outage:
            group = self._sources[key].commit_group or ""
            self._note_trouble(key, f"consumer group {group} is not told the progress: {line}")
        elif key not in self._unreached:
            self._unreached.add(key)
            log.warning("a consumer group cannot be told", why=scrub(line), **self._about(key))

    def note_surprise(self, key: _Key, error: Exception) -> None:
        """Something has failed that was not foreseen."""
        if key not in self._unreached:
            self._unreached.add(key)
            about = {"cause_id": new_cause_id(), **self._about(key)}
            log.error("unexpected trouble with a consumer group", exc_info=error, **about)

    def _note_trouble(self, key: _Key, why: str) -> None:
        """None of it, if it is empty."""
        trouble = scrub(f"{key.path}.commit_group: {why}") if why else ""
        if trouble == self._troubles.get(key, ""):
            return
        if trouble:
            self._troubles[key] = trouble
            log.warning("a consumer group is not told", why=trouble, **self._about(key))
        else:
            del self._troubles[key]

    def _about(self, key: _Key) -> dict[str, Any]:
        source = self._sources[key]
        told = {"group": self.spec.group, "task": key.task, "token": key.token, "source": key.path}
        return {**told, "consumer_group": source.commit_group}
