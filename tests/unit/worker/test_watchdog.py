"""The thread that looks after what may write without a fence."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from tests.fakes.clock import FakeClock
from worker.watchdog import Watchdog

LIMIT_S = 10.0


@dataclass(eq=False)
class Job:
    """Some work."""

    task: str
    confirmed_at: float


def test_work_is_overdue_from_its_limit_on() -> None:
    """Each by itself, and no longer when it is over or has been confirmed again."""
    clock = FakeClock()
    watchdog = Watchdog(clock.now, LIMIT_S, lambda _: None)
    first, second = Job("first", clock.now()), Job("second", clock.now())
    with watchdog.watching(first):
        with watchdog.watching(second):
            clock.freeze(LIMIT_S - 1)
            second.confirmed_at = clock.now()
            assert watchdog.overdue() == ()
            clock.freeze(1)
            assert watchdog.overdue() == ("first",)
        clock.freeze(LIMIT_S)
    assert watchdog.overdue() == ()


def test_the_thread_acts_by_itself() -> None:
    """Nobody has to call it, least of all an event loop."""
    clock = FakeClock()
    told: list[tuple[str, ...]] = []
    acted = threading.Event()

    def act(tasks: tuple[str, ...]) -> None:
        told.append(tasks)
        acted.set()

    watchdog = Watchdog(clock.now, LIMIT_S, act)
    watchdog.start()
    with watchdog.watching(Job("t", clock.now())):
        assert not acted.is_set()
        clock.freeze(LIMIT_S)
        assert acted.wait(60)
    watchdog.close()
    assert told == [("t",)]
