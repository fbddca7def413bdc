"""One webhook's way along the log: what to do next, and when to try again. Pure.

Events are sent one by one, the next when the one before was taken; one that is not is tried until it is. That
goes for every failure, a 4xx too: a receiver that answers 404 while it is being deployed must not lose what
happened meanwhile. What bounds it is the log: what is no longer kept is told as `events.pruned`.

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
    """Where one webhook is.

    Args:
        position: the id of the last event it is known to have got.
        chance: a number from 0 to 1, another one each time.
    """

    def __init__(self, position: int, chance: Callable[[], float]) -> None:
        self.position = position
        self.failures = 0
        self._chance = chance
        self._saved = position
        self._saved_at = 0
        self._queue: deque[Event] = deque()

    def begin(self) -> Step:
        """The first step."""
        return Step(None, Fetch(self.position))

    def fetched(self, events: Sequence[Event]) -> Step:
        """This is what there is after the position, as far as it was looked."""
        self._queue.extend(events)
        return Step(None, self._next())

    def taken(self, now: int) -> Step:
        """The event was taken, at `now` in milliseconds of a monotonic clock."""
        self.position = self._queue.popleft().id
        self.failures = 0
        is_due = not self._queue or now - self._saved_at >= SAVE_EVERY_MS
        return Step(self._save(now) if is_due else None, self._next())

    def refused(self, now: int, retry_after_ms: int = 0) -> Step:
        """The event was not taken, or nobody knows; the receiver may have said when to come again."""
        self.failures += 1
        return Step(self._save(now), Pause(self._pause(retry_after_ms)))

    def paused(self) -> Step:
        """The pause is over."""
        return Step(None, self._next())

    def _next(self) -> Fetch | Post:
        return Post(self._queue[0]) if self._queue else Fetch(self.position)

    def _save(self, now: int) -> int | None:
        if self.position == self._saved:
            return None
        self._saved, self._saved_at = self.position, now
        return self.position

    def _pause(self, at_least_ms: int) -> int:
        doubled = FIRST_PAUSE_MS << min(self.failures - 1, MOST_DOUBLINGS)
        pause = min(max(doubled, at_least_ms), LONGEST_PAUSE_MS)
        return round(pause * (1 + JITTER * (2 * self._chance() - 1)))
