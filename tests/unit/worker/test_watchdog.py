"""The thread that looks after what may write without a fence."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from tests.fakes.clock import FakeClock
from worker import watchdog as module
from worker.watchdog import Watchdog, end_at_once

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


def test_whoever_closes_it_does_not_wait_for_what_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does last may take for ever, and its thread keeps no process from ending."""
    monkeypatch.setattr(module, "CLOSE_TIMEOUT_S", 0.01)
    clock, hangs, acts = FakeClock(), threading.Event(), threading.Event()

    def act(_: tuple[str, ...]) -> None:
        acts.set()
        hangs.wait()

    watchdog = Watchdog(clock.now, 0.0, act)
    watchdog.start()
    with watchdog.watching(Job("t", clock.now())):
        assert acts.wait(60)
        watchdog.close()
    hangs.set()


def test_a_log_that_takes_nothing_more_keeps_no_process_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the worker's stderr may have stopped to."""
    hangs, said, ends = threading.Event(), threading.Event(), list[str]()

    def critical(*_: object, **__: object) -> None:
        said.set()
        hangs.wait()

    monkeypatch.setattr(module, "log", SimpleNamespace(critical=critical))
    end_at_once(("t",), lambda: True, lambda: ends.append("ended"))
    assert ends == ["ended"]
    assert said.wait(60)
    hangs.set()


def test_an_engine_that_cannot_be_killed_keeps_no_process_from_ending() -> None:
    """Its JVM ends by itself when the worker is no more."""
    ends = list[str]()

    def kill() -> bool:
        raise PermissionError("not yours")

    with pytest.raises(PermissionError):
        end_at_once(("t",), kill, lambda: ends.append("ended"))
    assert ends == ["ended"]


def test_an_engine_that_is_not_the_workers_is_told_of_and_nothing_ends() -> None:
    """A Spark Connect server runs what others have there, too."""
    ends = list[str]()
    with capture_logs() as logs:
        end_at_once(("t",), lambda: False, lambda: ends.append("ended"), group="g")
    assert ends == []
    assert [(line["tasks"], line["group"]) for line in logs] == [(("t",), "g")]
