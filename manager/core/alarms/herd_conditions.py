"""What each kind of alarm about managers and the database looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from manager.core.alarms.facts import CLEAR, UNKNOWN, Reading
from manager.core.alarms.seen import Windowed
from protocol.alarm_kinds import AlarmKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from manager.core.alarms.herd_facts import HerdFacts, ManagerFacts, ManagerFigures
    from protocol.messages.alarms import AlarmRule

    ManagerCondition = Callable[[HerdFacts, ManagerFacts, int], Reading]
    """Gets the moment since 1970 in milliseconds."""


class Gained(NamedTuple):
    """What a manager's transactions have come to within a window; `is_whole` if all of it was seen."""

    transactions: float
    failed: float
    seconds: float
    is_whole: bool


class TransactionWindow:
    """The transactions of one process within a window, `window_ms` long, of what it has counted in all."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._transactions, self._failed, self._seconds = (Windowed(restarts=True) for _ in range(3))

    def take(self, figures: ManagerFigures, now: int) -> Gained:
        """These are the counts at `now`, in milliseconds of the monotonic clock."""
        self._transactions.take(figures.transactions, now, self._window_ms)
        self._failed.take(figures.failed, now, self._window_ms)
        self._seconds.take(figures.seconds, now, self._window_ms)
        windows = self._transactions, self._failed, self._seconds
        transactions, failed, seconds = (window.gained() or 0.0 for window in windows)
        is_whole = self._transactions.is_whole(now, self._window_ms)
        return Gained(transactions, failed, seconds, is_whole)


class TransactionsSeen:
    """The windows of all processes, in memory; a process that begins anew is counted anew."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, int], TransactionWindow] = {}

    def take(self, incarnation: str, figures: ManagerFigures, window_ms: int, now: int) -> Gained:
        """What the process `incarnation` has counted, within the last `window_ms`."""
        key = incarnation, window_ms
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = TransactionWindow(window_ms)
        return window.take(figures, now)

    def keep(self, incarnations: Iterable[str]) -> None:
        """Forget all other processes."""
        kept = frozenset(incarnations)
        for key in [key for key in self._windows if key[0] not in kept]:
            del self._windows[key]


def read_manager(rule: AlarmRule, facts: HerdFacts, manager: ManagerFacts, wall_ms: int) -> Reading:
    """What a rule about managers looks at, of one of them."""
    return MANAGER_CONDITIONS[rule.kind](facts, manager, wall_ms)


def read_database(rule: AlarmRule, gained: Gained) -> Reading:
    """What a rule about the database looks at, as one manager sees it; without transactions nobody knows.

    What is seen of a part of the window may begin an alarm, and ends none.
    """
    if not gained.transactions:
        return UNKNOWN
    return Reading(DATABASE_CONDITIONS[rule.kind](gained), at_least=not gained.is_whole)


def _gone(facts: HerdFacts, manager: ManagerFacts, wall_ms: int) -> Reading:
    if not facts.knows_silence:
        return UNKNOWN
    return Reading(1.0, wall_ms - manager.silent_ms) if manager.is_silent else CLEAR


def _loop_lag(_: HerdFacts, manager: ManagerFacts, __: int) -> Reading:
    return UNKNOWN if manager.is_silent else Reading(manager.figures.loop_lag_s)


def _memory(_: HerdFacts, manager: ManagerFacts, __: int) -> Reading:
    return UNKNOWN if manager.is_silent else Reading(manager.figures.memory_percent)


def _failing(gained: Gained) -> float:
    return 100 * gained.failed / gained.transactions


def _slow(gained: Gained) -> float:
    return gained.seconds / gained.transactions


MANAGER_CONDITIONS: Final[dict[AlarmKind, ManagerCondition]] = {
    AlarmKind.MANAGER_GONE: _gone,
    AlarmKind.MANAGER_LOOP_LAG: _loop_lag,
    AlarmKind.MANAGER_MEMORY: _memory,
}
DATABASE_CONDITIONS: Final[dict[AlarmKind, Callable[[Gained], float]]] = {
    AlarmKind.DATABASE_FAILING: _failing,
    AlarmKind.DATABASE_SLOW: _slow,
}
