from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JNetworkError
from structlog.testing import capture_logs

from definition.document import Definition
from telemetry.foreign_errors import first_line_of
from tests.fakes.foreign_errors import RAISED, UNNAMED
from worker.query_engine import QueryError, QuerySpec
from worker.spark.monitor import Monitor
from worker.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


KINDS = [*map(type, RAISED), *UNNAMED]


class Polled:
    """A query whose polls go as the test says."""

    def __init__(self, poll: Callable[[int], bool]) -> None:
        self.spec = QuerySpec("g", "t", 1, Definition())
        self.polls = 0
        self.end: QueryError | None = None
        self.seen = threading.Event()
        self._poll = poll

    def poll(self) -> bool:
        self.polls += 1
        over = self._poll(self.polls)
        if over or self.polls >= 3:
            self.seen.set()
        return over

    def give_up(self, cause: str) -> bool:
        self.finish(QueryError(cause))
        return True

    def finish(self, ended: QueryError) -> None:
        self.end = ended
        self.seen.set()


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    monitor = Monitor()
    monitor.start(lambda error: isinstance(error, Py4JNetworkError))
    yield monitor
    monitor.close()


def test_a_query_is_looked_at_until_it_is_over(monitor: Monitor) -> None:
    """Each at its own pace; what is over is forgotten."""
    short, long = Polled(lambda count: count == 2), Polled(lambda _count: False)
    monitor.add(short)
    monitor.add(long)
    assert short.seen.wait(120)
    assert long.seen.wait(120)
    assert short.polls == 2
    assert monitor.watched() == [long]


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_a_query_that_cannot_be_watched_is_given_up(monitor: Monitor, number: int) -> None:
    """The others are watched, whatever it raises."""
    error = KINDS[number]()

    def broken(_count: int) -> bool:
        raise error

    bad, good = Polled(broken), Polled(lambda count: count == 2)
    with capture_logs():
        monitor.add(bad)
        monitor.add(good)
        assert bad.seen.wait(120)
        assert good.seen.wait(120)
    assert bad.end is not None
    assert bad.end.cause == f"the query cannot be watched any more: {first_line_of(error)}"


def test_a_dying_jvm_is_no_news_of_a_query(monitor: Monitor) -> None:
    """Broken connections are left to who watches the process; then all end with one cause."""

    def broken(_count: int) -> bool:
        raise Py4JNetworkError("gone")

    query = Polled(broken)
    monitor.add(query)
    monitor.lose_all("the JVM was killed by signal 9")
    assert query.end == QueryError("the JVM was killed by signal 9")
    assert monitor.watched() == []


def test_a_query_that_came_too_late(monitor: Monitor) -> None:
    """One whose start was under way when the JVM died ends as well."""
    monitor.lose_all("the JVM is gone")
    late = Polled(lambda _count: False)
    monitor.add(late)
    assert late.end == QueryError("the JVM is gone")


def test_a_query_that_cannot_be_watched_is_a_failure(monitor: Monitor) -> None:
    """Never a query that nobody hears of any more; the others go on."""

    def surprise(_count: int) -> bool:
        raise ValueError("a progress record of the future")

    query, healthy = Polled(surprise), Polled(lambda _count: False)
    monitor.add(query)
    monitor.add(healthy)
    assert query.seen.wait(120)
    assert query.end == QueryError(
        "the query cannot be watched any more: ValueError: a progress record of the future"
    )
    assert healthy.seen.wait(120)
    assert monitor.watched() == [healthy]


def test_a_look_that_hangs_does_not_hold_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the worker: a server that takes the question and never answers is left with it."""
    monkeypatch.setattr("worker.spark.monitor.CLOSE_TIMEOUT_S", 0.01, raising=False)
    hangs, let_go = threading.Event(), threading.Event()

    def look(_count: int) -> bool:
        hangs.set()
        return let_go.wait(120)

    monitor = Monitor()
    monitor.start(lambda _error: False)
    monitor.add(Polled(look))
    assert hangs.wait(120)
    try:
        in_thread("close", monitor.close).result(timeout=20)
    finally:
        let_go.set()
    assert monitor._thread.daemon


class Pauses(threading.Event):
    """Stands in for the monitor's own pauses: none is waited for, and the third ends it."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.lengths.append(timeout or 0.0)
        return len(self.lengths) == 3


def test_a_stall_is_not_followed_by_a_long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that a stalled JVM has made last 12 s says nothing of the next: news wait no minute for it."""
    now = iter([0.0, 12.0, 12.0, 12.001])
    monitor, pauses = Monitor(lambda: next(now)), Pauses()
    monkeypatch.setattr(monitor, "_over", pauses)
    monitor.add(Polled(lambda _count: False))
    monitor._run()
    assert pauses.lengths == [0.1, 1.0, 0.1]
