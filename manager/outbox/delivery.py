"""One subscriber's way along the log: what to do next, and when to try again. Pure.

Events are sent one by one, the next when the one before was taken; one that is not is tried until it is. That
goes for a 4xx, too: a receiver that answers 404 while it is being deployed must not lose what happened
meanwhile. What bounds it is the log: what is no longer kept is told as `events.pruned`. Only what a system
says it will never take, as a mail to an address that does not exist, is given up after `FINAL_TRIES`: all
that comes after it would wait for ever.

What a subscriber does not want is passed over, and the position moves on with it.

The position is stored after the event was taken, so whatever is killed in between repeats and does not lose.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from protocol.messages.events import Event

FIRST_PAUSE_MS = 1000
LONGEST_PAUSE_MS = 300_000
MOST_DOUBLINGS = 10
JITTER = 0.2
SAVE_EVERY_MS = 1000
"""How often the position is stored while much is to be told: what may be repeated after a crash."""
SAVE_PASSED_OVER_MS = 60_000
"""How often it is stored while nothing is: events are kept longer, so none of them are missing."""
FINAL_TRIES = 3
"""A system may be wrong about never; once or twice."""


class Fetch(NamedTuple):
    """Look what there is after this id."""

    after: int


class Post(NamedTuple):
    """Send this."""

    event: Event


class Pause(NamedTuple):
    """Do nothing for so many milliseconds."""

    ms: int


class Step(NamedTuple):
    """What to do: store the position `save`, if it is one, then go on."""

    save: int | None
    then: Fetch | Post | Pause


class Delivery:
    """Where one subscriber is.

    Args:
        position: the id of the last event it is known to have got, or not to want.
        chance: a number from 0 to 1, another one each time.
        wants: whether it is to be told of an event.
        longest_pause_ms: between two tries; `LONGEST_PAUSE_MS` if it is not given.
    """

    def __init__(
        self,
        position: int,
        chance: Callable[[], float],
        wants: Callable[[Event], bool] = lambda _: True,
        longest_pause_ms: int | None = None,
    ) -> None:
        self.position = position
        self.failures = 0
        self._finals = 0
        self._chance = chance
        self._wants = wants
        self._longest_pause_ms = longest_pause_ms
        self._saved = position
        self._saved_at = 0
        self._queue: deque[Event] = deque()

    def begin(self) -> Step:
        """The first step."""
        return Step(None, Fetch(self.position))

    def fetched(self, events: Sequence[Event], now: int = 0) -> Step:
        """This is what there is after the position, as far as it was looked, at `now` as in `taken`."""
        self._queue.extend(events)
        then = self._next()
        is_due = not self._queue and now - self._saved_at >= SAVE_PASSED_OVER_MS
        return Step(self._save(now) if is_due else None, then)

    def taken(self, now: int) -> Step:
        """The event was taken, at `now` in milliseconds of a monotonic clock."""
        self.position = self._queue.popleft().id
        self.failures = self._finals = 0
        then = self._next()
        is_due = not self._queue or now - self._saved_at >= SAVE_EVERY_MS
        return Step(self._save(now) if is_due else None, then)

    def refused(self, now: int, retry_after_ms: int = 0, *, is_final: bool = False) -> Step:
        """The event was not taken, or nobody knows; the receiver may have said when to come again.

        One that `is_final`, as often as is enough to believe it, is given up: no pause follows.
        """
        self.failures += 1
        self._finals = self._finals + 1 if is_final else 0
        if self._finals >= FINAL_TRIES:
            return self.taken(now)
        return Step(self._save(now), Pause(self._pause(retry_after_ms)))

    def paused(self) -> Step:
        """The pause is over."""
        return Step(None, self._next())

    def _next(self) -> Fetch | Post:
        while self._queue and not self._wants(self._queue[0]):
            self.position = self._queue.popleft().id
        return Post(self._queue[0]) if self._queue else Fetch(self.position)

    def _save(self, now: int) -> int | None:
        if self.position == self._saved:
            return None
        self._saved, self._saved_at = self.position, now
        return self.position

    def _pause(self, at_least_ms: int) -> int:
        doubled = FIRST_PAUSE_MS << min(self.failures - 1, MOST_DOUBLINGS)
        longest_ms = LONGEST_PAUSE_MS if self._longest_pause_ms is None else self._longest_pause_ms
        pause = min(max(doubled, at_least_ms), longest_ms)
        return round(pause * (1 + JITTER * (2 * self._chance() - 1)))
