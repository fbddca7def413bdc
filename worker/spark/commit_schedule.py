"""What consumer groups are still to be told, and when each is tried next; rules without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from worker.waiting import Backoff

if TYPE_CHECKING:
    from collections.abc import Hashable

Key = TypeVar("Key", bound="Hashable")
News = TypeVar("News")

RETRY: Final = Backoff(first_s=1.0, limit_s=60.0)
"""Between tries that came to nothing."""
AGAIN_S: Final = 3600.0
"""What was written is written again so often: brokers forget the offsets of a group without members a week
after they were committed (`offsets.retention.minutes`), and a former owner may have written over them."""
KEPT_S: Final = 3600.0
"""How long after a query's end its last news is still tried."""
SHARE: Final = 3
"""Seconds of writes that arrive to one of tries that failed before, while both have something to do."""
CREDIT_S: Final = 1.0
"""Of such seconds not more are saved up: a coordinator that does not answer takes ten of them at once."""


@dataclass
class _Entry(Generic[News]):
    """The latest news, when they are tried next, and when they are given up.

    `failures` are tries that came to nothing, and `parts` those of which a part arrived, since the last one
    that arrived whole; `has_arrived` says that a part at least of these news did, and no try failed since.
    """

    news: News
    at: float
    failures: int = 0
    parts: int = 0
    has_arrived: bool = False
    until: float | None = None

    @property
    def is_told(self) -> bool:
        return self.has_arrived and not self.parts


class CommitSchedule(Generic[Key, News]):
    """The latest news of each key until they are told, then again from time to time; not for several threads.

    Times are in seconds, by the clock that `now` is read from.
    """

    def __init__(self, retry: Backoff = RETRY) -> None:
        self._retry = retry
        self._entries: dict[Key, _Entry[News]] = {}
        self._began = 0.0
        self._is_charged = False
        self._credit_s = 0.0

    def put(self, key: Key, news: News, now: float) -> None:
        """They are to be told at once; where others wait, or tries failed lately, when it is their turn."""
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = _Entry(news, now)
            return
        entry.until = None
        if entry.has_arrived and entry.news == news:
            return
        if entry.has_arrived:
            entry.at = now
        entry.news, entry.has_arrived = news, False

    def due(self, now: float) -> tuple[Key, News] | None:
        """What is to be tried now; those that have waited longest go first.

        Where tries failed lately, the next one may take as long as brokers that do not answer are waited for.
        So it comes when nobody else waits, and otherwise in its share of the time (`SHARE`).
        """
        self._forget(now)
        due = [(entry.at, key) for key, entry in self._entries.items() if entry.at <= now]
        failed = [each for each in due if self._entries[each[1]].failures]
        others = [each for each in due if not self._entries[each[1]].failures]
        chosen = failed if failed and (self._credit_s > 0 or not others) else others
        self._began, self._is_charged = now, chosen is failed and bool(others)
        if not chosen:
            return None
        _, key = min(chosen, key=itemgetter(0))
        return key, self._entries[key].news

    def wait_s(self, now: float) -> float | None:
        """Seconds until something is to be tried; None if there is nothing."""
        times = [entry.at for entry in self._entries.values()]
        return max(min(times) - now, 0.0) if times else None

    def told(self, key: Key, news: News, now: float) -> None:
        """They arrived; of a query that is over that was all, and what came meanwhile is told at once."""
        self._account(now, has_arrived=True)
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.failures = entry.parts = 0
        entry.has_arrived = entry.news is news
        entry.at = now + AGAIN_S if entry.has_arrived else now
        if entry.has_arrived and entry.until is not None:
            del self._entries[key]

    def told_in_part(self, key: Key, news: News, now: float, chance: float) -> None:
        """What did not arrive of them is tried again, later and later; newer ones are told at once.

        `chance` is a random number in [0, 1), for the jitter.
        """
        self._account(now, has_arrived=True)
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.failures = 0
        entry.has_arrived = entry.news is news
        entry.at = now + self._retry.delay_s(entry.parts, chance) if entry.has_arrived else now
        entry.parts += 1

    def failed(self, key: Key, now: float, chance: float) -> None:
        """They did not; `chance` is a random number in [0, 1), for the jitter."""
        self._account(now, has_arrived=False)
        entry = self._entries.get(key)
        if entry is not None:
            entry.at = now + self._retry.delay_s(entry.failures, chance)
            entry.failures += 1
            entry.has_arrived = False

    def end(self, key: Key, now: float) -> None:
        """There will be no more news of it: what was not told is tried for a while."""
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.until = now + KEPT_S
        if entry.is_told:
            del self._entries[key]

    def drop(self, key: Key) -> None:
        """Nothing of it is to be told any more."""
        self._entries.pop(key, None)

    @property
    def has_untried(self) -> bool:
        """Whether there is news that no try was made for."""
        return any(not (entry.has_arrived or entry.failures) for entry in self._entries.values())

    def _account(self, now: float, *, has_arrived: bool) -> None:
        """A try is over: what it took is charged to those that failed before, or gives them time."""
        took = now - self._began
        if self._is_charged:
            self._credit_s -= took
        elif has_arrived:
            self._credit_s = min(self._credit_s + took / SHARE, CREDIT_S)
        self._began, self._is_charged = now, False

    def _forget(self, now: float) -> None:
        over = [key for key, entry in self._entries.items() if entry.until is not None and entry.until < now]
        for key in over:
            del self._entries[key]
